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
/** A thread ends when nobody has asked for so long, but for the one that is kept while transfers are on. */
export const ENCODER_IDLE_MS = 60_000;
/** Encoded zones are kept so long after their last transfer, for the next secondary: a SOA's refresh is seldom longer. */
export const ENCODED_KEPT_MS = 3 * 60 * 60 * 1_000;
/** They have so many bytes together, */
export const ENCODED_BYTES_MAX = 64 * 2 ** 20;
/** and each so many changed records that are not in it yet. One with more is encoded anew. */
export const KEPT_CHANGES_MAX = 1_000;
/** A change of more messages than this is not brought into them one by one. */
export const PATCHED_MESSAGES_MAX = 64;
/** So many messages beyond those that its bytes fill, and a zone that was changed again and again is encoded anew. */
export const SPARE_MESSAGES_MAX = 32;
