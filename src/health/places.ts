/**
 * Places for runs that are under way at once. Whoever may hold one for long gets no more than a share of them, so that where
 * whole networks hang the others are not late.
 */
import { NEW_SHARE, SLOW_MS, SLOW_SHARE, SLOW_TIMEOUT_SHARE } from "./scheduler-limits.ts";

/** slow: the last run took long, whatever came of it. new: it has not run yet, so that nobody knows. */
export type Pace = "quick" | "new" | "slow";

export type Places = {
  readonly has: (pace: Pace) => boolean;
  readonly take: (pace: Pace) => void;
  readonly free: (pace: Pace) => void;
};

/** The slow leave some to the new, and both to the quick. */
export function createPlaces(inFlightMax: number): Places {
  const held = { quick: 0, new: 0, slow: 0 };
  const slowMax = Math.floor(inFlightMax * SLOW_SHARE);
  const newMax = Math.floor(inFlightMax * NEW_SHARE);
  return {
    has: (pace) => {
      const unproven = held.slow + held.new;
      if (unproven + held.quick >= inFlightMax) return false;
      return pace === "quick" || (unproven < newMax && (pace === "new" || held.slow < slowMax));
    },
    take: (pace) => {
      held[pace] += 1;
    },
    free: (pace) => {
      held[pace] -= 1;
    },
  };
}

export function paceOf(tookMs: number, timeoutMs: number): Pace {
  return tookMs >= Math.min(SLOW_MS, timeoutMs * SLOW_TIMEOUT_SHARE) ? "slow" : "quick";
}
