/** An answer found in the cache: what it says of itself, and how old it is. */
import type { NameKey } from "../image/name-key.ts";

/** An expired answer is given with this TTL (RFC 8767 section 4). */
const STALE_TTL_SECONDS = 30;
/** Where the question's name stands, and what stands behind it. */
export const QUESTION_AT = 12;
export const TYPE_AND_CLASS = 4;

/** What the cache had to do with an answer: of several hits the worst counts. */
export const CACHE_USE = { NONE: 0, FRESH: 1, STALE: 2 } as const;
export type CacheUse = (typeof CACHE_USE)[keyof typeof CACHE_USE];

export const PUT_HIT = {
  /** The entry was overwritten meanwhile: there is nothing. Nothing was written behind the answer in hand. */
  GONE: 0,
  NO_ROOM: 1,
  DONE: 2,
} as const;
export type PutHit = (typeof PUT_HIT)[keyof typeof PUT_HIT];

/** What an entry says of itself. A thread has one and fills it again. */
export type Hit = {
  /** Word of the entry, and the position that tells it from all others. */
  entry: number;
  start: number;
  isStale: boolean;
  rcode: number;
  extendedError: number;
  isOpen: boolean;
  answers: number;
  authorities: number;
  /** The first byte of its RRs in the cache, and how many there are. */
  from: number;
  length: number;
  /** The bytes at which the tables begin: places of TTLs, pointers and CNAME targets; and how many each has. */
  ttlsAt: number;
  ttls: number;
  pointersAt: number;
  pointers: number;
  targetsAt: number;
  targets: number;
  ageSeconds: number;
  /** Where the message has the target of the last CNAME, once it was put; -1: nowhere. */
  targetAt: number;
};

export function createHit(): Hit {
  return {
    entry: 0,
    start: 0,
    isStale: false,
    rcode: 0,
    extendedError: -1,
    isOpen: false,
    answers: 0,
    authorities: 0,
    from: 0,
    length: 0,
    ttlsAt: 0,
    ttls: 0,
    pointersAt: 0,
    pointers: 0,
    targetsAt: 0,
    targets: 0,
    ageSeconds: 0,
    targetAt: -1,
  };
}

/** The label that begins at an offset of the name, -1 for none. */
export function labelAt({ offsets, labels }: NameKey, offset: number): number {
  for (let label = 0; label <= labels; label++) if (offsets[label] === offset) return label;
  return -1;
}

/** The TTL to answer with. None is above 2^31 - 1 (RFC 2181 section 8). */
export function ttlNow({ isStale, ageSeconds }: Hit, ttl: number): number {
  return isStale ? STALE_TTL_SECONDS : Math.max(ttl - ageSeconds, 0);
}
