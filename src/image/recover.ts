/**
 * Takes over an image whose writer has died: what is reachable is kept, everything between is free. The successor knows
 * nothing of its predecessor but what stands in shared memory, which may have been left between any two stores.
 */
import { forEachBlocklistBlock } from "./blocklist.ts";
import {
  NODE,
  nodeUnits,
  RRSET,
  SEGMENT_SLOTS,
  SEGMENT_UNITS,
  SLOT_REMOVED,
  UNIT_BYTES,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
  ZONE_ENTRY_ROUTE,
  ZONE_UNITS,
} from "./layout.ts";
import { PREFIX_TABLES, prefixTableUnits } from "./prefix-table.ts";
import { retire } from "./reclaim.ts";
import { CONTROL, DIRECTORY_DEPTH_AT } from "./shared.ts";
import { directoryDepth } from "./view.ts";
import { type ImageWriter, type Segment, showZones, unitsOfRRset } from "./writer-state.ts";

/** The words of `control` that name a block which no name leads to. */
const BLOCKS = [...PREFIX_TABLES, CONTROL.BLOCKLIST] as const;

type Found = { readonly references: number[]; readonly units: number[]; readonly active: Set<number> };

/** Fills the writer's own knowledge from the shared image; an empty image leaves it as it is. */
export function recoverImage(writer: ImageWriter): void {
  const { directory, control } = writer.view;
  const depth = directoryDepth(writer.view);
  const first = 1 << depth;
  const hasNames = directory[first] !== 0;
  if (!hasNames && BLOCKS.every((word) => control[word] === 0)) return;
  if (hasNames) completeDirectory(writer);
  // The arena may have grown without a word: from now on blocks lie across what readers take for its end.
  Atomics.add(control, CONTROL.GENERATION, 1);
  const found: Found = { references: [], units: [], active: new Set() };
  for (let index = first; index < first * 2; index++) {
    const segment = directory[index]!;
    const known = writer.segments.get(segment);
    if (segment === 0 || known !== undefined) continue;
    const shared = spanOf(directory, index, first * 2);
    writer.segments.set(segment, readSegment(writer, segment, depth - Math.floor(Math.log2(shared))));
  }
  for (const segment of writer.segments.keys()) {
    dropEmptyEntries(writer, segment);
    forEachNode(writer, segment, (node) => visitZoneEntry(writer, node, found));
  }
  const overrides = control[CONTROL.OVERRIDES]!;
  if (overrides !== 0) visitBody(writer, overrides, found);
  showZones(writer);
  // The writer may have died between a change of routing and telling of it.
  Atomics.add(control, CONTROL.ROUTING, 1);
  control[CONTROL.NAMES] = 0;
  control[CONTROL.RRSETS] = 0;
  for (const segment of writer.segments.keys()) {
    keep(found, segment, SEGMENT_UNITS);
    forEachNode(writer, segment, (node) => visitNode(writer, node, found));
  }
  for (const word of PREFIX_TABLES) {
    const table = control[word]!;
    if (table !== 0) keep(found, table, prefixTableUnits(writer.view, table));
  }
  forEachBlocklistBlock(writer.view, (reference, units) => keep(found, reference, units));
  freeGaps(writer, found);
}

/** Brings the directory to one side of what its writer died in the middle of. */
function completeDirectory({ view }: ImageWriter): void {
  const { directory, control } = view;
  // The first word of the depth is written first.
  const depth = directoryDepth(view);
  Atomics.store(directory, DIRECTORY_DEPTH_AT + 1, depth);
  const split = control[CONTROL.SPLIT_SEGMENT]!;
  const first = control[CONTROL.SPLIT_FIRST]!;
  const span = control[CONTROL.SPLIT_SPAN]!;
  if (split !== 0) for (let index = 0; index < span; index++) Atomics.store(directory, first + index, split);
  Atomics.store(control, CONTROL.SPLIT_SEGMENT, 0);
  // The first segment of all is entered from the start of the directory on.
  const start = 1 << depth;
  const segment = directory[start]!;
  for (let index = start * 2 - 1; directory[index] === 0; index--) Atomics.store(directory, index, segment);
}

/** Takes away zone entries that name neither a body nor a route: their zone was to be activated, or was deleted. */
function dropEmptyEntries(writer: ImageWriter, segment: number): void {
  const { words } = writer.view;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const at = segment * UNIT_WORDS + slot * 2 + 1;
    const node = words[at]! * UNIT_WORDS;
    if (node <= 0 || words[node + NODE.INCARNATION] !== ZONE_ENTRY) continue;
    if (words[node + NODE.RRSETS] !== 0 || words[node + ZONE_ENTRY_ROUTE] !== 0) continue;
    Atomics.store(words, at, SLOT_REMOVED);
    writer.segments.get(segment)!.live--;
  }
}

/** How many directory words from `index` on, before `end`, name the same segment. */
function spanOf(directory: Int32Array, index: number, end: number): number {
  let span = 1;
  while (index + span < end && directory[index + span] === directory[index]) span++;
  return span;
}

function readSegment(writer: ImageWriter, segment: number, depth: number): Segment {
  const base = segment * UNIT_WORDS;
  let live = 0;
  let used = 0;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const node = writer.view.words[base + slot * 2 + 1]!;
    if (node > 0) live++;
    if (node !== 0) used++;
  }
  return { depth, live, used, swept: 0 };
}

function forEachNode(writer: ImageWriter, segment: number, visit: (node: number) => void): void {
  const base = segment * UNIT_WORDS;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const node = writer.view.words[base + slot * 2 + 1]!;
    if (node > 0) visit(node);
  }
}

function visitZoneEntry(writer: ImageWriter, node: number, found: Found): void {
  const { words, bytes } = writer.view;
  const at = node * UNIT_WORDS;
  if (words[at + NODE.INCARNATION] !== ZONE_ENTRY) return;
  const body = words[at + NODE.RRSETS]!;
  let labels = 0;
  const length = words[at + NODE.META]! & 0xff;
  const name = node * UNIT_BYTES + NODE.NAME_BYTE;
  for (let from = 0; from < length; from += bytes[name + from]! + 1) labels++;
  writer.entriesByDepth.set(labels, (writer.entriesByDepth.get(labels) ?? 0) + 1);
  if (body === 0) return;
  writer.zones++;
  visitBody(writer, body, found);
}

function visitBody({ view }: ImageWriter, body: number, found: Found): void {
  const { words } = view;
  const bodyAt = body * UNIT_WORDS;
  // A change that never ended would make every answer of the zone twice.
  if (words[bodyAt + ZONE.SEQUENCE]! % 2 !== 0) Atomics.add(words, bodyAt + ZONE.SEQUENCE, 1);
  found.active.add(words[bodyAt + ZONE.INCARNATION]!);
  keep(found, body, ZONE_UNITS);
  const soa = words[bodyAt + ZONE.NEGATIVE_SOA]!;
  if (soa !== 0) keep(found, soa, unitsOfRRset(view, soa));
}

function visitNode(writer: ImageWriter, node: number, found: Found): void {
  const { words, control } = writer.view;
  const at = node * UNIT_WORDS;
  const incarnation = words[at + NODE.INCARNATION]!;
  keep(found, node, nodeUnits(words[at + NODE.META]! & 0xff));
  if (incarnation === ZONE_ENTRY) return;
  writer.nextIncarnation = Math.max(writer.nextIncarnation, incarnation + 1);
  // No reader can be inside an incarnation that never was active, or that ended before the writer died: epoch as of now.
  if (!found.active.has(incarnation)) writer.dead.set(incarnation, Atomics.load(control, CONTROL.EPOCH));
  control[CONTROL.NAMES]! += 1;
  for (let rrset = words[at + NODE.RRSETS]!; rrset !== 0; rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!) {
    keep(found, rrset, unitsOfRRset(writer.view, rrset));
    control[CONTROL.RRSETS]! += 1;
  }
}

function keep(found: Found, reference: number, units: number): void {
  found.references.push(reference);
  found.units.push(units);
}

/** Frees everything that is not reachable. Readers may still hold a block of it, so it waits for them like any other. */
function freeGaps(writer: ImageWriter, found: Found): void {
  const { view, retired } = writer;
  const order = Uint32Array.from(found.references.keys());
  order.sort((a, b) => found.references[a]! - found.references[b]!);
  let end = 1;
  for (const index of order) {
    const reference = found.references[index]!;
    if (reference > end) retire(retired, view.control, end, reference - end);
    end = reference + found.units[index]!;
  }
  if (view.limit > end) retire(retired, view.control, end, view.limit - end);
  writer.arena.next = view.limit;
  writer.arena.end = view.limit;
}
