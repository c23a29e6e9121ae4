/** One member under suspicion: the time that it has left to refute it, which each confirmation shortens. */
import { suspicionTimeoutMs } from "./formulas.ts";
import type { Timers } from "./transport.ts";

export type Suspicion = {
  /** Another member suspects it too. True where that was news, and has to be passed on. */
  readonly confirm: (from: string) => boolean;
  readonly cancel: () => void;
};

export type SuspicionOptions = {
  readonly timers: Timers;
  readonly minMs: number;
  readonly maxMs: number;
  /** Confirmations until only `minMs` is left; more are not counted. */
  readonly expected: number;
  /** Who suspects it. */
  readonly from: string;
  readonly onTimeout: () => void;
};

export function createSuspicion({ timers, minMs, maxMs, expected, from, onTimeout }: SuspicionOptions): Suspicion {
  const startMs = timers.now();
  const accusers = new Set([from]);
  let cancel = timers.after(suspicionTimeoutMs(minMs, maxMs, 0, expected), onTimeout);
  return {
    confirm: (accuser) => {
      if (accusers.size > expected || accusers.has(accuser)) return false;
      accusers.add(accuser);
      const timeoutMs = suspicionTimeoutMs(minMs, maxMs, accusers.size - 1, expected);
      cancel();
      cancel = timers.after(Math.max(0, startMs + timeoutMs - timers.now()), onTimeout);
      return true;
    },
    cancel: () => cancel(),
  };
}
