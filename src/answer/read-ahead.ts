/**
 * Reads a batch of queries before the first is answered, and touches what their answers will need of the image. The name
 * table and the nodes do not fit into the processor's caches; asked for one after the other, each costs a wait of some
 * hundred nanoseconds, asked for together they arrive together.
 */
import { RRTYPE } from "../dns/codes.ts";
import { type CacheView, touchBucket, touchEntry } from "../image/cache-view.ts";
import {
  mixHash,
  NODE,
  POINTER,
  pointerCount,
  RRSET,
  SELECTED_FLAG,
  SELECTION,
  selectionAt,
  TAIL,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
} from "../image/layout.ts";
import { hashAsterisk } from "../image/name-key.ts";
import { type ImageView, slotOf } from "../image/view.ts";
import { pointedHash } from "./additional.ts";
import { createLookup, findZone, type Lookup } from "./lookup.ts";
import { createQuery, type Query, questionFlags, READ, readQuery } from "./query.ts";

/**
 * Queries that are read ahead together: enough for a processor to wait for all of them at once, and few enough that what
 * was read of them stays in its first cache.
 */
export const READ_AHEAD_MAX = 32;

/** Names that are touched for one batch: each query's own, its wildcard, and some that records point to. */
const SLOTS_MAX = READ_AHEAD_MAX * 6;
/** Candidates of a selection that are touched: as many as most have. */
const CANDIDATES_MAX = 4;

export type ReadAhead = {
  readonly queries: readonly Query[];
  /** Queries that were read, and how many of them were passed by `takeRead`. */
  count: number;
  taken: number;
  readonly lookup: Lookup;
  /** Words of the name table where the searches begin, and the words that were found there; 0 for none. */
  readonly slots: Int32Array;
  /** The mixed hashes that are sought there. */
  readonly hashes: Int32Array;
  readonly found: Int32Array;
  slotCount: number;
  /** There where names that are not ours are answered from the cache. */
  readonly cache: CacheView | undefined;
  /** Queries for such names. */
  elsewhereCount: number;
  /** Where everything that was touched goes, so that no compiler leaves the touching out. */
  touched: number;
};

export function createReadAhead(cache: CacheView | undefined): ReadAhead {
  return {
    queries: Array.from({ length: READ_AHEAD_MAX }, createQuery),
    count: 0,
    taken: 0,
    lookup: createLookup(),
    slots: new Int32Array(SLOTS_MAX),
    hashes: new Int32Array(SLOTS_MAX),
    found: new Int32Array(SLOTS_MAX),
    slotCount: 0,
    cache,
    elsewhereCount: 0,
    touched: 0,
  };
}

/** Forgets what was read before. */
export function startReadAhead(ahead: ReadAhead): void {
  ahead.count = 0;
  ahead.taken = 0;
  ahead.slotCount = 0;
  ahead.elsewhereCount = 0;
}

/** Reads the next message of the batch and finds its zone. */
export function readNext(
  ahead: ReadAhead,
  view: ImageView,
  bytes: Uint8Array,
  start: number,
  end: number,
  seed: number,
): void {
  if (ahead.taken === ahead.count) startReadAhead(ahead);
  if (ahead.count === READ_AHEAD_MAX) return;
  const query = ahead.queries[ahead.count]!;
  const read = readQuery(query, bytes, start, end, seed);
  ahead.count++;
  if (read !== READ.QUERY || !query.hasQuestion) return;
  // Which side of a cut has DS is decided while answering.
  if (query.type === RRTYPE.DS) return;
  const { lookup } = ahead;
  if (findZone(view, lookup, query.name, 0) === 0) {
    query.elsewhere = lookup.route;
    query.apexLabel = lookup.apexLabel;
    ahead.elsewhereCount++;
    return;
  }
  query.zone = lookup.zone;
  query.apexLabel = lookup.apexLabel;
  const incarnation = view.words[query.zone * UNIT_WORDS + ZONE.INCARNATION]!;
  const { hashes } = query.name;
  query.slot = ahead.slotCount;
  want(ahead, view, mixHash(hashes[0]!, incarnation));
  if (query.apexLabel < 2) return;
  // The name above and the wildcard below it decide about a name that does not exist.
  want(ahead, view, mixHash(hashes[1]!, incarnation));
  want(ahead, view, mixHash(hashAsterisk(hashes[1]!, seed), incarnation));
}

/** Adds a name, by its mixed hash, to those that are touched. */
function want(ahead: ReadAhead, view: ImageView, hash: number): void {
  ahead.hashes[ahead.slotCount] = hash;
  ahead.slots[ahead.slotCount++] = slotOf(view, hash);
}

/** Touches what the answers of the batch will read: names, then the names that their records point to. */
export function touchAll(ahead: ReadAhead, view: ImageView): void {
  if (ahead.elsewhereCount > 0 && ahead.cache !== undefined) touchCached(ahead, ahead.cache);
  touchFrom(ahead, view, 0);
  const { count, slotCount } = ahead;
  for (let index = 0; index < count; index++) {
    const query = ahead.queries[index]!;
    const points = query.type === RRTYPE.MX || query.type === RRTYPE.NS;
    if (points && query.zone !== 0) noteTargets(ahead, view, query.type, ahead.found[query.slot]!);
  }
  if (ahead.slotCount > slotCount) touchFrom(ahead, view, slotCount);
}

/** Touches the cache: the buckets of all questions, then their entries. */
function touchCached(ahead: ReadAhead, cache: CacheView): void {
  const { queries, count } = ahead;
  let touched = 0;
  for (let index = 0; index < count; index++) {
    const query = queries[index]!;
    if (query.elsewhere >= 0) touched ^= touchBucket(cache, query.name.hashes[0]!, query.type, questionFlags(query));
  }
  for (let index = 0; index < count; index++) {
    const query = queries[index]!;
    if (query.elsewhere >= 0) touched ^= touchEntry(cache, query.name.hashes[0]!, query.type, questionFlags(query));
  }
  ahead.touched ^= touched;
}

/**
 * Slots, then nodes, then RRsets: in each pass no read waits for another. Only the first slot of a search is looked at, and
 * what stands there is passed over where it is another name's, or a zone's entry, which has no RRsets.
 */
function touchFrom(ahead: ReadAhead, view: ImageView, from: number): void {
  const { slots, hashes, found, slotCount } = ahead;
  const { words } = view;
  const length = words.length;
  for (let index = from; index < slotCount; index++) {
    const slot = slots[index]!;
    const node = slot >= 0 && slot < length && words[slot] === hashes[index] ? words[slot + 1]! : 0;
    found[index] = node > 0 ? node * UNIT_WORDS : 0;
  }
  for (let index = from; index < slotCount; index++) {
    const at = found[index]!;
    const isNode = at > 0 && at < length && words[at + NODE.INCARNATION] !== ZONE_ENTRY;
    found[index] = isNode ? words[at + NODE.RRSETS]! * UNIT_WORDS : 0;
  }
  let typeWords = 0;
  for (let index = from; index < slotCount; index++) {
    const at = found[index]!;
    if (at < length) typeWords |= words[at + RRSET.TYPE]!;
  }
  ahead.touched = typeWords;
  if ((typeWords & SELECTED_FLAG) !== 0) touchTables(ahead, view, from);
}

/**
 * Touches what selected RRsets are selected by: the tables behind their RRs. The states of their probes are not worth it:
 * they lie so close together that a processor has them near.
 */
function touchTables(ahead: ReadAhead, view: ImageView, from: number): void {
  const { found, slotCount } = ahead;
  const { words } = view;
  const length = words.length;
  let touched = 0;
  for (let index = from; index < slotCount; index++) {
    const at = found[index]!;
    if (at === 0 || at >= length || (words[at + RRSET.TYPE]! & SELECTED_FLAG) === 0) continue;
    const size = words[at + RRSET.SIZE]!;
    const first = selectionAt(at / UNIT_WORDS, size);
    // Behind the health slots there may be as many words again.
    const last = first + SELECTION.HEALTH + 2 * Math.min(size & 0xffff, CANDIDATES_MAX) - 1;
    if (last < length) touched ^= words[first]! ^ words[last]!;
  }
  ahead.touched ^= touched;
}

/** Adds the slots of the names that the records of a type point to; `at` is the first word of a node's first RRset. */
function noteTargets(ahead: ReadAhead, view: ImageView, type: number, at: number): void {
  const { words, data } = view;
  let rrset = at;
  while (rrset !== 0 && rrset < words.length && (words[rrset + RRSET.TYPE]! & 0xffff) !== type) {
    rrset = words[rrset + RRSET.NEXT]! * UNIT_WORDS;
  }
  if (rrset === 0 || rrset >= words.length) return;
  const typeWord = words[rrset + RRSET.TYPE]!;
  // Their addresses stand behind it.
  if ((typeWord & TAIL.FLAG) !== 0) return;
  const pointers = pointerCount(typeWord);
  const entries = rrset * 4 + RRSET.WIRE_BYTE + (words[rrset + RRSET.SIZE]! >>> 16);
  for (let index = 0; index < pointers && ahead.slotCount < SLOTS_MAX; index++) {
    want(ahead, view, pointedHash(data, entries + index * POINTER.BYTES));
  }
}

/** The query that was read from bytes[start]; undefined where it was not read ahead. */
export function takeRead(ahead: ReadAhead, bytes: Uint8Array, start: number): Query | undefined {
  while (ahead.taken < ahead.count) {
    const query = ahead.queries[ahead.taken++]!;
    if (query.start === start && query.bytes === bytes) return query;
  }
  return undefined;
}
