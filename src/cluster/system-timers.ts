import type { Timers } from "./transport.ts";

/** The timers of this thread. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
