/**
 * What is to be sent to one peer: refs only, for the item is read when it is sent, and so is always the latest. A ref that
 * waits already moves to the end. What was sent and not acknowledged is kept in batches, in the order of their numbers.
 */
import type { ItemRef } from "../store/replica.ts";
import { QUEUE_BYTES_MAX, QUEUE_ENTRY_BYTES, QUEUE_REFS_MAX, REFUSED_REFS_MAX } from "./limits.ts";
import type { Refused } from "./messages.ts";

/** Entries that were added at about the same time; who waits for them waits for all older ones too. */
type Generation = {
  readonly number: number;
  readonly atMs: number;
  outstanding: number;
  readonly waiting: (() => void)[];
};

type Batch = {
  readonly last: number;
  readonly entries: readonly Entry[];
  /** By number, from `last` - length + 1 on; one ref may be several items. */
  readonly refs: readonly ItemRef[];
};
type Entry = readonly [ref: ItemRef, generation: number];

export type Outbox = {
  /** False where that is too much: then nothing waits any more, and only anti-entropy brings the peer up to date. */
  readonly add: (refs: readonly ItemRef[], nowMs: number) => boolean;
  /** Takes refs out to be sent; they count as waiting until `sent` and `acknowledge`, or `giveBack`. */
  readonly take: (limit: number) => readonly Entry[];
  /** `refs` by item. Without items there is nothing to acknowledge. */
  readonly sent: (entries: readonly Entry[], refs: readonly ItemRef[], last: number) => void;
  /** All batches that end at or before that number. */
  readonly acknowledge: (through: number, refused: readonly Refused[]) => void;
  /** The connection has gone: what was not acknowledged is to be sent again, first of all. */
  readonly giveBack: () => void;
  /** Forgets everything; whoever waits is told. Returns how many there were. */
  readonly drop: () => number;
  /** Refs that wait or are not acknowledged. */
  readonly size: () => number;
  readonly waiting: () => number;
  /** The ref that is sent next. */
  readonly head: () => ItemRef | undefined;
  readonly batchesInFlight: () => number;
  readonly bytes: () => number;
  /** Since when the oldest of them is there, of the clock given to `add`; undefined where there is none. */
  readonly oldestMs: () => number | undefined;
  /** Calls once all that is there now has been acknowledged or refused, or was dropped; at once where there is nothing. */
  readonly afterAll: (done: () => void) => void;
  /** Why the peer refused the version that it was sent last; undefined where it did not. */
  readonly refusalOf: (ref: ItemRef) => string | undefined;
};

/** A generation lasts that long, and longer where there are old ones, so that there are never many. */
const GENERATION_MS = 100;
const GENERATION_SHARE = 100;

type State = {
  queue: Map<ItemRef, number>;
  batches: Batch[];
  generations: Generation[];
  refused: Map<ItemRef, string>;
  bytes: number;
  size: number;
  lastGeneration: number;
};

export type OutboxLimits = { readonly refs: number; readonly bytes: number };
export const OUTBOX_LIMITS: OutboxLimits = { refs: QUEUE_REFS_MAX, bytes: QUEUE_BYTES_MAX };

export function createOutbox(limits: OutboxLimits): Outbox {
  const state: State = {
    queue: new Map(),
    batches: [],
    generations: [],
    refused: new Map(),
    bytes: 0,
    size: 0,
    lastGeneration: 0,
  };
  return {
    add: (refs, nowMs) => {
      for (const ref of refs) addRef(state, ref, nowMs);
      if (state.size <= limits.refs && state.bytes <= limits.bytes) return true;
      drop(state);
      return false;
    },
    take: (limit) => takeFrom(state.queue, limit),
    sent: (entries, refs, last) => {
      if (refs.length > 0) state.batches.push({ entries, refs, last });
      else settle(state, entries);
    },
    acknowledge: (through, refused) => acknowledge(state, through, refused),
    giveBack: () => giveBack(state),
    drop: () => drop(state),
    size: () => state.size,
    waiting: () => state.queue.size,
    head: () => state.queue.keys().next().value,
    batchesInFlight: () => state.batches.length,
    bytes: () => state.bytes,
    oldestMs: () => state.generations[0]?.atMs,
    afterAll: (done) => {
      const newest = state.generations.at(-1);
      if (newest === undefined) done();
      else newest.waiting.push(done);
    },
    refusalOf: (ref) => state.refused.get(ref),
  };
}

function addRef(state: State, ref: ItemRef, nowMs: number): void {
  const known = state.queue.get(ref);
  if (known !== undefined) {
    // Later than what was queued meanwhile: a record after the zone that was made anew.
    state.queue.delete(ref);
    state.queue.set(ref, known);
    return;
  }
  const generation = generationAt(state, nowMs);
  generation.outstanding++;
  state.queue.set(ref, generation.number);
  state.size++;
  state.bytes += costOf(ref);
}

function costOf(ref: ItemRef): number {
  return ref.length + QUEUE_ENTRY_BYTES;
}

function generationAt(state: State, nowMs: number): Generation {
  const { generations } = state;
  const newest = generations.at(-1);
  const oldest = generations[0];
  if (newest !== undefined && oldest !== undefined && newest.waiting.length === 0) {
    const span = Math.max(GENERATION_MS, (nowMs - oldest.atMs) / GENERATION_SHARE);
    if (nowMs - newest.atMs < span) return newest;
  }
  state.lastGeneration++;
  const generation = { number: state.lastGeneration, atMs: nowMs, outstanding: 0, waiting: [] };
  generations.push(generation);
  return generation;
}

function takeFrom(queue: Map<ItemRef, number>, limit: number): Entry[] {
  const taken: Entry[] = [];
  for (const entry of queue) {
    if (taken.length >= limit) break;
    taken.push(entry);
    queue.delete(entry[0]);
  }
  return taken;
}

function acknowledge(state: State, through: number, refused: readonly Refused[]): void {
  const reasons = new Map(refused);
  while (state.batches[0] !== undefined && state.batches[0].last <= through) {
    const batch = state.batches.shift();
    if (batch === undefined) break;
    const first = batch.last - batch.refs.length + 1;
    for (const [index, ref] of batch.refs.entries()) noteRefusal(state, ref, reasons.get(first + index));
    settle(state, batch.entries);
  }
}

function noteRefusal({ refused }: State, ref: ItemRef, reason: string | undefined): void {
  if (reason === undefined) refused.delete(ref);
  else if (refused.size < REFUSED_REFS_MAX || refused.has(ref)) refused.set(ref, reason);
}

/** They are no longer outstanding: whoever waited for the oldest ones hears of it. */
function settle(state: State, entries: readonly Entry[]): void {
  let generation: Generation | undefined;
  for (const [ref, number] of entries) {
    if (generation?.number !== number) generation = state.generations.find((each) => each.number === number);
    if (generation !== undefined) generation.outstanding--;
    state.size--;
    state.bytes -= costOf(ref);
  }
  while (state.generations[0]?.outstanding === 0) {
    for (const done of state.generations.shift()?.waiting ?? []) done();
  }
}

function giveBack(state: State): void {
  if (state.batches.length === 0) return;
  const entries = [...state.batches.flatMap((batch) => batch.entries), ...state.queue];
  state.batches = [];
  state.queue = new Map();
  const twice: Entry[] = [];
  for (const [ref, generation] of entries) {
    const known = state.queue.get(ref);
    if (known !== undefined) {
      // One of the two suffices: at the later place, for those that wait for the earlier.
      state.queue.delete(ref);
      twice.push([ref, Math.max(known, generation)]);
    }
    state.queue.set(ref, Math.min(known ?? generation, generation));
  }
  settle(state, twice);
}

function drop(state: State): number {
  const { size } = state;
  const waiting = state.generations.flatMap((generation) => generation.waiting);
  state.queue = new Map();
  state.batches = [];
  state.generations = [];
  state.size = 0;
  state.bytes = 0;
  for (const done of waiting) done();
  return size;
}
