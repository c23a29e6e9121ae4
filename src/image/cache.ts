/**
 * The cache of forwarded answers, in shared memory: `resolve` writes it, every thread that answers reads it and waits for
 * nobody.
 *
 * An answer is what an upstream said to one question, up to the first name of its chain that is routed elsewhere. It is
 * kept as it goes on the wire behind the question, names compressed for that place, with what it takes to put it elsewhere.
 */
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

/** Words of an entry. */
export const ENTRY = {
  /** Where it begins, in units since the cache was made: what tells it from all others. */
  START: 0,
  /** Units of the whole entry. */
  UNITS: 1,
  HASH: 2,
  /** Bits 0 to 15: type; 16 to 23: QUESTION_FLAG; 24 to 31: bytes of the name. */
  KEY: 3,
  ROUTE: 4,
  /** (live, written by whoever has found all its names routed as before) CONTROL.ROUTING of that moment. */
  ROUTING: 5,
  STORED: 6,
  EXPIRES: 7,
  /** (live, writer `resolve`) Until then it is answered although expired; 0 while nothing failed. */
  STALE_UNTIL: 8,
  /** (live, written by readers without regard to each other) How often it was answered, since it was last passed by. */
  USED: 9,
  /** (live) 1: somebody has asked for a fresh one. */
  REFRESHING: 10,
  /** Bits 0 to 11: rcode; bit 12: open; 16 to 31: extended error plus one. */
  RESULT: 11,
  /** Bits 0 to 15: RRs of the answer section; 16 to 31: of the authority section. */
  COUNTS: 12,
  /** Bits 0 to 15: bytes of the RRs; 16 to 31: number of TTLs. */
  BYTES: 13,
  /** Bits 0 to 15: number of pointers; 16 to 31: number of targets. */
  PLACES: 14,
  KEPT_UNTIL: 15,
  /** Behind it, in bytes: the RRs; then as u16 the places of TTLs, pointers and targets; then the name. */
  BYTES_AT: 16,
} as const;

export const ENTRY_OPEN = 1 << 12;

export type CacheFigures = {
  readonly entries: number;
  readonly bytes: number;
  readonly capacityBytes: number;
  readonly evictions: number;
  readonly insertions: number;
};

/** The one writer of the cache. */
export type CacheWriter = {
  /** False: it has no room even in an empty cache. What was there for the question is replaced. */
  readonly put: (answer: CachedAnswer) => boolean;
  /** The word at which the entry of a question begins, expired or not; 0 for none. */
  readonly find: (key: NameKey, type: number, flags: number) => number;
  /** The units written so far: entries whose START is not below it came later. */
  readonly position: () => number;
  /** An expired entry is answered until then. False: it is kept no longer. */
  readonly useStale: (entry: number, untilSeconds: number) => boolean;
  /** Removes all, or what is at a name, or at and below it. The number of entries. */
  readonly flush: (what?: { readonly name: NameKey; readonly isSubtree: boolean }) => number;
  /** Empties it and gives it another size in bytes, a multiple of 2^16. */
  readonly resize: (bytes: number) => void;
  readonly figures: () => CacheFigures;
};
