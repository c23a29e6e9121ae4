import type { Timers } from "./transport.ts";

/** Timers of this process; none of them keeps it alive. */
export function systemTimers(): Timers {
  return {
    now: () => performance.now(),
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs).unref();
      return () => clearTimeout(timer);
    },
  };
}
