/**
 * Writes are taken only while this node's clock agrees with those of the other nodes: what is stamped too far ahead they refuse, and
 * what is stamped long ago loses to edits that were made before it.
 */
import type { Log } from "../base/log.ts";
import { Refusal } from "../model/refusal.ts";
import { STAMP_AHEAD_MAX_MS } from "../store/merge.ts";
import type { Store } from "../store/store.ts";

export type ClockGuard = {
  /** The store as commands are to have it: while the clock is off, writes are refused with `clock_skew`. */
  readonly guarded: <Guarded extends Store>(store: Guarded) => Guarded;
  /** From now on goes by that: how far this node's clock is ahead of the cluster's, milliseconds. */
  readonly follow: (aheadMs: () => number) => void;
};

export function createClockGuard(log: Log): ClockGuard {
  let aheadMs: () => number = () => 0;
  let isOff = false;
  const refusal = (): Refusal | undefined => {
    const ahead = aheadMs();
    const wasOff = isOff;
    isOff = Math.abs(ahead) > STAMP_AHEAD_MAX_MS;
    if (isOff === wasOff && !isOff) return undefined;
    const seconds = Math.round(Math.abs(ahead) / 1000);
    const detail = `this node's clock lies ${seconds} s ${ahead > 0 ? "ahead of" : "behind"} those of the other nodes`;
    if (isOff && !wasOff) log("error", `writes are refused: ${detail}`);
    if (!isOff) log("info", "writes are taken again: the clock agrees with those of the other nodes");
    return isOff ? new Refusal("clock_skew", detail) : undefined;
  };
  const checked = <Result>(run: () => Promise<Result>): Promise<Result> => {
    const refused = refusal();
    return refused === undefined ? run() : Promise.reject(refused);
  };
  return {
    guarded: (store) => ({
      ...store,
      write: (work) => checked(() => store.write(work)),
      writeInSlices: (work) => checked(() => store.writeInSlices(work)),
      rehearse: (work) => checked(() => store.rehearse(work)),
    }),
    follow: (given) => {
      aheadMs = given;
    },
  };
}
