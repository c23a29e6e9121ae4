/** How verdicts make a state. Pure. */
import { type ProbeError, type ProbeState, RECOVERY_THRESHOLD } from "./probe.ts";

export type Standing = { readonly state: ProbeState; readonly failures: number; readonly successes: number };

export const UNJUDGED: Standing = { state: "unknown", failures: 0, successes: 0 };

/** The standing after one more probe. Failures and successes count what came in a row, up to now. */
export function judge(
  { state, failures, successes }: Standing,
  isSuccess: boolean,
  failureThreshold: number,
): Standing {
  const after = { failures: isSuccess ? 0 : failures + 1, successes: isSuccess ? successes + 1 : 0 };
  if (isSuccess) {
    // Nothing is known against a value that was never probed.
    const isHealthy = state !== "unhealthy" || after.successes >= RECOVERY_THRESHOLD;
    return { state: isHealthy ? "healthy" : state, ...after };
  }
  return { state: after.failures >= failureThreshold ? "unhealthy" : state, ...after };
}

/** How many failures in a row of that kind make it unhealthy. Where nobody can run a script, nothing speaks for its health. */
export function failuresAllowed(error: ProbeError | undefined, failureThreshold: number): number {
  return error === "runner" ? 1 : failureThreshold;
}

/** Share that the newest latency has in the smoothed one. */
const NEWEST_SHARE = 0.3;
const LATENCY_US_MAX = 2 ** 31 - 1;

/** The smoothed latency after one more success: whole microseconds, at least 1, because 0 means that nothing was measured. */
export function smoothLatency(smoothedUs: number, latencyUs: number): number {
  const next = smoothedUs === 0 ? latencyUs : smoothedUs + NEWEST_SHARE * (latencyUs - smoothedUs);
  return Math.min(Math.max(Math.round(next), 1), LATENCY_US_MAX);
}
