/**
 * The shared memory of an image: what the supervisor makes before any thread starts and every thread gets.
 *
 * Who writes: `directory` and `arena` only the thread that holds the image writer, but for the words of `arena` that layout.ts
 * leaves to answer threads; of `health` the states the prober, the keys whoever hands out slots; in `control` each word has the one
 * writer that its comment names; in `counters` each thread its own block.
 * When a change becomes visible: see docs/image.md.
 */

/** Threads that may read an image at the same time. A thread's index is below it. */
export const MAX_THREADS = 64;

/** The arena reserves this much address space; memory is taken as it grows. Up to here the index of a word is an Int32. */
export const ARENA_MAX_BYTES = 8 * 2 ** 30;
const ARENA_FIRST_BYTES = 2 ** 20;

/**
 * The directory of depth d has a word for each value of a hash's d upper bits, at words [2^d, 2^(d+1)): one of every depth
 * has its place, and the one in use is no larger than the name table needs, so that it stays in a processor's first cache.
 */
export const DIRECTORY_DEPTH_MIN = 1;
export const DIRECTORY_DEPTH_MAX = 16;
/**
 * The depth in use, in two words of the directory that no depth takes: readers of hashes whose upper bit is 0 read the first,
 * the others the second. While the second is behind, both directories name the same segments.
 */
export const DIRECTORY_DEPTH_AT = 0;

/** Words (Int32) of `control`. */
export const CONTROL = {
  /** Rises when the arena has grown. Writer: image writer. */
  GENERATION: 0,
  /** The epoch that readers copy when they enter; rises when blocks are retired. Writer: image writer. */
  EPOCH: 1,
  /** Start value of every name hash, random for each image, so that nobody can prepare colliding names. */
  HASH_SEED: 2,
  /** Bit n set: there may be a zone whose name has n labels (bit 31: 31 or more). Writer: image writer. */
  ZONE_DEPTHS: 3,
  /** Four words: today's cookie secret. Then four words: yesterday's (RFC 9018 section 5). Writer: supervisor. */
  COOKIE_SECRET: 4,
  COOKIE_SECRET_BEFORE: 8,
  /** 1: the listeners drain and stop. Writer: supervisor. */
  STOP: 13,
  /** Figures for metrics. Writer: image writer. */
  ARENA_BYTES_USED_KIB: 14,
  NAMES: 15,
  RRSETS: 16,
  ZONES: 17,
  /** Block of the region table, 0 for none. Writer: image writer. */
  REGIONS: 18,
  /** While a segment of the name table is being replaced: the segment, else 0; its directory words. Writer: image writer. */
  SPLIT_SEGMENT: 19,
  SPLIT_FIRST: 20,
  SPLIT_SPAN: 21,
  /**
   * Seconds since 1970, for cookies: a thread that asked the system would get a new heap object for every batch.
   * Writer: supervisor.
   */
  CLOCK_SECONDS: 22,
  /** Body of the overrides, 0 while there are none. Writer: image writer. */
  OVERRIDES: 23,
  /** Number of this node's own region (regionNumber), 0 for none. Writer: image writer. */
  OWN_REGION: 24,
  /** Number of the default forwarder's route, 0 while it is disabled. Writer: image writer. */
  DEFAULT_ROUTE: 25,
  /**
   * Rises whenever a name may be routed elsewhere than before: zones, overrides, forwarders, stub zones, the blocklist.
   * Writer: image writer.
   */
  ROUTING: 26,
  /** Block of the blocklist, 0 for none. Writer: image writer. */
  BLOCKLIST: 27,
  /** Bits of FORWARDING. Writer: image writer. */
  FORWARDING: 28,
  /** The query log keeps one in so many queries of each thread, 0: it is off. Writer: `control`. */
  LOG_EVERY: 29,
  /** 1: a window of debug capture is open, which keeps every query. Writer: `control`. */
  CAPTURE: 30,
  /** Rises when the cache was made anew, with another size. Writer: resolve. */
  CACHE_GENERATION: 31,
  /** 1 while `resolve` sleeps; who hands over sets 0 and wakes it by RESOLVE_WAKE, which it waits on. */
  RESOLVE_SLEEPS: 32,
  RESOLVE_WAKE: 33,
  /** 1: events of the query log have the whole answer, else its question only. Writer: as LOG_EVERY. */
  LOG_MESSAGES: 34,
  /** Bits of PRIMARY: what is taken from updaters and given to secondaries. Writer: `control`. */
  PRIMARY: 35,
  /** Block of the table of networks that recursion is offered to, 0: to nobody. Writer: image writer. */
  RECURSION: 36,
} as const;

/** Bits of CONTROL.FORWARDING: what holds for the default forwarder. */
export const FORWARDING = {
  /** ANY is refused. */
  REFUSE_ANY: 1,
} as const;

/** Bits of CONTROL.PRIMARY. */
export const PRIMARY = {
  /** UPDATE (RFC 2136) is carried out; else it is refused. */
  UPDATES: 1,
  /** AXFR (RFC 5936) is answered; else it is refused. */
  TRANSFERS: 2,
} as const;

/** Numbers of routes that are no forwarder's or stub zone's; theirs are at least FIRST. */
export const ROUTE = {
  NONE: 0,
  /** To the name servers of the zone cut of ours that the name lies below. */
  DELEGATED: 1,
  /** What is lacking is none of the cache: signed messages, updates and transfers are for the thread that resolves. */
  PRIMARY: 2,
  FIRST: 16,
} as const;

/** Each thread's epoch has a cache line of its own: word EPOCHS_AT + thread * EPOCH_STRIDE. */
export const EPOCHS_AT = 64;
export const EPOCH_STRIDE = 16;
const CONTROL_WORDS = EPOCHS_AT + MAX_THREADS * EPOCH_STRIDE;

/** Float64 places of one thread's counters; see counters.ts. */
export const COUNTERS_STRIDE = 2048;

/** Probes whose state fits into the image; slot 0 is nobody's. */
export const HEALTH_SLOTS = 2 ** 20;
/** Words of a slot, each in a column of its own: HEALTH_WORD in health.ts. */
export const HEALTH_COLUMNS = 3;

/** The cache reserves this much address space and takes memory as it is made larger. */
export const CACHE_MAX_BYTES = 2 ** 32 + 2 ** 29;
const CACHE_FIRST_BYTES = 2 ** 16;
/** Of the data of the ring of one thread, a power of two, and with its words in front of it; see handover.ts. */
export const HANDOVER_DATA_BYTES = 2 ** 19;
export const HANDOVER_BYTES = 128 + HANDOVER_DATA_BYTES;
/** Of the events of one thread; see events.ts. Positions in the data are those of their count's lower bits. */
export const EVENT_DATA_BYTES = 2 ** 20;
export const EVENT_RING_BYTES = 128 + EVENT_DATA_BYTES;

/** Plain buffers: it can be handed to a worker as it is. */
export type SharedImage = {
  readonly control: SharedArrayBuffer;
  readonly directory: SharedArrayBuffer;
  readonly arena: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  readonly health: SharedArrayBuffer;
  /** Forwarded answers; see cache.ts. */
  readonly cache: SharedArrayBuffer;
  /** Queries for `resolve`; see handover.ts. */
  readonly handover: SharedArrayBuffer;
  /** What the query log and debug capture are told; see events.ts. */
  readonly events: SharedArrayBuffer;
};

/** Makes an empty image. `seed` is 32 random bits. */
export function createSharedImage(seed: number): SharedImage {
  const shared: SharedImage = {
    control: new SharedArrayBuffer(CONTROL_WORDS * 4),
    directory: new SharedArrayBuffer(2 ** (DIRECTORY_DEPTH_MAX + 1) * 4),
    arena: new SharedArrayBuffer(ARENA_FIRST_BYTES, { maxByteLength: ARENA_MAX_BYTES }),
    counters: new SharedArrayBuffer(MAX_THREADS * COUNTERS_STRIDE * 8),
    // Pages that nobody touches cost nothing.
    health: new SharedArrayBuffer(HEALTH_SLOTS * HEALTH_COLUMNS * 4),
    cache: new SharedArrayBuffer(CACHE_FIRST_BYTES, { maxByteLength: CACHE_MAX_BYTES }),
    handover: new SharedArrayBuffer(MAX_THREADS * HANDOVER_BYTES),
    events: new SharedArrayBuffer(MAX_THREADS * EVENT_RING_BYTES),
  };
  const control = new Int32Array(shared.control);
  control[CONTROL.EPOCH] = 1;
  control[CONTROL.HASH_SEED] = seed | 0;
  new Int32Array(shared.directory).fill(DIRECTORY_DEPTH_MIN, DIRECTORY_DEPTH_AT, DIRECTORY_DEPTH_AT + 2);
  return shared;
}
