/** Every bound of the replication, each named once. */

const MIB = 1_048_576;

/** What one message of changes, or one part of an answer, holds. */
export const BATCH_ITEMS = 500;
/** Batches of so few go ahead of larger ones; the store merges them without slices. */
export const SMALL_ITEMS = 32;
/** A batch ends behind the refs with which it has so many characters: about a millisecond's of making and of reading. */
export const BATCH_CHARACTERS = 131_072;
/** Refs whose items are read at once; one item may have 64 KiB, so a batch never exceeds 1.3 million characters. */
export const CHUNK_REFS = 16;
/** What is accepted of a peer, with room above what is sent. One ref may be several items. */
export const MESSAGE_ITEMS_MAX = 4 * BATCH_ITEMS;

/** Batches that a peer has not acknowledged. It closes the connection of one that sends twice as many. */
export const BATCHES_IN_FLIGHT = 4;
/** Nothing is sent to a peer whose network has not taken so much. */
export const UNTAKEN_BYTES_MAX = MIB;

/**
 * Of the messages of all peers whose items wait for the store; beyond, that of the peer with the most is dropped, and it is hung
 * up on. A batch of usual records has 150 KB.
 */
export const INBOX_BYTES_MAX = 64 * MIB;

export const QUEUE_REFS_MAX = 500_000;
export const QUEUE_BYTES_MAX = 64 * MIB;
/** Of all queues together; beyond, the longest is dropped. */
export const QUEUES_BYTES_MAX = 256 * MIB;
/** What an entry of a queue costs beside the text of its ref, by estimate. */
export const QUEUE_ENTRY_BYTES = 80;
/** Refs that are put into queues before others have a turn. */
export const INTAKE_REFS_A_TURN = 20_000;
/** Refused refs that are remembered by peer. */
export const REFUSED_REFS_MAX = 10_000;

/** For questions that make the peer read much, and for all others. */
export const LONG_CALL_TIMEOUT_MS = 30_000;
export const SHORT_CALL_TIMEOUT_MS = 5_000;
export const CALLS_OPEN_MAX = 32;
export const CALLS_SERVED_MAX = 8;

export const PEERS_MAX = 1_000;
export const WAYS_MAX = 4;

/** Nodes of the digest tree whose children are asked for, and told, at once: some milliseconds' work of either side. */
export const NODES_ASKED = 256;
/** Leaves whose versions are asked for at once; a part of the answer has so many versions. */
export const LEAVES_ASKED_MAX = 16_384;
export const VERSIONS_A_PART = 2_000;
/** Of one answer to `versions`: a quarter of a store of eight million items. Beyond them a peer makes them up. */
export const VERSIONS_MAX = 2_000_000;
export const VERSIONS_CHARACTERS_MAX = 2 ** 28;
export const REFS_ASKED = BATCH_ITEMS;
export const PULLS_AT_ONCE = 4;
/** Until so many are acknowledged, with what waited before them. */
export const PUSH_TIMEOUT_MS = 60_000;
export const PUSH_REFS_AT_ONCE = 5_000;
/** Comparisons that one exchange makes before it is left for later. */
export const EXCHANGE_ROUNDS = 8;
export const EXCHANGES_AT_ONCE = 4;
/** What an exchange has brought by then stays, and the next one goes on; a peer that answers in drops keeps the others waiting no longer. */
export const EXCHANGE_MS_MAX = 600_000;
/** While more than so many changes are under way at either end, a comparison waits, but never longer than this. */
export const UNDER_WAY_MANY = BATCH_ITEMS;
export const CALM_WAIT_MS = 10_000;

/** A page of a first sync is made of small pages, up to so many of so many rows, while it has fewer items than that. */
export const PAGE_SMALL_ROWS = 256;
export const PAGE_SMALL_PAGES = 8;
export const PAGE_ITEMS = 64;
/** Of what is accepted: records that are sent as rows, and the characters of one, which are never more than a row may have. */
export const PAGE_ROWS_MAX = 2 * PAGE_SMALL_ROWS * PAGE_SMALL_PAGES;
export const ROW_CHARACTERS_MAX = 65_536;
/** Pages that are applied at once: one is worked on while the other goes to the disk. */
export const PAGES_AT_ONCE = 2;
/** So long one peer may give pages, of which each may take so long on the average behind the first ones; then another has a turn. */
export const SOURCE_MS_MAX = 600_000;
export const SLOW_PAGE_MS = 5_000;
export const FIRST_PAGES_MS = 30_000;
/** What is kept of pages for behind the last of them. */
export const KEPT_ITEMS_MAX = 1_000_000;

export const AUDIT_ENTRIES = 200;
export const VECTOR_MAX = 10_000;
/** Nodes of which a store keeps up to when it has what they had. */
export const AGREEMENTS_MAX = 1_000;
export const ZONES_ASKED_MAX = 5_000;
export const REF_CHARACTERS_MAX = 4_096;
