/**
 * Time-outs of many exchanges, nearly all of which are called off: a wheel of lists under one timer of the system, which
 * runs while there is any.
 */

export type Timers = {
  /** Milliseconds that only rise. */
  readonly nowMs: () => number;
  /** Calls back once, after at least `delayMs` and up to TICK_MS later; the result calls it off. */
  readonly after: (delayMs: number, run: () => void) => () => void;
};

export const TICK_MS = 8;
/** Must be a power of two; what lies further ahead than this wheel goes round more than once. */
const SLOTS = 1024;

type Entry = { readonly tick: number; readonly run: () => void; before: Entry | undefined; behind: Entry | undefined };

/** The default clock is the one of this thread. A `run` that throws throws out of the system's timer. */
export function createTimers(nowMs: () => number = () => performance.now()): Timers {
  const slots: (Entry | undefined)[] = new Array(SLOTS).fill(undefined);
  const originMs = nowMs();
  let count = 0;
  let passed = 0;
  let isTicking = false;

  const take = (entry: Entry): boolean => {
    const slot = entry.tick & (SLOTS - 1);
    if (entry.before === undefined) {
      if (slots[slot] !== entry) return false;
      slots[slot] = entry.behind;
    } else {
      entry.before.behind = entry.behind;
    }
    if (entry.behind !== undefined) entry.behind.before = entry.before;
    entry.before = undefined;
    entry.behind = undefined;
    count--;
    return true;
  };
  const runSlot = (tick: number): void => {
    for (let entry = slots[tick & (SLOTS - 1)]; entry !== undefined; ) {
      const next = entry.behind;
      if (entry.tick <= tick && take(entry)) {
        entry.run();
        // What ran may have called off its neighbours: the list is read again from its start.
        entry = slots[tick & (SLOTS - 1)];
      } else {
        entry = next;
      }
    }
  };
  const tickOnce = (): void => {
    const until = Math.floor((nowMs() - originMs) / TICK_MS);
    // After a long stop every slot is due, and once around the wheel is enough.
    const first = Math.max(passed + 1, until - SLOTS + 1);
    for (let tick = first; tick <= until; tick++) runSlot(tick);
    passed = Math.max(passed, until);
  };
  const arm = (): void => {
    isTicking = true;
    setTimeout(() => {
      isTicking = false;
      try {
        tickOnce();
      } finally {
        if (count > 0 && !isTicking) arm();
      }
    }, TICK_MS);
  };
  return {
    nowMs,
    after: (delayMs, run) => {
      const ticks = Math.ceil((nowMs() - originMs + Math.max(0, delayMs)) / TICK_MS);
      const tick = Math.max(ticks, passed + 1);
      const slot = tick & (SLOTS - 1);
      const entry: Entry = { tick, run, before: undefined, behind: slots[slot] };
      if (entry.behind !== undefined) entry.behind.before = entry;
      slots[slot] = entry;
      count++;
      if (!isTicking) arm();
      return () => void take(entry);
    },
  };
}
