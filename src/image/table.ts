/**
 * The name table, as its writer sees it: extendible hashing. The upper bits of a hash choose a word of the directory, the
 * word names a segment, and the lower bits are where the search in the segment begins. A full segment is replaced by two;
 * readers find every name in the old one until the directory names the new ones, and nothing is ever moved under them.
 */
import { allocate } from "./arena.ts";
import { SEGMENT_SLOTS, SEGMENT_UNITS, SLOT_REMOVED, UNIT_WORDS } from "./layout.ts";
import { retire } from "./reclaim.ts";
import { CONTROL, DIRECTORY_DEPTH_AT, DIRECTORY_DEPTH_MAX } from "./shared.ts";
import { directoryDepth, directoryIndex, segmentOf } from "./view.ts";
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
  const { words } = writer.view;
  const segment = segmentOf(writer.view, mixed);
  const base = segment * UNIT_WORDS;
  let slot = mixed & SLOT_MASK;
  while (words[base + slot * 2 + 1] !== node) slot = (slot + 1) & SLOT_MASK;
  Atomics.store(words, base + slot * 2 + 1, SLOT_REMOVED);
  writer.segments.get(segment)!.live--;
}

/** The segment that takes a hash, with room for one more. */
function segmentFor(writer: ImageWriter, mixed: number): number {
  const { view } = writer;
  let segment = segmentOf(view, mixed);
  if (segment === 0) {
    segment = createSegment(writer, 0, writer.sweep.number);
    nameSegments(writer, 0, 1 << directoryDepth(view), segment);
  }
  while (writer.segments.get(segment)!.used >= SEGMENT_MOST_USED) {
    replaceSegment(writer, segment, mixed);
    segment = segmentOf(view, mixed);
  }
  return segment;
}

/** Lets words [from, from + count) of the directory in use name a segment. */
function nameSegments({ view }: ImageWriter, from: number, count: number, segment: number): void {
  const first = (1 << directoryDepth(view)) + from;
  for (let index = 0; index < count; index++) Atomics.store(view.directory, first + index, segment);
}

/**
 * Puts a directory of twice the size into use, before any segment is replaced in it. A reader that has just read the depth
 * before may still look into the directory before, which is as it was at that moment.
 */
function deepenDirectory({ view }: ImageWriter): void {
  const { directory } = view;
  const depth = directoryDepth(view);
  for (let index = 0; index < 2 << depth; index++) {
    Atomics.store(directory, (2 << depth) + index, directory[(1 << depth) + (index >>> 1)]!);
  }
  Atomics.store(directory, DIRECTORY_DEPTH_AT, depth + 1);
  Atomics.store(directory, DIRECTORY_DEPTH_AT + 1, depth + 1);
}

function createSegment(writer: ImageWriter, depth: number, swept: number): number {
  const segment = allocate(writer.arena, SEGMENT_UNITS);
  const at = segment * UNIT_WORDS;
  writer.view.words.fill(0, at, at + SEGMENT_UNITS * UNIT_WORDS);
  writer.segments.set(segment, { depth, live: 0, used: 0, swept });
  return segment;
}

/** Replaces the full segment of a hash: by a clean copy where most of it is removed slots, else by two halves. */
function replaceSegment(writer: ImageWriter, segment: number, mixed: number): void {
  const info = writer.segments.get(segment)!;
  const halve = info.live > SEGMENT_SLOTS / 2 && info.depth < DIRECTORY_DEPTH_MAX;
  if (!halve && info.live >= SEGMENT_MOST_USED) throw new RangeError("the name table has reached its largest size");
  if (halve && info.depth === directoryDepth(writer.view)) deepenDirectory(writer);
  const depth = halve ? info.depth + 1 : info.depth;
  // What the sweep has not been through yet is copied as it is, and still has to be swept.
  const low = createSegment(writer, depth, info.swept);
  const high = halve ? createSegment(writer, depth, info.swept) : low;
  const { words } = writer.view;
  const base = segment * UNIT_WORDS;
  for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
    const node = words[base + slot * 2 + 1]!;
    if (node <= 0) continue;
    const hash = words[base + slot * 2]!;
    const upper = halve && ((hash >>> (32 - depth)) & 1) === 1;
    copySlot(writer, upper ? high : low, hash, node);
  }
  const depthInUse = directoryDepth(writer.view);
  const span = 1 << (depthInUse - info.depth);
  const prefix = directoryIndex(depthInUse, mixed) - (1 << depthInUse);
  const first = prefix - (prefix % span);
  const { control } = writer.view;
  // A writer that dies among these stores leaves the old segment to its successor, which goes back to it: it has every name.
  control[CONTROL.SPLIT_FIRST] = (1 << depthInUse) + first;
  control[CONTROL.SPLIT_SPAN] = span;
  Atomics.store(control, CONTROL.SPLIT_SEGMENT, segment);
  if (halve) {
    nameSegments(writer, first, span / 2, low);
    nameSegments(writer, first + span / 2, span / 2, high);
  } else nameSegments(writer, first, span, low);
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
