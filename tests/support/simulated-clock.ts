/** Time that passes when a test says so. */
import type { SchedulerClock } from "../../src/health/scheduler.ts";

export type SimulatedClock = SchedulerClock & {
  /** Lets time pass, with everything that is due in it, in order. */
  readonly pass: (ms: number) => Promise<void>;
  /** Lets the time of day jump. */
  readonly jumpWall: (ms: number) => void;
};

/** `wallMs` is the time of day at the start; the clock that only rises begins at `startMs`. */
export function createSimulatedClock(wallMs = 1_800_000_000_000, startMs = 1_000): SimulatedClock {
  let nowMs = startMs;
  let offsetMs = wallMs - startMs;
  let last = 0;
  const timers = new Map<number, { readonly atMs: number; readonly callback: () => void }>();
  const nextTimer = (untilMs: number) => {
    let next: number | undefined;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [id, { atMs }] of timers) {
      if (atMs <= untilMs && atMs < nextMs) {
        next = id;
        nextMs = atMs;
      }
    }
    return next;
  };
  return {
    now: () => nowMs,
    wallMs: () => nowMs + offsetMs,
    after: (delayMs, callback) => {
      const id = ++last;
      timers.set(id, { atMs: nowMs + delayMs, callback });
      return () => void timers.delete(id);
    },
    pass: async (ms) => {
      const untilMs = nowMs + ms;
      for (let id = nextTimer(untilMs); id !== undefined; id = nextTimer(untilMs)) {
        const timer = timers.get(id)!;
        timers.delete(id);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.callback();
        // Promises that the callback has settled, and those that wait for them.
        for (let turn = 0; turn < 4; turn++) await undefined;
      }
      nowMs = untilMs;
    },
    jumpWall: (ms) => {
      offsetMs += ms;
    },
  };
}
