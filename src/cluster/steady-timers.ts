/**
 * Timers that know when this process itself has stood still. After a stop the event loop runs what is overdue before it reads
 * what has come meanwhile, and would find everybody silent; whoever judges others by a timer gets it from here.
 */
import type { Timers } from "./transport.ts";

/** So late a timer comes only where the loop was held up. */
const LATE_MS = 150;
/** What has arrived meanwhile is read within this time. */
const GRACE_MS = 300;

/** Runs late by GRACE_MS where the process stood still; `onStall` hears of it. */
export function createSteadyTimers(timers: Timers, onStall: (lateMs: number) => void): Timers {
  return {
    now: timers.now,
    after: (delayMs, run) => {
      let cancel = (): void => undefined;
      const arm = (ms: number): void => {
        const dueMs = timers.now() + ms;
        cancel = timers.after(ms, () => {
          const lateMs = timers.now() - dueMs;
          if (lateMs <= LATE_MS) run();
          else {
            onStall(lateMs);
            arm(GRACE_MS);
          }
        });
      };
      arm(delayMs);
      return () => cancel();
    },
  };
}
