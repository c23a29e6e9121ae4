/** Every limit of the runner of scripts, named once. */

/** Scripts that run at the same time, and those that wait for their turn. */
export const RUNNING_MAX = 16;
export const WAITING_MAX = 512;
/** Connections of the service; it keeps one. */
export const CONNECTIONS_MAX = 8;
/** Bytes of answers that a service leaves untaken before its connection ends. */
export const UNTAKEN_BYTES_MAX = 2 ** 20;

/** Standard output and standard error together; a script that writes more is ended. */
export const OUTPUT_BYTES_MAX = 65_536;
/** The end of standard error that is kept to be shown. */
export const OUTPUT_KEPT_BYTES = 4_096;

/** Of one script, all its processes together. */
export const MEMORY_BYTES_MAX = 256 * 2 ** 20;
/** How often that is looked at. */
export const MEMORY_CHECK_MS = 100;
/** Address space for data of one process: what it could come to hold between two looks. Some languages reserve much. */
export const PROCESS_DATA_BYTES_MAX = 2 ** 30;
export const PROCESSES_MAX = 64;
export const OPEN_FILES_MAX = 256;
/** Of one file, and of each of the two directories that a script may write to. */
export const FILE_BYTES_MAX = 16 * 2 ** 20;

/** How old the last look at the rules that keep addresses away may be when a script begins or runs. */
export const RULES_CHECK_MS = 1_000;
/** How often the runner tests its sandbox again: soon while it is not as it must be. */
export const SELF_TEST_MS = 60_000;
export const SELF_TEST_RETRY_MS = 5_000;
/** From the start of a self-test to its report. */
export const SELF_TEST_DEADLINE_MS = 20_000;
/** A connection that may not be made is refused by this machine itself: at once, not after a time-out. */
export const SELF_TEST_CONNECT_MS = 3_000;
/** `ip` and the like end within this time. */
export const TOOL_DEADLINE_MS = 10_000;
