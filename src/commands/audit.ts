/** Reads of the audit log: a page of it, or all of it in bounded memory. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type FieldFault, refuseFaults } from "../model/refusal.ts";
import { isDateTime, isDay } from "../model/shape.ts";
import type { AuditEntry, AuditFilter, Store } from "../store/store.ts";

/** A filter as a client writes it: times as RFC 3339 or YYYY-MM-DD. */
export type AuditQuery = Omit<AuditFilter, "fromMs" | "toMs"> & { readonly from?: string; readonly to?: string };

const DAY_MS = 86_400_000;
const SLICE = 500;

/** The filter in milliseconds; `to` as a day includes that day, and as a moment that moment. Throws `invalid_request`. */
export function auditFilter({ from, to, ...rest }: AuditQuery): AuditFilter {
  const faults: FieldFault[] = [];
  const fromMs = from === undefined ? undefined : momentOf(from, 0);
  const toMs = to === undefined ? undefined : momentOf(to, 1);
  const detail = "must be a time such as 2026-01-31T12:00:00Z or a day such as 2026-01-31";
  if (Number.isNaN(fromMs)) faults.push({ pointer: "?from", detail });
  if (Number.isNaN(toMs)) faults.push({ pointer: "?to", detail });
  if (fromMs !== undefined && toMs !== undefined && toMs < fromMs)
    faults.push({ pointer: "?to", detail: "lies before from" });
  refuseFaults(faults);
  return { ...rest, ...(fromMs === undefined ? {} : { fromMs }), ...(toMs === undefined ? {} : { toMs }) };
}

/** NaN: it is no time. `days` are added to a day, or as many milliseconds to a moment. */
function momentOf(text: string, days: 0 | 1): number {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (parts !== null) {
    const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
    return isDay(year, month, day) ? Date.UTC(year, month - 1, day) + days * DAY_MS : Number.NaN;
  }
  // RFC 3339 lets the letters be small, and Date does not.
  return isDateTime(text) ? Math.max(0, Date.parse(text.toUpperCase()) + days) : Number.NaN;
}

export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly cursor: string | undefined };

/** The newest `limit` entries that fit, behind the cursor. A filter that few fit looks on, a slice a turn, until the reader has gone. */
export async function readAudit(
  store: Pick<Store, "auditPage">,
  filter: AuditFilter,
  options: { readonly limit: number; readonly cursor?: string | undefined; readonly signal: AbortSignal },
): Promise<AuditPage> {
  const entries: AuditEntry[] = [];
  let { cursor } = options;
  do {
    const wanted = options.limit - entries.length;
    const page = store.auditPage(filter, { limit: wanted, ...(cursor === undefined ? {} : { cursor }) });
    entries.push(...page.entries);
    cursor = page.cursor;
    if (cursor === undefined || entries.length >= options.limit) break;
    await nextTurn();
  } while (!options.signal.aborted);
  return { entries, cursor };
}

/** Every entry that fits, newest first, in bounded memory. */
export async function* streamAudit(
  store: Pick<Store, "auditPage">,
  filter: AuditFilter,
  signal: AbortSignal,
): AsyncGenerator<AuditEntry> {
  let cursor: string | undefined;
  do {
    const page = store.auditPage(filter, { limit: SLICE, ...(cursor === undefined ? {} : { cursor }) });
    yield* page.entries;
    cursor = page.cursor;
    await nextTurn();
  } while (cursor !== undefined && !signal.aborted);
}
