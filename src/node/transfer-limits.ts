/** What encoding zones for transfer may take. */

/** Zones being encoded at a time, each by a thread. */
export const ENCODERS_MAX = 2;
/** Requests that wait for one; as many as there can be transfers, and no more come. */
export const ENCODING_WAITING_MAX = 64;
/** Heap of a thread; the messages lie outside of it. */
export const ENCODER_HEAP_MB = 512;
/** One zone: a million records take seconds. A reader that stays longer makes the store's file grow. */
export const ENCODING_MS = 30_000;
/** A thread that says nothing for so much longer is ended. */
export const ENCODER_SILENT_MS = 30_000;
/** A thread ends when nobody has asked for so long. */
export const ENCODER_IDLE_MS = 60_000;
/** Encoded zones are kept so long after their last transfer, for the next secondary, */
export const ENCODED_KEPT_MS = 60_000;
/** and together in so many bytes. */
export const ENCODED_BYTES_MAX = 64 * 2 ** 20;
