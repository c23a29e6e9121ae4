/**
 * What peers sent and the store has not taken yet. Whole batches, several in one transaction where they are small. Small ones
 * go ahead of large ones of other sources, in transactions that the store runs between the slices of large ones; those of one
 * source keep their order, for a zone that becomes active has its records before it.
 */
import type { RefusedItem } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import { BATCH_ITEMS, INBOX_BYTES_MAX, SMALL_ITEMS } from "./limits.ts";

export type Arrival = {
  readonly items: readonly RawItem[];
  /** Of the message that brought them. */
  readonly bytes: number;
  /** Whose it is: the same object for all of one peer. */
  readonly from: object;
  /** Where it came from: the same object for all that keeps its order. */
  readonly source: object;
  /** Durable, but for the refused; in the order of arrival from that source. */
  readonly onApplied: (refused: readonly RefusedItem[]) => void;
  /** The store could not take them, or too much waits for it. */
  readonly onFailed: (thrown: unknown) => void;
};

export type Inbox = {
  readonly offer: (arrival: Arrival) => void;
  /** Items that have arrived and are not applied. */
  readonly depth: () => number;
  /** How long items take from arriving to being on the disk: milliseconds, smoothed. */
  readonly applyMs: () => number;
  /** Resolves when everything that was offered has been told of. */
  readonly idle: () => Promise<void>;
};

export type InboxParts = {
  readonly apply: (items: readonly RawItem[]) => Promise<readonly RefusedItem[]>;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
};

/** Transactions of each size: one is worked on while the other goes to the disk. */
const AT_ONCE = 2;
const SMOOTHING = 0.1;

type Waiting = Arrival & { readonly sinceMs: number };
type Running = { readonly isSmall: boolean; readonly sources: ReadonlySet<object>; readonly told: Promise<void> };
type State = {
  waiting: Waiting[];
  depth: number;
  /** Of all that has arrived and is not told of. */
  bytes: number;
  readonly running: Set<Running>;
  applyMs: number;
  /** Settles when all that has begun of that source has been told of. */
  readonly told: WeakMap<object, Promise<void>>;
};

export function createInbox(parts: InboxParts): Inbox {
  const state: State = { waiting: [], depth: 0, bytes: 0, running: new Set(), applyMs: 0, told: new WeakMap() };
  return {
    offer: (arrival) => {
      state.waiting.push({ ...arrival, sinceMs: parts.now() });
      state.depth += arrival.items.length;
      state.bytes += arrival.bytes;
      makeRoom(state);
      runAll(parts, state);
    },
    depth: () => state.depth,
    applyMs: () => state.applyMs,
    idle: async () => {
      while (state.running.size > 0) await Promise.all(Array.from(state.running, ({ told }) => told));
    },
  };
}

/** Who holds most of what waits is one that sends more than was acknowledged, or larger messages than anybody has to. */
function makeRoom(state: State): void {
  while (state.bytes > INBOX_BYTES_MAX && state.waiting.length > 0) {
    const from = heaviest(state.waiting);
    const dropped = state.waiting.filter((arrival) => arrival.from === from);
    state.waiting = state.waiting.filter((arrival) => arrival.from !== from);
    for (const arrival of dropped) fail(state, arrival, new Error("too much of this peer waits to be stored"));
  }
}

function heaviest(waiting: readonly Waiting[]): object | undefined {
  const sums = new Map<object, number>();
  for (const { from, bytes } of waiting) sums.set(from, (sums.get(from) ?? 0) + bytes);
  const most = Math.max(...sums.values());
  return [...sums].find(([, bytes]) => bytes === most)?.[0];
}

function runAll(parts: InboxParts, state: State): void {
  for (const isSmall of [true, false]) {
    while (runningOf(state, isSmall).length < AT_ONCE) {
      const group = isSmall ? takeSmall(state) : takeLarge(state);
      if (group.length === 0) break;
      run(parts, state, group, isSmall);
    }
  }
}

function runningOf({ running }: State, isSmall: boolean): readonly Running[] {
  return [...running].filter((each) => each.isSmall === isSmall);
}

function run(parts: InboxParts, state: State, group: readonly Waiting[], isSmall: boolean): void {
  const applied = parts.apply(group.flatMap(({ items }) => items));
  let first = 0;
  const all = group.map((arrival) => {
    const start = first;
    first += arrival.items.length;
    // Told in the order of arrival, whichever transaction ends first.
    const before = state.told.get(arrival.source) ?? Promise.resolve();
    const told = before
      .then(() => applied)
      .then(
        (refused) => finish(parts, state, arrival, start, refused),
        (thrown) => fail(state, arrival, thrown),
      )
      // Who is told may throw; whoever comes behind is told all the same.
      .catch(() => undefined);
    state.told.set(arrival.source, told);
    return told;
  });
  const sources = new Set(group.map(({ source }) => source));
  const running: Running = { isSmall, sources, told: Promise.all(all).then(() => over()) };
  const over = () => {
    state.running.delete(running);
    runAll(parts, state);
  };
  state.running.add(running);
}

function isSmall({ items }: Waiting): boolean {
  return items.length <= SMALL_ITEMS;
}

/** Small ones with nothing large of their source before them. */
function takeSmall(state: State): readonly Waiting[] {
  const behind = new Set(runningOf(state, false).flatMap(({ sources }) => [...sources]));
  return take(state, SMALL_ITEMS, (arrival) => {
    if (isSmall(arrival) && !behind.has(arrival.source)) return true;
    behind.add(arrival.source);
    return false;
  });
}

/** Large ones, with the small ones behind them, that have no small one of their source before them. */
function takeLarge(state: State): readonly Waiting[] {
  const taken = new Set<object>();
  const behind = new Set<object>();
  return take(state, BATCH_ITEMS, (arrival) => {
    const { source } = arrival;
    if (!behind.has(source) && (taken.has(source) || !isSmall(arrival))) {
      taken.add(source);
      return true;
    }
    behind.add(source);
    return false;
  });
}

/** Of those that may go, in the order of arrival, as many as have so many items together; at least one. */
function take(state: State, itemsMax: number, mayGo: (arrival: Waiting) => boolean): readonly Waiting[] {
  const group: Waiting[] = [];
  const left: Waiting[] = [];
  let items = 0;
  let isFull = false;
  for (const arrival of state.waiting) {
    if (isFull || !mayGo(arrival)) {
      left.push(arrival);
      continue;
    }
    isFull = group.length > 0 && items + arrival.items.length > itemsMax;
    (isFull ? left : group).push(arrival);
    items += arrival.items.length;
  }
  state.waiting = left;
  return group;
}

function finish(
  { now }: InboxParts,
  state: State,
  { items, bytes, sinceMs, onApplied }: Waiting,
  start: number,
  refused: readonly RefusedItem[],
): void {
  const end = start + items.length;
  state.depth -= items.length;
  state.bytes -= bytes;
  state.applyMs += SMOOTHING * (now() - sinceMs - state.applyMs);
  const own = refused.filter(({ index }) => index >= start && index < end);
  onApplied(own.map(({ index, reason }) => ({ index: index - start, reason })));
}

function fail(state: State, { items, bytes, onFailed }: Waiting, thrown: unknown): void {
  state.depth -= items.length;
  state.bytes -= bytes;
  onFailed(thrown);
}
