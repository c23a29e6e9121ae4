/** What the states of a record's values say of the record, in pure functions. */
import type { LbPolicy } from "../model/objects.ts";
import type { ProbeState } from "./probe.ts";

/** degraded: some values are unhealthy; unhealthy: all are, and the record fails open. */
export const RECORD_STATUSES = ["healthy", "degraded", "unhealthy"] as const;
export type RecordStatus = (typeof RECORD_STATUSES)[number];

/** A value whose state is unknown, and one that nobody probes, counts as healthy. */
export type ValueState = { readonly region?: string | undefined; readonly state: ProbeState };

export type Aggregate = { readonly status: RecordStatus; readonly healthy: number; readonly total: number };

export function aggregateOf(values: readonly ValueState[]): Aggregate {
  const total = values.length;
  let healthy = 0;
  for (const { state } of values) if (state !== "unhealthy") healthy++;
  return { status: healthy === total ? "healthy" : healthy === 0 ? "unhealthy" : "degraded", healthy, total };
}

/**
 * Where the answers for clients of the node's own region come from, as far as the method keeps to regions:
 * - home: a value of the own region is healthy
 * - away: none is, and one elsewhere is healthy
 * - nowhere: no value at all is healthy, so the record fails open at home
 * - none: the method knows no regions, or no value is of the own region
 */
export type Serving = "home" | "away" | "nowhere" | "none";

export function servingOf(
  values: readonly ValueState[],
  method: LbPolicy["method"] | undefined,
  ownRegion: string | undefined,
): Serving {
  if ((method !== "region" && method !== "geo-failover") || ownRegion === undefined) return "none";
  const local = values.filter(({ region }) => region === ownRegion);
  if (local.length === 0) return "none";
  if (local.some(({ state }) => state !== "unhealthy")) return "home";
  return values.some(({ state }) => state !== "unhealthy") ? "away" : "nowhere";
}

/**
 * Whether a record is failed over, given whether it was. While nothing is healthy it stays as it was: what comes back next
 * tells whether the failover has ended.
 */
export function isFailedOver(was: boolean, serving: Serving): boolean {
  return serving === "away" || (serving === "nowhere" && was);
}
