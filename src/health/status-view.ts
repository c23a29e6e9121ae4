/**
 * Health as it is shown: rows of the book and of the checks, joined with what the health thread tells of their probes. It is
 * asked a slice at a time; where it does not answer once, the rest of the list goes without it.
 */
import { type CheckHealth, GATED_RECORDS_SHOWN, type HealthItem, type ProbeView } from "../model/health-status.ts";
import { aggregateOf } from "./aggregate.ts";
import { type GatedEntry, type GatedValue, statesOf } from "./book.ts";
import type { WatchedCheck } from "./checks.ts";
import type { Outbox } from "./outbox.ts";
import { type ProbeSpec, type ProbeState, type ProbeStatus, RECOVERY_THRESHOLD } from "./probe.ts";
import {
  keyOfParts,
  type Listed,
  partsOfKey,
  rowsBehind,
  type StatusFilter,
  type StatusKey,
  type StatusRow,
} from "./status-list.ts";

/** Items of one turn: with their histories about a hundred kilobytes. */
const SLICE = 100;
/** Rows that one turn looks at: where few fit a filter, others have their turn in between. */
export const LOOKED_AT_MAX = 2_000;

export type StatusTurn = {
  readonly items: readonly HealthItem[];
  readonly end?: { readonly next: readonly string[] | undefined };
};

export type StatusView = {
  readonly open: (
    filter: StatusFilter,
    after: readonly string[] | undefined,
    limit: number,
  ) => ((isFull: boolean) => Promise<StatusTurn>) | undefined;
  readonly check: (id: string) => Promise<CheckHealth | undefined>;
};

export function createStatusView(listed: Listed, ask: Outbox["ask"]): StatusView {
  return {
    open: (filter, after, limit) => {
      const key = after === undefined ? undefined : keyOfParts(after);
      if (after !== undefined && key === undefined) return undefined;
      return openTurns(listed, ask, { filter, after: key, limit });
    },
    check: async (id) => {
      const told = listed.checks.byId.has(id) ? await ask([id]) : undefined;
      // It may have been deleted meanwhile.
      const check = listed.checks.byId.get(id);
      return check === undefined ? undefined : checkItem(check, toldOf(told, id));
    },
  };
}

type Wanted = { readonly filter: StatusFilter; readonly after: StatusKey | undefined; readonly limit: number };

function openTurns(listed: Listed, ask: Outbox["ask"], { filter, after, limit }: Wanted) {
  let last = after;
  let left = limit;
  let isAnswered = true;
  return async (isFull: boolean): Promise<StatusTurn> => {
    const given = isFull && left < limit ? 0 : Math.min(left, SLICE);
    const { shown, isMore, isPaused, end } = lookOn(listed, filter, last, given);
    const told = isAnswered ? await askFor(ask, shown) : undefined;
    isAnswered = told !== undefined;
    const all = shown.map((row) => itemOf(row, toldOf(told, probeKey(row))));
    // The health thread may know of a change that has not been heard here.
    const items = filter.state === undefined ? all : all.filter(({ state }) => state === filter.state);
    last = end;
    left -= shown.length;
    if (isPaused || (isMore && left > 0 && given > 0)) return { items };
    if (!isMore) return { items, end: { next: undefined } };
    return { items, end: { next: last === undefined ? undefined : partsOfKey(last) } };
  };
}

/** At most `given` rows behind a key, and whether another follows: a last page never promises one more. */
function lookOn(listed: Listed, filter: StatusFilter, after: StatusKey | undefined, given: number) {
  const shown: StatusRow[] = [];
  let end = after;
  let looked = 0;
  for (const row of rowsBehind(listed, filter, after)) {
    if (row.fits && shown.length === given) return { shown, isMore: true, isPaused: false, end };
    if (row.fits) shown.push(row);
    end = row.key;
    if (++looked === LOOKED_AT_MAX) return { shown, isMore: false, isPaused: true, end };
  }
  return { shown, isMore: false, isPaused: false, end };
}

function askFor(ask: Outbox["ask"], rows: readonly StatusRow[]): Promise<readonly ProbeStatus[] | undefined> {
  const keys = new Set(rows.map(probeKey).filter((key) => key !== undefined));
  return keys.size === 0 ? Promise.resolve([]) : ask([...keys]);
}

function probeKey(row: StatusRow): string | undefined {
  return row.kind === "check" ? row.check.spec?.key : row.value.probe?.key;
}

/** "silent": the health thread did not answer; undefined: it knows nothing of the probe yet. */
type Told = ProbeStatus | "silent" | undefined;

function toldOf(told: readonly ProbeStatus[] | undefined, key: string | undefined): Told {
  return told === undefined ? "silent" : told.find((status) => status.key === key);
}

function itemOf(row: StatusRow, told: Told): HealthItem {
  return row.kind === "check" ? checkItem(row.check, told) : valueItem(row.entry, row.value, told);
}

function checkItem({ body, spec, state }: WatchedCheck, told: Told): CheckHealth {
  return { kind: "check", check_id: body.id, check_name: body.name, ...probedOf(spec, body.target, state, told) };
}

function valueItem(entry: GatedEntry, { value, region, probe }: GatedValue, told: Told): HealthItem {
  const { status } = aggregateOf(statesOf(entry));
  const gated = probe?.rrsets ?? new Set([entry]);
  return {
    kind: "value",
    ...recordOf(entry),
    value,
    ...(region === undefined ? {} : { region }),
    ...probedOf(probe?.spec, targetOf(probe?.spec), probe?.state ?? "unknown", told),
    record_status: status,
    failing_open: status === "unhealthy",
    gates: { count: gated.size, records: firstOf(gated, GATED_RECORDS_SHOWN).map(recordOf) },
  };
}

function recordOf({ id, zone, name, type }: GatedEntry) {
  return { record_id: id, ...(zone === "" ? {} : { zone }), name, type };
}

function targetOf(spec: ProbeSpec | undefined): string | undefined {
  if (spec === undefined || spec.host === "") return undefined;
  return `${spec.host.includes(":") ? `[${spec.host}]` : spec.host.replace(/\.$/, "")}:${spec.port}`;
}

/** What an item says of its probe. Nothing of the template goes out but what is named here: it has secrets. */
function probedOf(spec: ProbeSpec | undefined, target: string | undefined, state: ProbeState, told: Told) {
  const isSilent = told === "silent";
  const settings =
    spec === undefined
      ? {}
      : {
          protocol: spec.protocol,
          interval_seconds: spec.intervalMs / 1000,
          timeout_seconds: spec.timeoutMs / 1000,
          failure_threshold: spec.failureThreshold,
          recovery_threshold: RECOVERY_THRESHOLD,
        };
  return {
    ...(target === undefined ? {} : { target }),
    ...settings,
    probed: spec !== undefined,
    ...(told === undefined || isSilent ? { state, stale: isSilent && spec !== undefined, probes: [] } : statusOf(told)),
  };
}

function statusOf(told: ProbeStatus) {
  const { state, sinceMs, checkedMs, nextMs, isStale, failures, successes, latencyUs, history } = told;
  return {
    state,
    ...(sinceMs === undefined ? {} : { since: timeText(sinceMs) }),
    ...(checkedMs === undefined ? {} : { checked_at: timeText(checkedMs) }),
    next_probe_at: timeText(nextMs),
    stale: isStale,
    failures,
    successes,
    ...(latencyUs === 0 ? {} : { latency_ms: latencyUs / 1000 }),
    probes: history.map(
      ({ atMs, latencyUs, error, detail }): ProbeView => ({
        at: timeText(atMs),
        result: error === undefined ? "success" : "failure",
        latency_ms: latencyUs / 1000,
        ...(error === undefined ? {} : { error }),
        ...(detail === undefined ? {} : { detail }),
      }),
    ),
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function firstOf<T>(items: Iterable<T>, count: number): readonly T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length === count) break;
    first.push(item);
  }
  return first;
}
