/**
 * How a thread reads an image. A view's arrays have a fixed length, which V8 reads at full speed, over an arena that
 * grows; they are made anew when the generation has changed, or when a reference points behind them.
 */

import { mixHash, NODE, SEGMENT_SLOTS, UNIT_BYTES, UNIT_WORDS } from "./layout.ts";
import type { NameKey } from "./name-key.ts";
import { CONTROL, DIRECTORY_DEPTH_AT, EPOCH_STRIDE, EPOCHS_AT, type SharedImage } from "./shared.ts";

export type ImageView = {
  readonly shared: SharedImage;
  readonly control: Int32Array;
  readonly directory: Int32Array;
  words: Int32Array;
  bytes: Uint8Array;
  /** Over the same memory: what lies at any offset is read several bytes at a time, in a fraction of the time. */
  data: DataView;
  generation: number;
  /** References below it lie inside `words` and `bytes`. */
  limit: number;
};

export function openView(shared: SharedImage): ImageView {
  const length = shared.arena.byteLength;
  return {
    shared,
    control: new Int32Array(shared.control),
    directory: new Int32Array(shared.directory),
    words: new Int32Array(shared.arena, 0, length / 4),
    bytes: new Uint8Array(shared.arena, 0, length),
    data: new DataView(shared.arena, 0, length),
    generation: 0,
    limit: length / UNIT_BYTES,
  };
}

/** Takes over what the arena has grown by. */
export function refreshView(view: ImageView): void {
  const length = view.shared.arena.byteLength;
  if (length / UNIT_BYTES === view.limit) return;
  view.words = new Int32Array(view.shared.arena, 0, length / 4);
  view.bytes = new Uint8Array(view.shared.arena, 0, length);
  view.data = new DataView(view.shared.arena, 0, length);
  view.limit = length / UNIT_BYTES;
}

/**
 * Begins to read: blocks that are reachable from now on stay until `leaveImage`.
 * The generation is loaded atomically after the epoch is stored atomically: no later read can move ahead of either, on
 * arm64 neither.
 */
export function enterImage(view: ImageView, thread: number): void {
  const { control } = view;
  Atomics.store(control, EPOCHS_AT + thread * EPOCH_STRIDE, Atomics.load(control, CONTROL.EPOCH));
  const generation = Atomics.load(control, CONTROL.GENERATION);
  if (generation !== view.generation) {
    view.generation = generation;
    refreshView(view);
  }
}

/** Ends reading: the thread holds no reference into the image any more. */
export function leaveImage(view: ImageView, thread: number): void {
  Atomics.store(view.control, EPOCHS_AT + thread * EPOCH_STRIDE, 0);
}

/** The word of the directory that names the segment of a mixed hash. */
export function directoryIndex(depth: number, mixed: number): number {
  return (1 << depth) + (mixed >>> (32 - depth));
}

/** Depth of the directory in use, for the image writer and whoever knows it to rest: see segmentOf. */
export function directoryDepth({ directory }: ImageView): number {
  return directory[DIRECTORY_DEPTH_AT]!;
}

/** The words of the directory in use, under the same condition. */
export function directoryInUse(view: ImageView): Int32Array {
  const depth = directoryDepth(view);
  return view.directory.subarray(1 << depth, 2 << depth);
}

/**
 * The segment that a mixed hash belongs to; 0 while the image is empty.
 *
 * The depth is read anew each time, since a directory that is no longer in use names segments that have been replaced: names
 * that came later are not in them. It stands in two words, so that which one is read depends on the hash, and thus on the
 * incarnation that the hash was made for: no processor reads it ahead of the zone body that told the incarnation.
 */
export function segmentOf({ directory }: ImageView, mixed: number): number {
  const depth = directory[DIRECTORY_DEPTH_AT + (mixed >>> 31)]!;
  return directory[directoryIndex(depth, mixed)]!;
}

/** The first word of the segment that a mixed hash belongs to; -1 while the image is empty. */
export function segmentAt(view: ImageView, mixed: number): number {
  const segment = segmentOf(view, mixed);
  if (segment === 0) return -1;
  if (segment >= view.limit) refreshView(view);
  return segment * UNIT_WORDS;
}

/** The word at which the search for a mixed hash begins; -1 while the image is empty. */
export function slotOf(view: ImageView, mixed: number): number {
  const base = segmentAt(view, mixed);
  return base < 0 ? -1 : base + (mixed & (SEGMENT_SLOTS - 1)) * 2;
}

/**
 * The node of an incarnation whose name is key.lower[from, to) with hash `hash`; 0 where there is none.
 *
 * These are plain reads. `enterImage` has put them all behind the thread's epoch, and each of them finds its block through
 * the reference that the read before it returned, which keeps their order on every processor that Node runs on.
 */
export function findNode(
  view: ImageView,
  incarnation: number,
  hash: number,
  key: NameKey,
  from: number,
  to: number,
): number {
  const mixed = mixHash(hash, incarnation);
  const segment = segmentOf(view, mixed);
  if (segment === 0) return 0;
  if (segment >= view.limit) refreshView(view);
  const base = segment * UNIT_WORDS;
  let slot = mixed & (SEGMENT_SLOTS - 1);
  for (;;) {
    const at = base + slot * 2;
    const node = view.words[at + 1]!;
    if (node === 0) return 0;
    if (view.words[at] === mixed && node > 0 && isNode(view, node, incarnation, key, from, to)) return node;
    slot = (slot + 1) & (SEGMENT_SLOTS - 1);
  }
}

function isNode(view: ImageView, node: number, incarnation: number, key: NameKey, from: number, to: number): boolean {
  if (node >= view.limit) refreshView(view);
  const { words } = view;
  const at = node * UNIT_WORDS;
  const length = to - from;
  if (words[at + NODE.INCARNATION] !== incarnation || (words[at + NODE.META]! & 0xff) !== length) return false;
  return sameBytes(view.data, node * UNIT_BYTES + NODE.NAME_BYTE, key.data, from, length);
}

/** Whether `length` bytes at `at` of one memory are those at `from` of another. */
export function sameBytes(data: DataView, at: number, other: DataView, from: number, length: number): boolean {
  if (length < 4) {
    for (let index = 0; index < length; index++) {
      if (data.getUint8(at + index) !== other.getUint8(from + index)) return false;
    }
    return true;
  }
  // The last word may overlap the one before: there is no rest to take byte by byte.
  const last = length - 4;
  for (let index = 0; index < last; index += 4) {
    if (data.getInt32(at + index, true) !== other.getInt32(from + index, true)) return false;
  }
  return data.getInt32(at + last, true) === other.getInt32(from + last, true);
}

/** Copies `length` bytes, four at least, at `from` of one memory to `to` of another. */
export function copyBytes(target: DataView, to: number, source: DataView, from: number, length: number): void {
  const last = length - 4;
  for (let index = 0; index < last; index += 4) target.setInt32(to + index, source.getInt32(from + index, true), true);
  target.setInt32(to + last, source.getInt32(from + last, true), true);
}

/** On x64 no read moves ahead of another; elsewhere an atomic store keeps those before it from moving behind it. */
const READS_STAY_IN_ORDER = process.arch === "x64";
const fence = new Int32Array(new SharedArrayBuffer(4));

/** Reads a word behind everything that was read before, and ahead of everything that is read after. */
export function readInOrder(words: Int32Array, at: number): number {
  if (READS_STAY_IN_ORDER) return words[at]!;
  Atomics.store(fence, 0, 0);
  return Atomics.load(words, at);
}
