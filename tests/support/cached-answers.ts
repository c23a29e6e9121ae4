/** Cached answers for tests: made of little, and read back as they were put. */
import { nameFromText, ROOT_NAME } from "../../src/dns/name.ts";
import { CACHED_CHAIN_MAX, type CachedAnswer, ENTRY, ENTRY_OPEN } from "../../src/image/cache.ts";
import { type CacheView, nameAt } from "../../src/image/cache-view.ts";
import { createNameKey, type NameKey, readNameKey } from "../../src/image/name-key.ts";
import { CONTROL, type SharedImage } from "../../src/image/shared.ts";

function wireName(text: string): Uint8Array {
  const result = nameFromText(text, ROOT_NAME);
  if (result.kind === "error") throw new Error(`${text}: ${result.reason}`);
  return result.name;
}

/** The key of a name in an image. */
export function cacheKey(shared: SharedImage, name: string): NameKey {
  const wire = wireName(name);
  const key = createNameKey();
  readNameKey(key, wire, 0, wire.length, new Int32Array(shared.control)[CONTROL.HASH_SEED]!);
  return key;
}

/** An answer to a question of type A that is fresh from second 1,000 to 1,300. */
export function cachedAnswer(name: string, changes: Partial<CachedAnswer> = {}): CachedAnswer {
  const wire = wireName(name);
  return {
    name: wire.subarray(0, wire.length - 1),
    type: 1,
    flags: 0,
    route: 16,
    routing: 1,
    rcode: 0,
    extendedError: -1,
    storedSeconds: 1_000,
    expiresSeconds: 1_300,
    keptUntilSeconds: 1_300,
    answers: 1,
    authorities: 0,
    bytes: Uint8Array.of(0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1),
    pointers: [0],
    ttls: [6],
    targets: [],
    isOpen: false,
    ...changes,
  };
}

/** What stands at the word of an entry, but for `routing`. */
export function readCached(view: CacheView, entry: number): Omit<CachedAnswer, "routing"> {
  const word = (index: number): number => view.words[entry + index]!;
  const ttls = word(ENTRY.BYTES) >>> 16;
  const pointers = word(ENTRY.PLACES) & 0xffff;
  const targets = word(ENTRY.PLACES) >>> 16;
  if (targets > CACHED_CHAIN_MAX) throw new Error(`${targets} targets`);
  const from = (entry + ENTRY.BYTES_AT) * 4;
  const length = word(ENTRY.BYTES) & 0xffff;
  const places = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => view.data.getUint16(from + length + (first + index) * 2, true));
  const name = nameAt(view, entry);
  return {
    name: view.bytes.slice(name, name + (word(ENTRY.KEY) >>> 24)),
    type: word(ENTRY.KEY) & 0xffff,
    flags: (word(ENTRY.KEY) >>> 16) & 0xff,
    route: word(ENTRY.ROUTE),
    rcode: word(ENTRY.RESULT) & 0xfff,
    extendedError: (word(ENTRY.RESULT) >>> 16) - 1,
    storedSeconds: word(ENTRY.STORED),
    expiresSeconds: word(ENTRY.EXPIRES),
    keptUntilSeconds: word(ENTRY.KEPT_UNTIL),
    answers: word(ENTRY.COUNTS) & 0xffff,
    authorities: word(ENTRY.COUNTS) >>> 16,
    bytes: view.bytes.slice(from, from + length),
    pointers: places(ttls, pointers),
    ttls: places(0, ttls),
    targets: places(ttls + pointers, targets),
    isOpen: (word(ENTRY.RESULT) & ENTRY_OPEN) !== 0,
  };
}
