/**
 * What peers sent and the store has not taken yet. Whole batches, several in one transaction where they are small; two
 * transactions at a time, so that one is worked on while the other goes to the disk.
 */
import type { RefusedItem } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import { BATCH_ITEMS } from "./limits.ts";

export type Arrival = {
  readonly items: readonly RawItem[];
  /** Durable, but for the refused; in the order of arrival. */
  readonly onApplied: (refused: readonly RefusedItem[]) => void;
  /** The store could not take them. */
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

const AT_ONCE = 2;
const SMOOTHING = 0.1;

type Waiting = Arrival & { readonly sinceMs: number };
type State = { waiting: Waiting[]; depth: number; running: number; applyMs: number; told: Promise<void> };

export function createInbox(parts: InboxParts): Inbox {
  const state: State = { waiting: [], depth: 0, running: 0, applyMs: 0, told: Promise.resolve() };
  return {
    offer: (arrival) => {
      state.waiting.push({ ...arrival, sinceMs: parts.now() });
      state.depth += arrival.items.length;
      run(parts, state);
    },
    depth: () => state.depth,
    applyMs: () => state.applyMs,
    idle: async () => {
      while (state.running > 0) await state.told;
    },
  };
}

function run(parts: InboxParts, state: State): void {
  while (state.running < AT_ONCE) {
    const group = takeGroup(state.waiting);
    if (group.length === 0) return;
    state.running++;
    const applied = parts.apply(group.flatMap(({ items }) => items));
    // Told in the order of arrival, whichever transaction ends first.
    const before = state.told;
    state.told = applied.then(
      (refused) => before.then(() => finish(parts, state, group, refused)),
      (thrown) => before.then(() => fail(state, group, thrown)),
    );
    state.told
      .finally(() => {
        state.running--;
        run(parts, state);
      })
      .catch(() => undefined);
  }
}

function takeGroup(waiting: Waiting[]): readonly Waiting[] {
  let items = 0;
  let length = 0;
  for (const arrival of waiting) {
    if (length > 0 && items + arrival.items.length > BATCH_ITEMS) break;
    items += arrival.items.length;
    length++;
  }
  return waiting.splice(0, length);
}

function finish({ now }: InboxParts, state: State, group: readonly Waiting[], refused: readonly RefusedItem[]): void {
  let first = 0;
  for (const { items, sinceMs, onApplied } of group) {
    const end = first + items.length;
    const start = first;
    state.depth -= items.length;
    state.applyMs += SMOOTHING * (now() - sinceMs - state.applyMs);
    const own = refused.filter(({ index }) => index >= start && index < end);
    onApplied(own.map(({ index, reason }) => ({ index: index - start, reason })));
    first = end;
  }
}

function fail(state: State, group: readonly Waiting[], thrown: unknown): void {
  for (const { items, onFailed } of group) {
    state.depth -= items.length;
    onFailed(thrown);
  }
}
