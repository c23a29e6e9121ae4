/** Every limit of sending events, named once. */

/** Events that wait for one sink; further ones are dropped. A site's outage makes one for each of its records. */
export const QUEUE_MAX = 10_000;
/** Events under way to one sink, each about another subject. */
export const IN_FLIGHT_MAX = 4;
/** Of one attempt, from the connection to the head of the answer. */
export const ATTEMPT_TIMEOUT_MS = 10_000;
/** Before the second attempt, and before the third, which is the last. */
export const RETRY_PAUSES_MS: readonly number[] = [1_000, 5_000];
/** Of an answer's body, which tells nothing, but whose end lets the connection be used again. */
export const DRAINED_BYTES_MAX = 65_536;
export const DRAIN_MS = 1_000;
/** An idle connection is closed before a server is likely to do so at the very moment that it is used again. */
export const IDLE_CONNECTION_MS = 4_000;
/** Events remembered to know their repeats; beyond, the one that was sent the longest ago is forgotten. */
export const REMEMBERED_MAX = 100_000;
/** When the node stops: what is not delivered by then never is. */
export const FLUSH_MS = 2_000;
/** Between two log lines about the same sink's failures. */
export const COMPLAINT_PAUSE_MS = 60_000;
/** Of what the network says about a failure. */
export const REASON_CHARACTERS_MAX = 200;
