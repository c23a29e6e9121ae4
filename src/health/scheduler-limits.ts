/** Every limit of the scheduler of probes, named once. */

/** Probes that one node runs; what is named beyond them is not probed. */
export const PROBES_MAX = 250_000;

/** Runs at the same time, each with a socket. */
export const IN_FLIGHT_MAX = 4_000;
/** Of these, the share for probes that took long the last time: where whole networks hang, the others are not late. */
export const SLOW_SHARE = 0.75;
/** And the share for these and for probes that have not run yet, together. */
export const NEW_SHARE = 0.875;
/** A run takes long from here on, or from this share of its timeout on where that is less. */
export const SLOW_MS = 1_000;
export const SLOW_TIMEOUT_SHARE = 0.5;

/** Runs are begun in ticks, so that thousands of probes do not need thousands of timers. */
export const TICK_MS = 5;
/**
 * Runs begun in one go, before answers and messages have their turn: on a machine with much else to do a tick comes late, and
 * has to make up for it.
 */
export const STARTS_A_TICK = 1_000;
/** Or as many as this many milliseconds suffice for. */
export const STARTS_MS = 20;
/** Of the starts, how many are made between two looks at the clock. */
export const STARTS_A_LOOK = 16;

/** A new probe runs within its interval and this, where not many are new at once. */
export const FIRST_RUN_MS = 2_000;
/** First runs are begun one in this time at most: 2,000 a second. */
export const FIRST_RUN_APART_MS = 0.5;
/** A state from before a restart holds until the probe's own turn when it is not older than this many intervals. */
export const FRESH_INTERVALS = 2;

/** A probe whose last run ended this many intervals ago is stale. */
export const STALE_INTERVALS = 3;
export const WATCH_MS = 1_000;
/** Beyond its timeout, the time after which a run that has not ended is given up. */
export const RUN_GRACE_MS = 2_000;
/** A complaint is not said again before. */
export const COMPLAINT_MS = 60_000;

/** Changed states that one message brings. */
export const TRANSITIONS_A_MESSAGE = 1_000;

/** States that are remembered over a restart. */
export const REMEMBERED_MAX = 250_000;
/** What nobody probes is remembered for this long. */
export const REMEMBERED_MS = 7 * 24 * 3_600_000;
