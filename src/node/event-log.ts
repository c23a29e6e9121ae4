/** Events of health as lines of the log. One backend may flip thousands of records, so their number is bounded. */
import type { Log } from "../base/log.ts";
import type { HealthEvent } from "../health/book.ts";
import { EVENT_LINES_MAX, EVENT_LINES_MS } from "./limits.ts";

/** Logs at most EVENT_LINES_MAX events in EVENT_LINES_MS, and how many it left out. */
export function createEventLog(log: Log, clock: () => number = () => performance.now()): (event: HealthEvent) => void {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let leftOut = 0;
  return ({ type, subject, data }) => {
    if (clock() - sinceMs >= EVENT_LINES_MS) {
      if (leftOut > 0) log("info", "events of health that are not in the log", { events: leftOut });
      sinceMs = clock();
      lines = 0;
      leftOut = 0;
    }
    lines += 1;
    if (lines > EVENT_LINES_MAX) leftOut += 1;
    else log("info", type, { subject, ...data });
  };
}
