/**
 * Memory of the arena, in units of 16 bytes. Only the thread that holds the image writer allocates and frees; what is free
 * is known to that thread alone, and a successor works it out anew from what is reachable (recover.ts).
 */
import { UNIT_BYTES } from "./layout.ts";
import { CONTROL } from "./shared.ts";
import { type ImageView, refreshView } from "./view.ts";

export type Arena = {
  readonly view: ImageView;
  /** Free blocks by their number of units. */
  readonly free: Map<number, number[]>;
  freeUnits: number;
  /** The window that new blocks are cut from: units [next, end). */
  next: number;
  end: number;
  /** Ends that the arena had before it grew. A reader's view may stop there, so no block lies across one. */
  readonly formerEnds: Set<number>;
};

/** The arena grows by an eighth of what it has, at least by this. */
const GROWTH_MIN_UNITS = 2 ** 20 / UNIT_BYTES;
/** A free block must be this large to become the window. */
const WINDOW_MIN_UNITS = 2 ** 16 / UNIT_BYTES;

/** Opens an arena of which everything is free, but for unit 0: a reference 0 means none. */
export function openArena(view: ImageView): Arena {
  return { view, free: new Map(), freeUnits: 0, next: 1, end: view.limit, formerEnds: new Set() };
}

/** Returns a block of `units`; its content is undefined. Throws a RangeError where the arena is at its maximum. */
export function allocate(arena: Arena, units: number): number {
  const fitting = arena.free.get(units)?.pop();
  if (fitting !== undefined) {
    arena.freeUnits -= units;
    return fitting;
  }
  if (arena.next + units > arena.end) openWindow(arena, units);
  const reference = arena.next;
  arena.next += units;
  return reference;
}

export function release(arena: Arena, reference: number, units: number): void {
  if (units === 0) return;
  arena.freeUnits += units;
  const blocks = arena.free.get(units);
  if (blocks === undefined) arena.free.set(units, [reference]);
  else blocks.push(reference);
}

/** Finds a new window: the largest free block once much is free, else memory that the arena grows by. */
function openWindow(arena: Arena, units: number): void {
  release(arena, arena.next, arena.end - arena.next);
  arena.end = arena.next;
  if (arena.freeUnits > arena.view.limit / 8) {
    const largest = mergeFree(arena);
    if (largest >= Math.max(units, WINDOW_MIN_UNITS)) {
      arena.next = arena.free.get(largest)!.pop()!;
      arena.end = arena.next + largest;
      arena.freeUnits -= largest;
      return;
    }
  }
  const start = arena.view.limit;
  arena.end = grow(arena.view, units);
  arena.next = start;
  arena.formerEnds.add(start);
}

/** Grows the arena by at least `units` and returns its new end. */
function grow(view: ImageView, units: number): number {
  const more = Math.max(GROWTH_MIN_UNITS, Math.ceil(view.limit / 8), units);
  // Whole pages: the operating system hands out nothing smaller.
  const wanted = Math.ceil(((view.limit + more) * UNIT_BYTES) / 4096) * 4096;
  const bytes = Math.min(wanted, view.shared.arena.maxByteLength);
  if (bytes < (view.limit + units) * UNIT_BYTES) throw new RangeError("the image has reached its largest size");
  view.shared.arena.grow(bytes);
  refreshView(view);
  Atomics.add(view.control, CONTROL.GENERATION, 1);
  return view.limit;
}

/** Joins free blocks that touch each other, but not across a former end. Returns the size of the largest. */
function mergeFree(arena: Arena): number {
  const blocks: [reference: number, units: number][] = [];
  for (const [units, references] of arena.free) for (const reference of references) blocks.push([reference, units]);
  blocks.sort((a, b) => a[0] - b[0]);
  arena.free.clear();
  arena.freeUnits = 0;
  let largest = 0;
  let start = 0;
  let end = 0;
  for (const [reference, units] of blocks) {
    if (reference !== end || arena.formerEnds.has(reference)) {
      release(arena, start, end - start);
      start = reference;
    }
    end = reference + units;
    largest = Math.max(largest, end - start);
  }
  release(arena, start, end - start);
  return largest;
}

/** Bytes of the arena that hold something. */
export function usedBytes(arena: Arena): number {
  return (arena.view.limit - 1 - arena.freeUnits - (arena.end - arena.next)) * UNIT_BYTES;
}
