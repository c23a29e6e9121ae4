/**
 * The cache of forwarded answers, in shared memory: `resolve` writes it, every thread that answers reads it and waits for
 * nobody.
 *
 * An answer is what an upstream said to one question, up to the first name of its chain that is routed elsewhere. It is
 * kept as it goes on the wire behind the question, names compressed for that place, with what it takes to put it elsewhere.
 */
import { mixHash } from "./layout.ts";
import type { NameKey } from "./name-key.ts";

/** What of a query makes the upstream's answer another one. */
export const QUESTION_FLAG = {
  /** DO (RFC 3225). */
  DNSSEC_OK: 1,
  /** CD (RFC 4035 section 3.2.2). */
  CHECKING_DISABLED: 2,
} as const;

/** The most bytes of the RRs of one answer: what a message of 65,535 bytes leaves beside question and OPT. */
export const CACHED_BYTES_MAX = 65_000;

/** The most names of a chain that one answer follows. */
export const CACHED_CHAIN_MAX = 16;

/** An answer on its way into the cache. Offsets count bytes from the first RR's start. */
export type CachedAnswer = {
  /** Lower-case wire form without the root's zero byte: the question. Its length is at most 254. */
  readonly name: Uint8Array;
  readonly type: number;
  /** Bits of QUESTION_FLAG. */
  readonly flags: number;
  /** The route that it came by, and CONTROL.ROUTING when its names were last seen to be routed so. */
  readonly route: number;
  readonly routing: number;
  readonly rcode: number;
  /** Extended DNS Error to tell, -1 for none. */
  readonly extendedError: number;
  /** Seconds since 1970. From `expiresSeconds` on it is no answer any more, or a stale one. */
  readonly storedSeconds: number;
  readonly expiresSeconds: number;
  /** Until then an expired one is kept, to be answered where the upstreams fail (RFC 8767); `expiresSeconds` for never. */
  readonly keptUntilSeconds: number;
  /** RRs of the answer section and of the authority section: at most CACHED_BYTES_MAX together. */
  readonly answers: number;
  readonly authorities: number;
  /**
   * Their bytes. A compression pointer means a place of the message in which the question's name stands at 12 and these
   * bytes directly behind the question. No CNAME's target is compressed.
   */
  readonly bytes: Uint8Array;
  /** Where each compression pointer stands, in rising order. */
  readonly pointers: readonly number[];
  /** Where each TTL stands, in rising order. */
  readonly ttls: readonly number[];
  /** Where the target of each CNAME followed stands, in the order of the chain. */
  readonly targets: readonly number[];
  /** The last target is routed elsewhere, or its answer was left out: it is the next question. */
  readonly isOpen: boolean;
};

/**
 * Words of an entry. All but STALE_UNTIL stay as they are until the memory is used anew, and only the writer writes here: a
 * reader's store could meet what has taken an entry's place. What readers write stands in the index: SLOT.
 * Times are seconds since 1970 in 32 bits, which are compared by difference.
 */
export const ENTRY = {
  /** Position at which it begins, what tells it from all others; see CacheWriter.position. */
  START: 0,
  /** Units of the whole entry. */
  UNITS: 1,
  HASH: 2,
  /** Bits 0 to 15: type; 16 to 23: QUESTION_FLAG; 24 to 31: bytes of the name. */
  KEY: 3,
  ROUTE: 4,
  STORED: 5,
  EXPIRES: 6,
  /** (live, writer `resolve`) Until then it is answered although expired; as EXPIRES while nothing failed. */
  STALE_UNTIL: 7,
  KEPT_UNTIL: 8,
  /** Bits 0 to 11: rcode; bit 12: open; 16 to 31: extended error plus one. */
  RESULT: 9,
  /** Bits 0 to 15: RRs of the answer section; 16 to 31: of the authority section. */
  COUNTS: 10,
  /** Bits 0 to 15: bytes of the RRs; 16 to 31: number of TTLs. */
  BYTES: 11,
  /** Bits 0 to 15: number of pointers; 16 to 31: number of targets. */
  PLACES: 12,
  /**
   * Behind it, in bytes: the RRs; then as u16 (little-endian, at any byte) the places of TTLs, pointers and targets; then
   * the name.
   */
  BYTES_AT: 13,
} as const;

/** Words of a slot of the index. A bucket is SLOTS of them; the bucket of a question follows from its hash. */
export const SLOT = {
  HASH: 0,
  /** START of the entry, 0 for none. */
  POSITION: 1,
  /** (written by readers without regard to each other) Bits 0 to 15: how often it was answered, up to USED_MAX; bit 16: REFRESHING. */
  USE: 2,
  /** (written by readers) CONTROL.ROUTING at which all its names were found routed as before, mixed with START. */
  ROUTING: 3,
  WORDS: 4,
} as const;
export const BUCKET_SLOTS = 8;
export const BUCKET_WORDS = BUCKET_SLOTS * SLOT.WORDS;
/** Counting further would make threads wait for each other's cache lines. */
export const USED_MAX = 100;
export const USED_MASK = 0xffff;
export const SLOT_REFRESHING = 1 << 16;

/** Words at the beginning of the memory. Writer: resolve. */
export const CACHE_WORD = {
  /** Where the next entry begins at the earliest: for a successor of the writer. */
  HEAD: 0,
  /** Entries that begin before it are gone, and their memory is used anew. Raised before it is. A cache line of its own. */
  TAIL: 16,
  /** Size of it all in pages of 2^16 bytes, 0: no cache. Everything else about the layout follows from it. */
  CAPACITY_PAGES: 32,
  WORDS: 64,
} as const;

/** A unit is what positions count. */
export const CACHE_UNIT_WORDS = 4;
export const CACHE_PAGE_BYTES = 2 ** 16;

export type CacheLayout = {
  readonly capacityBytes: number;
  readonly buckets: number;
  /** Words at which index and ring begin. */
  readonly indexAt: number;
  readonly ringAt: number;
  readonly ringUnits: number;
  /** A position is the number of the lap through the ring, and in its lower bits, so many, the place in units. */
  readonly lapBits: number;
};

/** One eighth of it is index: entries of less than some 112 bytes on the average would need more. */
export function cacheLayout(pages: number): CacheLayout {
  const capacityBytes = pages * CACHE_PAGE_BYTES;
  const buckets = Math.floor(capacityBytes / 8 / (BUCKET_WORDS * 4));
  const indexAt = CACHE_WORD.WORDS;
  const ringAt = indexAt + buckets * BUCKET_WORDS;
  // What is fetched ahead of an entry may lie a cache line behind the last.
  const ringUnits = Math.max(Math.floor((capacityBytes / 4 - ringAt - 16) / CACHE_UNIT_WORDS), 0);
  return { capacityBytes, buckets, indexAt, ringAt, ringUnits, lapBits: 32 - Math.clz32(ringUnits) };
}

/** The hash of a question, from the hash of its name. */
export function cacheHash(nameHash: number, type: number, flags: number): number {
  return mixHash(nameHash, type | (flags << 16));
}

export const ENTRY_OPEN = 1 << 12;

export type CacheFigures = {
  readonly entries: number;
  /** Of these entries; the index takes an eighth of the capacity besides. */
  readonly bytes: number;
  readonly capacityBytes: number;
  /** Entries that had to make room although they had not expired. */
  readonly evictions: number;
  readonly insertions: number;
};

/** The one writer of the cache. */
export type CacheWriter = {
  /** False: it has no room even in an empty cache. What was there for the question is replaced. */
  readonly put: (answer: CachedAnswer) => boolean;
  /** The word at which the entry of a question begins, expired or not; 0 for none. */
  readonly find: (key: NameKey, type: number, flags: number) => number;
  /** What the next entry's START will not be below: 32 bits without a sign, to be compared by `cameSince` of cache-view.ts. */
  readonly position: () => number;
  /** Whether an entry begins at this word, for words that another thread found an entry at some time ago. */
  readonly holds: (entry: number) => boolean;
  /** An expired entry is answered until then, at most as long as it is kept. False: it is kept no longer. */
  readonly useStale: (entry: number, untilSeconds: number) => boolean;
  /** Removes all, or what is at a name, or at and below it. The number of entries. */
  readonly flush: (what?: { readonly name: NameKey; readonly isSubtree: boolean }) => number;
  /** Empties it and gives it another size in bytes, a multiple of 2^16. */
  readonly resize: (bytes: number) => void;
  readonly figures: () => CacheFigures;
};
