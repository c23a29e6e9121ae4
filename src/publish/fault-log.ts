/** Lines about what is stored and cannot be answered: another node may have let in as many as it likes. */
import type { Log } from "../base/log.ts";

/** Lines within LINES_MS; those beyond are counted. */
const LINES_MAX = 20;
const LINES_MS = 10_000;

export type FaultLog = (zone: string, name: string, detail: string) => void;

/** `clock`: milliseconds from any moment on. */
export function createFaultLog(log: Log, clock: () => number): FaultLog {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  return (zone, name, detail) => {
    if (clock() - sinceMs >= LINES_MS) {
      if (lines > LINES_MAX)
        log("error", "records that are not answered as they are stored and are not in the log", {
          records: lines - LINES_MAX,
        });
      sinceMs = clock();
      lines = 0;
    }
    lines += 1;
    if (lines > LINES_MAX) return;
    log("error", `a record of ${zone} is not answered as it is stored: ${detail}`, { zone, name });
  };
}
