/**
 * How a thread reads the cache. Nobody waits: a reader finds an entry, reads what it needs, and asks `isIntact` at the end;
 * where that says no, the writer has used the memory anew meanwhile, and whatever was read means nothing.
 *
 * Until then a reader must not trust lengths and places that it reads: it holds each against what it is going to read or
 * write, so that nonsense cannot make it throw or run for long.
 */
import {
  BUCKET_SLOTS,
  BUCKET_WORDS,
  CACHE_UNIT_WORDS,
  CACHE_WORD,
  cacheHash,
  cacheLayout,
  ENTRY,
  SLOT,
  SLOT_REFRESHING,
  USED_MASK,
  USED_MAX,
} from "./cache.ts";
import type { NameKey } from "./name-key.ts";
import { CONTROL, type SharedImage } from "./shared.ts";
import { readInOrder, sameBytes } from "./view.ts";

export type CacheView = {
  readonly shared: SharedImage;
  readonly control: Int32Array;
  words: Int32Array;
  bytes: Uint8Array;
  data: DataView;
  generation: number;
  /** 0: there is no cache, or it is being made anew. */
  buckets: number;
  /** Of a bucket in all 2^32 hashes. */
  scale: number;
  ringAt: number;
  ringUnits: number;
  placeMask: number;
  /** Word of the slot of what `findCached` found last, and the position that tells its entry from all others. */
  slot: number;
  start: number;
};

export function openCacheView(shared: SharedImage): CacheView {
  const view: CacheView = {
    shared,
    control: new Int32Array(shared.control),
    words: new Int32Array(shared.cache, 0, CACHE_WORD.WORDS),
    bytes: new Uint8Array(shared.cache, 0, CACHE_WORD.WORDS * 4),
    data: new DataView(shared.cache, 0, CACHE_WORD.WORDS * 4),
    generation: 0,
    buckets: 0,
    scale: 0,
    ringAt: 0,
    ringUnits: 0,
    placeMask: 0,
    slot: 0,
    start: 0,
  };
  refreshCache(view);
  return view;
}

/** Takes over that the cache was made anew: once a batch. */
export function refreshCache(view: CacheView): void {
  const generation = Atomics.load(view.control, CONTROL.CACHE_GENERATION);
  if (generation !== view.generation) takeLayout(view, generation);
}

function takeLayout(view: CacheView, generation: number): void {
  view.generation = generation;
  view.buckets = 0;
  // Odd: it is being made anew.
  if ((generation & 1) !== 0) return;
  const layout = cacheLayout(Atomics.load(view.words, CACHE_WORD.CAPACITY_PAGES));
  const { cache } = view.shared;
  const length = layout.capacityBytes;
  if (length === 0 || length > cache.byteLength) return;
  view.words = new Int32Array(cache, 0, length / 4);
  view.bytes = new Uint8Array(cache, 0, length);
  view.data = new DataView(cache, 0, length);
  view.scale = layout.buckets / 2 ** 32;
  view.ringAt = layout.ringAt;
  view.ringUnits = layout.ringUnits;
  view.placeMask = (1 << layout.lapBits) - 1;
  // Made anew once more while the layout was read: the next batch looks again.
  if (Atomics.load(view.control, CONTROL.CACHE_GENERATION) === generation) view.buckets = layout.buckets;
}

/** The word of the bucket for a hash. Only while there are buckets. */
export function bucketAt(view: CacheView, hash: number): number {
  return CACHE_WORD.WORDS + (((hash >>> 0) * view.scale) | 0) * BUCKET_WORDS;
}

/** The word at which the entry of a position begins; -1 where none can. */
export function entryAt(view: CacheView, position: number): number {
  const place = position & view.placeMask;
  return place < view.ringUnits ? view.ringAt + place * CACHE_UNIT_WORDS : -1;
}

/**
 * The word at which the entry of a question begins, expired or not; 0 for none. `view.slot` is its slot, for noteUsed and
 * its like. It may be gone at any moment: what is read of it counts once `isIntact` has said so.
 */
export function findCached(view: CacheView, key: NameKey, type: number, flags: number): number {
  if (view.buckets === 0) return 0;
  const { words } = view;
  const hash = cacheHash(key.hashes[0]!, type, flags);
  const bucket = bucketAt(view, hash);
  for (let slot = bucket; slot < bucket + BUCKET_SLOTS * SLOT.WORDS; slot += SLOT.WORDS) {
    if (words[slot + SLOT.HASH] !== hash) continue;
    const position = words[slot + SLOT.POSITION]!;
    if (position === 0) continue;
    const entry = entryAt(view, position);
    if (entry < 0 || !isEntryOf(view, entry, position, key, type | (flags << 16) | (key.length << 24))) continue;
    view.slot = slot;
    view.start = position;
    return entry;
  }
  return 0;
}

function isEntryOf(view: CacheView, entry: number, position: number, key: NameKey, keyWord: number): boolean {
  const { words } = view;
  if (words[entry + ENTRY.START] !== position || words[entry + ENTRY.KEY] !== keyWord) return false;
  const at = nameAt(view, entry);
  return at + key.length <= view.data.byteLength && sameBytes(view.data, at, key.data, 0, key.length);
}

/** The byte at which the name of an entry begins: behind RRs, TTLs, pointers and targets. */
export function nameAt({ words }: CacheView, entry: number): number {
  const bytes = words[entry + ENTRY.BYTES]!;
  const places = words[entry + ENTRY.PLACES]!;
  const tables = (bytes >>> 16) + (places & 0xffff) + (places >>> 16);
  return (entry + ENTRY.BYTES_AT) * 4 + (bytes & 0xffff) + tables * 2;
}

/**
 * True: everything read since of the entry that began at `start` was that entry. `start` is what `findCached` left in the view:
 * the entry's own word may be that of what is being written in its place.
 */
export function isIntact(view: CacheView, start: number): boolean {
  return (
    ((start - readInOrder(view.words, CACHE_WORD.TAIL)) | 0) >= 0 &&
    view.control[CONTROL.CACHE_GENERATION] === view.generation
  );
}

/** Whether an entry was put at or behind a CacheWriter.position(). */
export function cameSince(start: number, position: number): boolean {
  return ((start - position) | 0) >= 0;
}

/** Counts that what was found last is answered. */
export function noteUsed({ words, slot }: CacheView): void {
  const use = words[slot + SLOT.USE]!;
  if ((use & USED_MASK) < USED_MAX) words[slot + SLOT.USE] = use + 1;
}

/** How often what was found last was answered, up to USED_MAX, since it was put there or passed by. */
export function useCount({ words, slot }: CacheView): number {
  return words[slot + SLOT.USE]! & USED_MASK;
}

/** Whether a fresh one was asked for already in place of what was found last; else the caller is to do so. */
export function noteRefreshing({ words, slot }: CacheView): boolean {
  const use = words[slot + SLOT.USE]!;
  words[slot + SLOT.USE] = use | SLOT_REFRESHING;
  return (use & SLOT_REFRESHING) !== 0;
}

/** Mixed with the entry's position, the word of one entry cannot count for another that has taken its slot. */
export function routingWord(routing: number, start: number): number {
  return routing ^ Math.imul(start, 0x9e3779b1);
}

/** Whether the names of what was found last, which began at `start`, were seen to be routed as before at `routing`. */
export function isRoutedAt({ words, slot }: CacheView, start: number, routing: number): boolean {
  return words[slot + SLOT.ROUTING] === routingWord(routing, start);
}

/** Notes that they were. */
export function noteRouting({ words, slot }: CacheView, start: number, routing: number): void {
  words[slot + SLOT.ROUTING] = routingWord(routing, start);
}

/** Fetches the bucket of a question ahead of findCached. The result only keeps the read alive. */
export function touchBucket(view: CacheView, nameHash: number, type: number, flags: number): number {
  if (view.buckets === 0) return 0;
  const bucket = bucketAt(view, cacheHash(nameHash, type, flags));
  return view.words[bucket]! ^ view.words[bucket + BUCKET_WORDS / 2]!;
}

/** Fetches the beginning of its entry, once the bucket is there. */
export function touchEntry(view: CacheView, nameHash: number, type: number, flags: number): number {
  if (view.buckets === 0) return 0;
  const { words } = view;
  const hash = cacheHash(nameHash, type, flags);
  const bucket = bucketAt(view, hash);
  for (let slot = bucket; slot < bucket + BUCKET_SLOTS * SLOT.WORDS; slot += SLOT.WORDS) {
    if (words[slot + SLOT.HASH] !== hash) continue;
    const entry = entryAt(view, words[slot + SLOT.POSITION]!);
    return entry < 0 ? 0 : words[entry]! ^ words[entry + 16]!;
  }
  return 0;
}
