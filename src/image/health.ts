/**
 * Health words: what the probes know, where the answer threads read it. A slot belongs to one distinct probe and is two
 * words, its state and its smoothed latency in microseconds. The prober writes them, each with one store; a reader may be
 * a batch behind. No slot is given to another probe while a reader may still hold an RRset that names it.
 */
import { advanceEpoch, epochIsOver } from "./reclaim.ts";
import { CONTROL, HEALTH_SLOTS, type SharedImage } from "./shared.ts";

export const HEALTH = { UNKNOWN: 0, HEALTHY: 1, UNHEALTHY: 2 } as const;
export type Health = (typeof HEALTH)[keyof typeof HEALTH];

export type HealthSlots = {
  readonly control: Int32Array;
  readonly words: Int32Array;
  readonly free: number[];
  readonly retired: { readonly slot: number; readonly epoch: number }[];
  next: number;
};

/** Opens the slots for the thread that hands them out. Slot 0 is nobody's: it means "not probed". */
export function openHealthSlots(shared: SharedImage): HealthSlots {
  return {
    control: new Int32Array(shared.control),
    words: new Int32Array(shared.health),
    free: [],
    retired: [],
    next: 1,
  };
}

/** A slot for a new probe, its state unknown. Throws a RangeError where none is left. */
export function takeHealthSlot(slots: HealthSlots): number {
  while (slots.retired.length > 0 && epochIsOver(slots.control, slots.retired[0]!.epoch)) {
    slots.free.push(slots.retired.shift()!.slot);
  }
  const slot = slots.free.pop() ?? slots.next++;
  if (slot >= HEALTH_SLOTS) throw new RangeError("no health slot is left");
  Atomics.store(slots.words, slot * 2, HEALTH.UNKNOWN);
  Atomics.store(slots.words, slot * 2 + 1, 0);
  return slot;
}

/** Gives a slot back, after every RRset that names it was unlinked. */
export function releaseHealthSlot(slots: HealthSlots, slot: number): void {
  slots.retired.push({ slot, epoch: Atomics.load(slots.control, CONTROL.EPOCH) });
  advanceEpoch(slots.control);
}

/** Writes a probe's verdict and its smoothed latency in microseconds. */
export function setHealth(words: Int32Array, slot: number, state: Health, latencyUs: number): void {
  Atomics.store(words, slot * 2 + 1, latencyUs);
  Atomics.store(words, slot * 2, state);
}
