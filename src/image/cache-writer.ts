/**
 * The one writer of the cache. It begins empty, also where a predecessor died in the middle of a store: nothing of what
 * that left is read but the size and the positions in use.
 */
import {
  BUCKET_SLOTS,
  CACHE_PAGE_BYTES,
  CACHE_UNIT_WORDS,
  CACHE_WORD,
  CACHED_BYTES_MAX,
  type CachedAnswer,
  type CacheFigures,
  type CacheWriter,
  cacheHash,
  cacheLayout,
  ENTRY,
  ENTRY_OPEN,
  SLOT,
  USED_MASK,
} from "./cache.ts";
import {
  type CacheRing,
  createCacheRing,
  headPosition,
  moveHead,
  reserve,
  tailPosition,
  walkRing,
  wordOfPlace,
} from "./cache-ring.ts";
import {
  bucketAt,
  type CacheView,
  findCached,
  nameAt,
  openCacheView,
  refreshCache,
  routingWord,
} from "./cache-view.ts";
import { createNameKey, type NameKey, readNameKey } from "./name-key.ts";
import { CACHE_MAX_BYTES, CONTROL, type SharedImage } from "./shared.ts";
import { sameBytes } from "./view.ts";

export type CacheWriterOptions = {
  /** Seconds since 1970. */
  readonly nowSeconds: () => number;
};

/** Entries in use that would have to go for one put, and go to the head instead: more would make it slow. */
const SECOND_CHANCES_MAX = 16;
/** No entry takes more of the ring than this part of it. */
const RING_SHARE = 4;
const PLACES_MAX = 0xffff;

/** An entry that is to be put again. */
type Kept = { readonly words: Int32Array; readonly routing: number };

type State = {
  readonly shared: SharedImage;
  readonly nowSeconds: () => number;
  readonly view: CacheView;
  ring: CacheRing;
  entries: number;
  units: number;
  evictions: number;
  insertions: number;
  /** Entries that were in use when they had to go, and START of the one that must not be among them, as it is replaced. */
  readonly kept: Kept[];
  chances: number;
  replaced: number;
};

export function createCacheWriter(shared: SharedImage, { nowSeconds }: CacheWriterOptions): CacheWriter {
  const words = new Int32Array(shared.cache, 0, CACHE_WORD.WORDS);
  const state: State = {
    shared,
    nowSeconds,
    view: openCacheView(shared),
    ring: createCacheRing(words, cacheLayout(0), words[CACHE_WORD.HEAD]!),
    entries: 0,
    units: 0,
    evictions: 0,
    insertions: 0,
    kept: [],
    chances: 0,
    replaced: 0,
  };
  makeAnew(state, words[CACHE_WORD.CAPACITY_PAGES]!);
  const key = createNameKey();
  const name = new Uint8Array(256);
  const seed = state.view.control[CONTROL.HASH_SEED]!;
  return {
    put(answer) {
      name.set(answer.name.subarray(0, 255));
      name[Math.min(answer.name.length, 255)] = 0;
      const end = readNameKey(key, name, 0, answer.name.length + 1, seed);
      return end === answer.name.length + 1 && putAnswer(state, key, answer);
    },
    find: (wanted, type, flags) => findCached(state.view, wanted, type, flags),
    position: () => headPosition(state.ring) >>> 0,
    holds: (entry) => holds(state, entry),
    useStale(entry, untilSeconds) {
      const { words: all } = state.view;
      const keptUntil = all[entry + ENTRY.KEPT_UNTIL]!;
      if (!isAhead(keptUntil, nowSeconds())) return false;
      all[entry + ENTRY.STALE_UNTIL] = isAhead(keptUntil, untilSeconds) ? untilSeconds : keptUntil;
      return true;
    },
    flush(what) {
      if (what === undefined || (what.isSubtree && what.name.length === 0)) return flushAll(state);
      return flushName(state, what.name, what.isSubtree);
    },
    resize(bytes) {
      if (bytes % CACHE_PAGE_BYTES !== 0 || bytes < 0 || bytes > CACHE_MAX_BYTES)
        throw new RangeError(`${bytes} bytes`);
      makeAnew(state, bytes / CACHE_PAGE_BYTES);
    },
    figures: () => figuresOf(state),
  };
}

function figuresOf({ entries, units, ring, evictions, insertions }: State): CacheFigures {
  const bytes = units * CACHE_UNIT_WORDS * 4;
  return { entries, bytes, capacityBytes: ring.layout.capacityBytes, evictions, insertions };
}

/** Seconds are 32 bits wide in an entry. */
function isAhead(seconds: number, nowSeconds: number): boolean {
  return ((seconds - nowSeconds) | 0) > 0;
}

/** Empties the cache and gives it a size. Readers find nothing until the generation is even again. */
function makeAnew(state: State, pages: number): void {
  const { shared, view } = state;
  const { control } = view;
  Atomics.store(control, CONTROL.CACHE_GENERATION, control[CONTROL.CACHE_GENERATION]! | 1);
  Atomics.load(control, CONTROL.CACHE_GENERATION);
  const layout = cacheLayout(pages);
  if (shared.cache.byteLength < layout.capacityBytes) shared.cache.grow(layout.capacityBytes);
  const words = new Int32Array(shared.cache, 0, Math.max(layout.capacityBytes / 4, CACHE_WORD.WORDS));
  if (pages > 0) words.fill(0, layout.indexAt, layout.ringAt);
  state.ring = createCacheRing(words, layout, headPosition(state.ring));
  state.entries = 0;
  state.units = 0;
  Atomics.store(words, CACHE_WORD.CAPACITY_PAGES, pages);
  Atomics.store(control, CONTROL.CACHE_GENERATION, (control[CONTROL.CACHE_GENERATION]! + 1) | 0);
  refreshCache(view);
}

function flushAll(state: State): number {
  const { entries } = state;
  makeAnew(state, state.ring.layout.capacityBytes / CACHE_PAGE_BYTES);
  return entries;
}

function flushName(state: State, name: NameKey, isSubtree: boolean): number {
  const { view, ring } = state;
  let count = 0;
  walkRing(ring, (entry) => {
    const length = view.words[entry + ENTRY.KEY]! >>> 24;
    const above = length - name.length;
    if (above < 0 || (above > 0 && !isSubtree)) return;
    const at = nameAt(view, entry);
    if (!sameBytes(view.data, at + above, name.data, 0, name.length)) return;
    if (above > 0 && !beginsLabel(view, at, above)) return;
    const slot = slotOf(view, entry);
    if (slot === 0) return;
    removeSlot(state, slot, entry);
    count++;
  });
  return count;
}

/** Whether a label begins at byte `offset` of the name at `at`. */
function beginsLabel({ bytes }: CacheView, at: number, offset: number): boolean {
  let label = 0;
  while (label < offset) label += bytes[at + label]! + 1;
  return label === offset;
}

/** The slot that an entry of the ring is found by; 0: it was replaced or flushed. */
function slotOf(view: CacheView, entry: number): number {
  const { words } = view;
  const bucket = bucketAt(view, words[entry + ENTRY.HASH]!);
  for (let slot = bucket; slot < bucket + BUCKET_SLOTS * SLOT.WORDS; slot += SLOT.WORDS) {
    if (words[slot + SLOT.POSITION] === words[entry + ENTRY.START]) return slot;
  }
  return 0;
}

/** Words come from outside: whether one is an entry's first is for the index to say. */
function holds({ view, ring }: State, entry: number): boolean {
  const { ringAt, ringUnits } = ring.layout;
  const place = (entry - ringAt) / CACHE_UNIT_WORDS;
  if (!Number.isInteger(place) || place < 0 || place >= ringUnits) return false;
  // What lies there may be bytes of an entry that look like a header: only a position that means this place will do.
  const position = view.words[entry + ENTRY.START]!;
  const isPlaced = position !== 0 && (position & view.placeMask) === place;
  return isPlaced && ((position - tailPosition(ring)) | 0) >= 0 && slotOf(view, entry) !== 0;
}

function removeSlot(state: State, slot: number, entry: number): void {
  Atomics.store(state.view.words, slot + SLOT.POSITION, 0);
  state.entries--;
  state.units -= state.view.words[entry + ENTRY.UNITS]!;
}

function unitsOf(answer: CachedAnswer): number {
  const tables = answer.ttls.length + answer.pointers.length + answer.targets.length;
  const bytes = ENTRY.BYTES_AT * 4 + answer.bytes.length + tables * 2 + answer.name.length;
  return Math.ceil(bytes / (CACHE_UNIT_WORDS * 4));
}

function isPuttable({ ring }: State, answer: CachedAnswer): boolean {
  const { bytes, ttls, pointers, targets } = answer;
  if (bytes.length > CACHED_BYTES_MAX || unitsOf(answer) > ring.layout.ringUnits / RING_SHARE) return false;
  return Math.max(ttls.length, pointers.length, targets.length) <= PLACES_MAX;
}

function putAnswer(state: State, key: NameKey, answer: CachedAnswer): boolean {
  if (!isPuttable(state, answer)) return false;
  const { view, kept } = state;
  const units = unitsOf(answer);
  const hash = cacheHash(key.hashes[0]!, answer.type, answer.flags);
  const before = findCached(view, key, answer.type, answer.flags);
  state.replaced = before === 0 ? 0 : view.words[before + ENTRY.START]!;
  state.chances = SECOND_CHANCES_MAX;
  reserve(state.ring, units, (entry) => passBy(state, entry));
  writeAnswer(state, hash, answer);
  // The one before may have had to go for it.
  const same = findCached(view, key, answer.type, answer.flags) === 0 ? 0 : view.slot;
  publish(state, units, hash, same, 0, routingWord(answer.routing, headPosition(state.ring)));
  state.insertions++;
  // Whoever comes back may take the place of others that are in use: the list grows meanwhile.
  for (let index = 0; index < kept.length; index++) putAgain(state, kept[index]!);
  kept.length = 0;
  return true;
}

/** An entry of the ring has to go. One that was answered since it came by last is kept aside, to be put at the head. */
function passBy(state: State, entry: number): void {
  const { view, nowSeconds } = state;
  const { words } = view;
  const slot = slotOf(view, entry);
  if (slot === 0) return;
  const now = nowSeconds();
  const isAnswer = isAhead(words[entry + ENTRY.EXPIRES]!, now) || isAhead(words[entry + ENTRY.STALE_UNTIL]!, now);
  const start = words[entry + ENTRY.START]!;
  const isUsed = (words[slot + SLOT.USE]! & USED_MASK) > 0;
  if (isAnswer && isUsed && start !== state.replaced && state.chances > 0) {
    state.chances--;
    const copy = words.slice(entry, entry + words[entry + ENTRY.UNITS]! * CACHE_UNIT_WORDS);
    state.kept.push({ words: copy, routing: routingWord(words[slot + SLOT.ROUTING]!, start) });
  } else if (isAnswer) state.evictions++;
  removeSlot(state, slot, entry);
}

function putAgain(state: State, { words, routing }: Kept): void {
  const units = words[ENTRY.UNITS]!;
  reserve(state.ring, units, (entry) => passBy(state, entry));
  const start = headPosition(state.ring);
  words[ENTRY.START] = start;
  state.view.words.set(words, wordOfPlace(state.ring, state.ring.headPlace));
  publish(state, units, words[ENTRY.HASH]!, 0, 0, routingWord(routing, start));
}

/** Writes an entry at the head, where there is room for it. */
function writeAnswer({ view, ring }: State, hash: number, answer: CachedAnswer): void {
  const { words, bytes, data } = view;
  const { name, ttls, pointers, targets } = answer;
  const at = wordOfPlace(ring, ring.headPlace);
  words[at + ENTRY.START] = headPosition(ring);
  words[at + ENTRY.UNITS] = unitsOf(answer);
  words[at + ENTRY.HASH] = hash;
  words[at + ENTRY.KEY] = answer.type | (answer.flags << 16) | (name.length << 24);
  words[at + ENTRY.ROUTE] = answer.route;
  words[at + ENTRY.STORED] = answer.storedSeconds;
  words[at + ENTRY.EXPIRES] = answer.expiresSeconds;
  words[at + ENTRY.STALE_UNTIL] = answer.expiresSeconds;
  words[at + ENTRY.KEPT_UNTIL] = answer.keptUntilSeconds;
  words[at + ENTRY.RESULT] =
    answer.rcode | (answer.isOpen ? ENTRY_OPEN : 0) | (((answer.extendedError + 1) & 0xffff) << 16);
  words[at + ENTRY.COUNTS] = answer.answers | (answer.authorities << 16);
  words[at + ENTRY.BYTES] = answer.bytes.length | (ttls.length << 16);
  words[at + ENTRY.PLACES] = pointers.length | (targets.length << 16);
  let byte = (at + ENTRY.BYTES_AT) * 4;
  bytes.set(answer.bytes, byte);
  byte += answer.bytes.length;
  for (const places of [ttls, pointers, targets]) {
    for (const place of places) {
      data.setUint16(byte, place, true);
      byte += 2;
    }
  }
  bytes.set(name, byte);
}

/** Lets the entry at the head be found, in the slot `same` of the one that it replaces or in one of its bucket. */
function publish(state: State, units: number, hash: number, same: number, use: number, routing: number): void {
  const { view, ring } = state;
  const { words } = view;
  const slot = same === 0 ? freeSlot(state, hash) : same;
  if (same !== 0) {
    state.entries--;
    state.units -= words[wordAt(state, words[slot + SLOT.POSITION]!) + ENTRY.UNITS]!;
  }
  words[slot + SLOT.HASH] = hash;
  words[slot + SLOT.USE] = use;
  words[slot + SLOT.ROUTING] = routing;
  Atomics.store(words, slot + SLOT.POSITION, headPosition(ring));
  state.entries++;
  state.units += units;
  moveHead(ring, units);
}

function wordAt({ view, ring }: State, position: number): number {
  return wordOfPlace(ring, position & view.placeMask);
}

/** A slot of a bucket without an entry: where there is none, the oldest goes of those that have expired, or are not used, or all. */
function freeSlot(state: State, hash: number): number {
  const { words } = state.view;
  const bucket = bucketAt(state.view, hash);
  const now = state.nowSeconds();
  let victim = 0;
  let victimRank = 0;
  for (let slot = bucket; slot < bucket + BUCKET_SLOTS * SLOT.WORDS; slot += SLOT.WORDS) {
    const position = words[slot + SLOT.POSITION]!;
    if (position === 0) return slot;
    const isExpired = !isAhead(words[wordAt(state, position) + ENTRY.EXPIRES]!, now);
    const rank = isExpired ? 2 : (words[slot + SLOT.USE]! & USED_MASK) === 0 ? 1 : 0;
    const isOlder = victim === 0 || ((position - words[victim + SLOT.POSITION]!) | 0) < 0;
    if (rank > victimRank || (rank === victimRank && isOlder)) {
      victim = slot;
      victimRank = rank;
    }
  }
  if (victimRank < 2) state.evictions++;
  removeSlot(state, victim, wordAt(state, words[victim + SLOT.POSITION]!));
  return victim;
}
