/** Every limit of DNS NOTIFY, named once. */

/** Before each further attempt; the last of them before all that follow (RFC 1996 section 3.6 leaves both to us). */
export const NOTIFY_PAUSES_MS: readonly number[] = [
  1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 120_000, 300_000,
];
/** Two hours of them: by then a secondary has asked by itself, for that is the usual refresh of a SOA. */
export const NOTIFY_ATTEMPTS_MAX = 30;
/** Zones times targets that wait for an answer; more are not told of a change before the next one. */
export const NOTIFY_PENDING_MAX = 20_000;
/** Sent at a stretch, and the pause before the next ones: a network loses what comes all at once. */
export const NOTIFY_BURST = 50;
export const NOTIFY_BURST_PAUSE_MS = 5;
/** A target that is silent for so many attempts is logged, once in a while. */
export const NOTIFY_SILENT_ATTEMPTS = 5;
export const NOTIFY_COMPLAINT_PAUSE_MS = 600_000;
/** The longest that a NOTIFY waits for the change to be answered by this node. */
export const NOTIFY_PUBLISHED_MS = 10_000;
/**
 * The longest that the announcements of a start wait for what others wrote meanwhile: of an older serial a secondary learns
 * nothing, and what comes from another node is announced by none but that one.
 */
export const NOTIFY_CAUGHT_UP_MS = 60_000;
/** At the start every zone is announced: so many NOTIFY within NOTIFY_START_PAUSE_MS, and each of them so often where no answer comes. */
export const NOTIFY_START_AT_ONCE = 100;
export const NOTIFY_START_PAUSE_MS = 1_000;
export const NOTIFY_START_ATTEMPTS_MAX = 3;
/** While more than these wait for an answer no further zone is announced for the start: changes have the room. */
export const NOTIFY_START_PENDING_MAX = 1_000;
