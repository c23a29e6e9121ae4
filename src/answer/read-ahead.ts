/**
 * Reads a batch of queries before the first is answered, and touches what their answers will need of the image. The name
 * table and the nodes do not fit into the processor's caches; asked for one after the other, each costs a wait of some
 * hundred nanoseconds, asked for together they arrive together.
 */
import { RRTYPE } from "../dns/codes.ts";
import { mixHash, NODE, UNIT_WORDS, ZONE } from "../image/layout.ts";
import { type ImageView, slotOf } from "../image/view.ts";
import { createLookup, findZone, type Lookup } from "./lookup.ts";
import { createQuery, type Query, READ, readQuery } from "./query.ts";

/** Queries that are read ahead; those of a larger batch are read when they are answered. */
export const READ_AHEAD_MAX = 64;

export type ReadAhead = {
  readonly queries: readonly Query[];
  /** Queries that were read, and how many of them were passed by `takeRead`. */
  count: number;
  taken: number;
  readonly lookup: Lookup;
  /** Words of the name table where the searches begin, and the nodes that stand there; 0 for none. */
  readonly slots: Int32Array;
  readonly nodes: Int32Array;
  slotCount: number;
  /** Where everything that was touched goes, so that no compiler leaves the touching out. */
  touched: number;
};

export function createReadAhead(): ReadAhead {
  return {
    queries: Array.from({ length: READ_AHEAD_MAX }, createQuery),
    count: 0,
    taken: 0,
    lookup: createLookup(),
    slots: new Int32Array(READ_AHEAD_MAX * 2),
    nodes: new Int32Array(READ_AHEAD_MAX * 2),
    slotCount: 0,
    touched: 0,
  };
}

/** Forgets the batch before. */
export function startReadAhead(ahead: ReadAhead): void {
  ahead.count = 0;
  ahead.taken = 0;
  ahead.slotCount = 0;
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
  if (ahead.count === READ_AHEAD_MAX) return;
  const query = ahead.queries[ahead.count++]!;
  if (readQuery(query, bytes, start, end, seed) !== READ.QUERY || !query.hasQuestion) return;
  // Which side of a cut has DS is decided while answering.
  if (query.type === RRTYPE.DS || findZone(view, ahead.lookup, query.name, 0) === 0) return;
  query.zone = ahead.lookup.zone;
  query.apexLabel = ahead.lookup.apexLabel;
  const incarnation = view.words[query.zone * UNIT_WORDS + ZONE.INCARNATION]!;
  const { hashes } = query.name;
  ahead.slots[ahead.slotCount++] = slotOf(view, mixHash(hashes[0]!, incarnation));
  // The name above is what decides about a name that does not exist.
  if (query.apexLabel > 1) ahead.slots[ahead.slotCount++] = slotOf(view, mixHash(hashes[1]!, incarnation));
}

/** Touches slots, then nodes, then RRsets: in each pass no read waits for another. */
export function touchAll(ahead: ReadAhead, view: ImageView): void {
  const { slots, nodes, slotCount } = ahead;
  const { words } = view;
  const length = words.length;
  let touched = 0;
  for (let index = 0; index < slotCount; index++) {
    const slot = slots[index]!;
    const node = slot >= 0 && slot < length ? words[slot + 1]! : 0;
    nodes[index] = node > 0 ? node * UNIT_WORDS : 0;
  }
  for (let index = 0; index < slotCount; index++) {
    const at = nodes[index]! + NODE.RRSETS;
    const rrset = at < length ? words[at]! : 0;
    nodes[index] = rrset > 0 ? rrset * UNIT_WORDS : 0;
  }
  for (let index = 0; index < slotCount; index++) {
    const at = nodes[index]!;
    if (at < length) touched ^= words[at]!;
  }
  ahead.touched = touched;
}

/** The query that was read from bytes[start]; undefined where it was not read ahead. */
export function takeRead(ahead: ReadAhead, bytes: Uint8Array, start: number): Query | undefined {
  while (ahead.taken < ahead.count) {
    const query = ahead.queries[ahead.taken++]!;
    if (query.start === start && query.bytes === bytes) return query;
  }
  return undefined;
}
