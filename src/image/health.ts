/**
 * Health words: what the probes know, where the answer threads read it. A slot belongs to one distinct probe; the prober
 * writes its verdict, state and smoothed latency, with one store, and a reader may be a batch behind. The key of the probe
 * stands beside it, so that a successor of the thread that hands out slots finds each probe in its slot. No slot is given
 * to another probe while a reader may still hold an RRset that names it.
 */
import { advanceEpoch, epochIsOver } from "./reclaim.ts";
import { CONTROL, HEALTH_SLOTS, type SharedImage } from "./shared.ts";

/** No state but UNHEALTHY has its bit. */
export const HEALTH = { UNKNOWN: 0, HEALTHY: 1, UNHEALTHY: 2 } as const;
export type Health = (typeof HEALTH)[keyof typeof HEALTH];

/**
 * Words of a slot: where the column of each begins, in which the slot's own is the one with its number. The verdicts that
 * answers read for every value lie close together then, and stay in a processor's caches. KEY_HIGH and KEY_LOW are 0 in a
 * slot that nobody has.
 */
export const HEALTH_WORD = {
  /** Bits 0 and 1: HEALTH; bits 2 to 31: the smoothed latency in microseconds, 0 where none was measured. */
  VERDICT: 0,
  KEY_HIGH: HEALTH_SLOTS,
  KEY_LOW: 2 * HEALTH_SLOTS,
} as const;

/** Among the words of slot 0, of which VERDICT stays 0 for values without a probe: how many slots were ever used. */
export const HEALTH_SLOTS_USED = HEALTH_WORD.KEY_HIGH;

const STATE_BITS = 2;
const STATE_MASK = 3;
/** The longest smoothed latency that is told apart: nearly 18 minutes. */
const LATENCY_US_MAX = 2 ** 30 - 1;

/** The state in a word of VERDICT. */
export function healthOf(verdict: number): Health {
  return (verdict & STATE_MASK) as Health;
}

/** 1 where a word of VERDICT says unhealthy, else 0, without a branch: which of many are is what a processor guesses wrong. */
export function oneIfUnhealthy(verdict: number): number {
  return (verdict & HEALTH.UNHEALTHY) >>> 1;
}

/** The smoothed latency in a word of VERDICT, in microseconds; 0: not measured. */
export function latencyUsOf(verdict: number): number {
  return verdict >>> STATE_BITS;
}

/** 64 bits that tell a probe from all others: 16 hexadecimal digits, not all of them 0. */
export type HealthKey = string;

type Slot = { readonly slot: number; holders: number };

export type HealthSlots = {
  readonly control: Int32Array;
  readonly words: Int32Array;
  readonly byKey: Map<HealthKey, Slot>;
  readonly free: number[];
  readonly retired: { readonly slot: number; readonly epoch: number }[];
  next: number;
};

/**
 * Opens the slots for the thread that hands them out. Slot 0 is nobody's: it means "not probed". Those of a predecessor are
 * found with nobody holding them; `dropUnheld` gives back those that nobody has taken by then.
 */
export function openHealthSlots(shared: SharedImage): HealthSlots {
  const words = new Int32Array(shared.health);
  const slots: HealthSlots = {
    control: new Int32Array(shared.control),
    words,
    byKey: new Map(),
    free: [],
    retired: [],
    next: 1,
  };
  const used = words[HEALTH_SLOTS_USED]!;
  for (let slot = 1; slot <= used; slot++) {
    const high = words[HEALTH_WORD.KEY_HIGH + slot]!;
    const low = words[HEALTH_WORD.KEY_LOW + slot]!;
    // A slot on its way back has no key any more; a reader may still hold an RRset that names it.
    if (high === 0 && low === 0) slots.retired.push({ slot, epoch: Atomics.load(slots.control, CONTROL.EPOCH) });
    else slots.byKey.set(keyText(high, low), { slot, holders: 0 });
  }
  slots.next = used + 1;
  if (slots.retired.length > 0) advanceEpoch(slots.control);
  return slots;
}

/** The slot of a probe for one more holder; a new one's state is unknown. Throws a RangeError where none is left. */
export function takeHealthSlot(slots: HealthSlots, key: HealthKey): number {
  const known = slots.byKey.get(key);
  if (known !== undefined) {
    known.holders += 1;
    return known.slot;
  }
  if (slots.free.length === 0) freeRetired(slots);
  const slot = slots.free.pop() ?? slots.next;
  if (slot >= HEALTH_SLOTS) throw new RangeError("no health slot is left");
  const { words } = slots;
  setHealth(words, slot, HEALTH.UNKNOWN, 0);
  Atomics.store(words, HEALTH_WORD.KEY_LOW + slot, Number.parseInt(key.slice(8), 16) | 0);
  Atomics.store(words, HEALTH_WORD.KEY_HIGH + slot, Number.parseInt(key.slice(0, 8), 16) | 0);
  if (slot === slots.next) {
    slots.next += 1;
    Atomics.store(words, HEALTH_SLOTS_USED, slot);
  }
  slots.byKey.set(key, { slot, holders: 1 });
  return slot;
}

/** Some at a time: after the end of a large zone a hundred thousand are waiting. */
const FREED_AT_ONCE = 256;

function freeRetired({ control, retired, free }: HealthSlots): void {
  let count = 0;
  while (count < FREED_AT_ONCE && count < retired.length && epochIsOver(control, retired[count]!.epoch)) count += 1;
  for (const { slot } of retired.splice(0, count)) free.push(slot);
}

/**
 * One holder less, after every RRset that named the slot for its sake was unlinked. Returns true where that was the last: the
 * slot is given back, and its probe may end.
 */
export function releaseHealthSlot(slots: HealthSlots, key: HealthKey): boolean {
  const known = slots.byKey.get(key);
  if (known === undefined) return false;
  known.holders -= 1;
  if (known.holders > 0) return false;
  giveBack(slots, key, known.slot);
  return true;
}

/** Gives back the slots of a predecessor that nobody has taken, after all of the image was written anew. */
export function dropUnheld(slots: HealthSlots): void {
  for (const [key, { slot, holders }] of slots.byKey) if (holders === 0) giveBack(slots, key, slot);
}

function giveBack(slots: HealthSlots, key: HealthKey, slot: number): void {
  slots.byKey.delete(key);
  Atomics.store(slots.words, HEALTH_WORD.KEY_HIGH + slot, 0);
  Atomics.store(slots.words, HEALTH_WORD.KEY_LOW + slot, 0);
  slots.retired.push({ slot, epoch: Atomics.load(slots.control, CONTROL.EPOCH) });
  advanceEpoch(slots.control);
}

function keyText(high: number, low: number): HealthKey {
  return (high >>> 0).toString(16).padStart(8, "0") + (low >>> 0).toString(16).padStart(8, "0");
}

/** Writes a probe's verdict: its state and its smoothed latency in whole microseconds, a longer one as the longest. */
export function setHealth(words: Int32Array, slot: number, state: Health, latencyUs: number): void {
  Atomics.store(words, HEALTH_WORD.VERDICT + slot, state | (Math.min(latencyUs, LATENCY_US_MAX) << STATE_BITS));
}
