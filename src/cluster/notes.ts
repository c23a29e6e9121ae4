/** Lines about what members and strangers say: each once an hour, unless it was mended meanwhile, and not more than so many. */
import type { Log, LogLevel } from "../base/log.ts";
import { NOTED_AGAIN_MS, NOTED_MAX, NOTED_MS } from "./settings.ts";
import type { Timers } from "./transport.ts";

export type Notes = {
  /** `about`: what `mended` calls it; the line itself where it is left out. */
  readonly note: (level: LogLevel, message: string, about?: string) => void;
  /** All is well with it: what is amiss from now on is said again. */
  readonly mended: (about: string) => void;
};

export function createNotes(log: Log, timers: Timers): Notes {
  /** By what they are about: the lines, and of the timers' clock when each was said last. */
  const noted = new Map<string, Map<string, number>>();
  let lines = 0;
  let sinceMs = timers.now();
  return {
    note: (level, message, about = message) => {
      const nowMs = timers.now();
      if (nowMs - sinceMs >= NOTED_MS) {
        noted.clear();
        lines = 0;
        sinceMs = nowMs;
      }
      const said = noted.get(about) ?? new Map<string, number>();
      if ((said.get(message) ?? 0) > nowMs || lines >= NOTED_MAX) return;
      said.set(message, Number.POSITIVE_INFINITY);
      noted.set(about, said);
      lines++;
      log(level, message);
      if (lines === NOTED_MAX) log("warn", "more about the cluster's members is not logged within this hour");
    },
    mended: (about) => {
      const said = noted.get(about);
      if (said === undefined) return;
      // Two that share an address, of which one is always well, do not take turns in the log.
      for (const [message, atMs] of said) {
        if (atMs === Number.POSITIVE_INFINITY) said.set(message, timers.now() + NOTED_AGAIN_MS);
      }
    },
  };
}
