/** The order in which health is listed: standalone checks by id, then the gated values by zone, name, type and place. */

import { type Book, type GatedEntry, type GatedValue, orderedEntries, orderedZones } from "./book.ts";
import type { Checks, WatchedCheck } from "./checks.ts";
import type { ProbeState } from "./probe.ts";

/** What the list is kept to. */
export type StatusFilter = {
  readonly state?: ProbeState;
  readonly kind?: "check" | "value";
  /** Name of a zone as it is stored. */
  readonly zone?: string;
  readonly record_id?: string;
};

export type StatusKey =
  | { readonly kind: "check"; readonly id: string }
  | { readonly kind: "value"; readonly zone: string; readonly entry: string; readonly index: number };

export type StatusRow =
  | { readonly kind: "check"; readonly key: StatusKey; readonly check: WatchedCheck }
  | { readonly kind: "value"; readonly key: StatusKey; readonly entry: GatedEntry; readonly value: GatedValue };

export type Listed = { readonly book: Book; readonly checks: Pick<Checks, "byId"> };

/** Texts in which a key goes into a cursor. */
export function partsOfKey(key: StatusKey): readonly string[] {
  return key.kind === "check" ? ["check", key.id] : ["value", key.zone, key.entry, String(key.index)];
}

/** Undefined: these are none. */
export function keyOfParts(parts: readonly string[]): StatusKey | undefined {
  const [kind, one = "", entry = "", index = ""] = parts;
  if (kind === "check" && parts.length === 2) return { kind, id: one };
  if (kind !== "value" || parts.length !== 4 || !/^\d{1,6}$/.test(index)) return undefined;
  return { kind, zone: one, entry, index: Number(index) };
}

/** `fits` is false for a row that the filter leaves out by its state or record. */
export type FoundRow = StatusRow & { readonly fits: boolean };

/**
 * The rows behind a key in their order, with those that are left out by state or record, so that a search that finds little
 * knows how far it has come. Whoever stops in the middle goes on with the key of the last row, whatever has
 * changed meanwhile: what is there all the while is given once.
 */
export function* rowsBehind(listed: Listed, filter: StatusFilter, after: StatusKey | undefined): Generator<FoundRow> {
  const { kind, zone, record_id } = filter;
  const mayBeCheck = kind !== "value" && zone === undefined && record_id === undefined && after?.kind !== "value";
  if (mayBeCheck) yield* checkRows(listed, filter, after?.id);
  if (kind !== "check") yield* valueRows(listed, filter, after?.kind === "value" ? after : undefined);
}

function* checkRows({ checks }: Listed, filter: StatusFilter, after: string | undefined): Generator<FoundRow> {
  for (const id of [...checks.byId.keys()].sort()) {
    if (after !== undefined && id <= after) continue;
    const check = checks.byId.get(id);
    if (check === undefined) continue;
    yield { kind: "check", key: { kind: "check", id }, check, fits: fits(filter, check.state) };
  }
}

type ValueKey = StatusKey & { readonly kind: "value" };

function* valueRows({ book }: Listed, filter: StatusFilter, after: ValueKey | undefined): Generator<FoundRow> {
  const { record_id } = filter;
  const zones = filter.zone === undefined ? orderedZones(book) : [filter.zone];
  for (let at = after === undefined ? 0 : placeOf(zones, after.zone); at < zones.length; at++) {
    const name = zones[at] ?? "";
    const zone = book.zones.get(name);
    if (zone === undefined) continue;
    const behind = after !== undefined && after.zone === name ? after : undefined;
    const order = orderedEntries(zone);
    for (let place = behind === undefined ? 0 : placeOf(order, behind.entry); place < order.length; place++) {
      const text = order[place] ?? "";
      const entry = zone.entries.get(text);
      if (entry === undefined) continue;
      const isWanted = record_id === undefined || entry.id === record_id;
      const first = behind?.entry === text ? behind.index + 1 : 0;
      for (const [index, value] of entry.values.entries()) {
        if (index < first) continue;
        const key: StatusKey = { kind: "value", zone: name, entry: text, index };
        yield { kind: "value", key, entry, value, fits: isWanted && fits(filter, value.probe?.state ?? "unknown") };
      }
    }
  }
}

function fits({ state }: StatusFilter, found: ProbeState): boolean {
  return state === undefined || state === found;
}

/** Where the text stands in a sorted list, or would stand. */
function placeOf(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? "") < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
