/**
 * The name table, as its writer sees it: extendible hashing. The upper bits of a hash choose a word of the directory, the
 * word names a segment, and the lower bits are where the search in the segment begins. A full segment is replaced by two;
 * readers find every name in the old one until the directory names the new ones, and nothing is ever moved under them.
 */
import { allocate } from "./arena.ts";
import { SEGMENT_SLOTS, SEGMENT_UNITS, SLOT_REMOVED, UNIT_WORDS } from "./layout.ts";
import { retire } from "./reclaim.ts";
import { CONTROL, DIRECTORY_BITS } from "./shared.ts";
import type { ImageWriter } from "./writer-state.ts";

const SEGMENT_MOST_USED = (SEGMENT_SLOTS * 3) / 4;
const SLOT_MASK = SEGMENT_SLOTS - 1;

/** Enters a node under its mixed hash. It must not be there yet. */
export function insertSlot(writer: ImageWriter, mixed: number, node: number): void {
  const segment = segmentFor(writer, mixed);
  const info = writer.segments.get(segment)!;
  const { words } = writer.view;
  const base = segment * UNIT_WORDS;
  let slot = mixed & SLOT_MASK;
  while (words[base + slot * 2 + 1]! > 0) slot = (slot + 1) & SLOT_MASK;
  const at = base + slot * 2;
  if (words[at + 1] === 0) info.used++;
  info.live++;
  // A reader that sees the new hash with the old reference, or the reverse, compares names and goes on.
  words[at] = mixed;
  Atomics.store(words, at + 1, node);
}

/** Removes a node's slot: look-ups that pass it go on behind it. */
export function removeSlot(writer: ImageWriter, mixed: number, node: number): void {
  const segment = writer.view.directory[mixed >>> (32 - DIRECTORY_BITS)]!;
  const { words } = writer.view;
  const base = segment * UNIT_WORDS;
  let slot = mixed & SLOT_MASK;
  while (words[base + slot * 2 + 1] !== node) slot = (slot + 1) & SLOT_MASK;
  Atomics.store(words, base + slot * 2 + 1, SLOT_REMOVED);
  writer.segments.get(segment)!.live--;
}

/** The segment that takes a hash, with room for one more. */
function segmentFor(writer: ImageWriter, mixed: number): number {
  const { directory } = writer.view;
  const prefix = mixed >>> (32 - DIRECTORY_BITS);
  let segment = directory[prefix]!;
  if (segment === 0) {
    segment = createSegment(writer, 0);
    for (let index = 0; index < directory.length; index++) Atomics.store(directory, index, segment);
  }
  while (writer.segments.get(segment)!.used >= SEGMENT_MOST_USED) {
    replaceSegment(writer, segment, prefix);
    segment = directory[prefix]!;
  }
  return segment;
}

function createSegment(writer: ImageWriter, depth: number): number {
  const segment = allocate(writer.arena, SEGMENT_UNITS);
  const at = segment * UNIT_WORDS;
  writer.view.words.fill(0, at, at + SEGMENT_UNITS * UNIT_WORDS);
  writer.segments.set(segment, { depth, live: 0, used: 0 });
  return segment;
}

/** Replaces a full segment: by a clean copy where most of it is removed slots, else by two halves. */
function replaceSegment(writer: ImageWriter, segment: number, prefix: number): void {
  const info = writer.segments.get(segment)!;
  const halve = info.live > SEGMENT_SLOTS / 2 && info.depth < DIRECTORY_BITS;
  if (!halve && info.live >= SEGMENT_MOST_USED) throw new RangeError("the name table has reached its largest size");
  const depth = halve ? info.depth + 1 : info.depth;
  const low = createSegment(writer, depth);
  const high = halve ? createSegment(writer, depth) : low;
  const { words, directory, control } = writer.view;
  const base = segment * UNIT_WORDS;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const node = words[base + slot * 2 + 1]!;
    if (node <= 0) continue;
    const mixed = words[base + slot * 2]!;
    const upper = halve && (mixed >>> (32 - depth)) % 2 === 1;
    copySlot(writer, upper ? high : low, mixed, node);
  }
  const span = 1 << (DIRECTORY_BITS - info.depth);
  const first = prefix - (prefix % span);
  // A writer that dies among these stores leaves the old segment to its successor, which goes back to it: it has every name.
  control[CONTROL.SPLIT_FIRST] = first;
  control[CONTROL.SPLIT_SPAN] = span;
  Atomics.store(control, CONTROL.SPLIT_SEGMENT, segment);
  for (let index = 0; index < span; index++) {
    Atomics.store(directory, first + index, halve && index >= span / 2 ? high : low);
  }
  Atomics.store(control, CONTROL.SPLIT_SEGMENT, 0);
  writer.segments.delete(segment);
  retire(writer.retired, writer.view.control, segment, SEGMENT_UNITS);
}

function copySlot(writer: ImageWriter, segment: number, mixed: number, node: number): void {
  const { words } = writer.view;
  const base = segment * UNIT_WORDS;
  let slot = mixed & SLOT_MASK;
  while (words[base + slot * 2 + 1] !== 0) slot = (slot + 1) & SLOT_MASK;
  words[base + slot * 2] = mixed;
  words[base + slot * 2 + 1] = node;
  const info = writer.segments.get(segment)!;
  info.live++;
  info.used++;
}
