/** Reads of the audit log: a page of it, or all of it, a turn of the event loop at a time. */
import { type FieldFault, refuseFaults } from "../model/refusal.ts";
import { isDateTime, isDay } from "../model/shape.ts";
import type { AuditEntry, AuditFilter, Store } from "../store/store.ts";

/** A filter as a client writes it: times as RFC 3339 or YYYY-MM-DD. */
export type AuditQuery = Omit<AuditFilter, "fromMs" | "toMs"> & { readonly from?: string; readonly to?: string };

const DAY_MS = 86_400_000;
/** Entries of one turn; the store bounds their text as well. */
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

/** What one turn gives. */
export type AuditTurn = {
  readonly items: readonly AuditEntry[];
  /** There at the end: the cursor to go on behind, or undefined where nothing follows. */
  readonly end?: { readonly next: string | undefined };
};

/**
 * The newest entries that fit, behind the cursor, a turn at each call, until there are `limit` or a call says that the page
 * is full. A filter that few fit gives many turns without an entry. Between calls nothing but a cursor is held.
 */
export function openAudit(
  store: Pick<Store, "auditPage">,
  filter: AuditFilter,
  options: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): (isFull: boolean) => AuditTurn {
  let { cursor, limit: left = Number.POSITIVE_INFINITY } = options;
  return (isFull) => {
    if (isFull) return { items: [], end: { next: cursor } };
    const page = store.auditPage(filter, { limit: Math.min(left, SLICE), ...(cursor === undefined ? {} : { cursor }) });
    left -= page.entries.length;
    cursor = page.cursor;
    const hasEnded = cursor === undefined || left <= 0;
    return hasEnded ? { items: page.entries, end: { next: cursor } } : { items: page.entries };
  };
}
