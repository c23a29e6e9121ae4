/** Events of health as lines of the log. One backend may flip thousands of records, so their number is bounded. */
import type { Log } from "../base/log.ts";
import type { HealthEvent } from "../health/book.ts";
import { createLimitedLog } from "./limited-log.ts";
import { EVENT_LINES_MAX, EVENT_LINES_MS } from "./limits.ts";

/** Logs at most EVENT_LINES_MAX events in EVENT_LINES_MS, and how many it left out. */
export function createEventLog(log: Log, now: () => number = () => performance.now()): (event: HealthEvent) => void {
  const leftOut = { message: "events of health that are not in the log", field: "events" };
  const limited = createLimitedLog({ log, linesMax: EVENT_LINES_MAX, whileMs: EVENT_LINES_MS, leftOut, now });
  return ({ type, subject, data }) => limited("info", type, { subject, ...data });
}
