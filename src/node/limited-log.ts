/** Lines about what anybody can make happen: so many within a while, and how many more there were. */
import type { Log } from "../base/log.ts";

export type LimitedLogOptions = {
  readonly log: Log;
  /** Lines within `whileMs`; those beyond are counted. */
  readonly linesMax: number;
  readonly whileMs: number;
  /** The line that says how many were left out, and the field that has the number; it comes before the next one that is written. */
  readonly leftOut: { readonly message: string; readonly field: string };
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
};

export function createLimitedLog({ log, linesMax, whileMs, leftOut, now }: LimitedLogOptions): Log {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let left = 0;
  return (level, message, fields) => {
    if (now() - sinceMs >= whileMs) {
      if (left > 0) log("info", leftOut.message, { [leftOut.field]: left });
      sinceMs = now();
      lines = 0;
      left = 0;
    }
    lines += 1;
    if (lines > linesMax) left += 1;
    else log(level, message, fields);
  };
}
