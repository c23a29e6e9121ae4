/** Items as they are read for another store: all of them by pages, or some by their references. */

import { keyBytes } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { countedZone, dueMsOf, isDue } from "./counted.ts";
import { type Database, TABLE, type Table, type TextRow } from "./database.ts";
import { compareText, unpackEnvelope } from "./envelope.ts";
import { openForeign, readForeignRow } from "./foreign.ts";
import { idKey, readZoneRow } from "./objects.ts";
import { isOfZone, openEnvelope } from "./open-envelope.ts";
import { bytesOf, textOf } from "./overlay.ts";
import { readPlainRow } from "./plain-row.ts";
import type { AliasItem, RawItem, RawPage } from "./raw-items.ts";
import { kindOfRow, placeOf, REF_TABLES } from "./refs.ts";
import type { ItemRef } from "./replica.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import type { ZoneRow } from "./zone-row.ts";

export type PageOptions = {
  readonly limit: number;
  readonly cursor?: string;
  readonly charactersMax?: number;
  readonly asRows?: boolean;
};

/**
 * Everything by pages of rows, in the order of references. Leaves out what is dead and what is due to be collected. A page
 * ends behind the row with which it has `charactersMax` characters. With `asRows` plain records are given as they lie here.
 */
export function readRawItems(database: Database, seal: Seal, nowMs: number, options: PageOptions): RawPage {
  const { cursor, charactersMax = Number.POSITIVE_INFINITY, asRows = false } = options;
  const items: RawItem[] = [];
  const rows: string[] = [];
  const floorOf = rememberedFloors(database);
  const start = cursor === undefined ? undefined : Buffer.from(cursor, "base64url");
  let left = options.limit;
  let charactersLeft = charactersMax;
  for (const [index, table] of REF_TABLES.entries()) {
    if (index < (start?.[0] ?? 0)) continue;
    const after = start?.[0] === index ? start.toString("latin1", 1) : undefined;
    const bounds = { prefix: NOTHING, limit: left, charactersMax: charactersLeft };
    const page = database.texts(table, { ...bounds, ...(after !== undefined && { after }) });
    for (const row of page.rows) {
      charactersLeft -= row.value.length;
      const plain = asRows && table === TABLE.OBJECT && kindOfRow(row.key) === "record" && readPlainRow(row.value);
      if (!plain) items.push(...itemsOf(table, row, floorOf, seal, nowMs));
      else if (plain.life === floorOf(plain.zone)) rows.push(row.value);
    }
    left -= page.rows.length;
    if ((left <= 0 || charactersLeft <= 0) && page.lastKey !== undefined) {
      return { items, rows, cursor: bytesOf(String.fromCharCode(index) + page.lastKey).toString("base64url") };
    }
  }
  return { items, rows, cursor: undefined };
}
const NOTHING = new Uint8Array();

/** The present life of a zone. */
type FloorOf = (zone: string) => Stamp;

/** Each read once: the records of a page, or of an import, are nearly all of one zone. */
function rememberedFloors(database: Database): FloorOf {
  const floors = new Map<string, Stamp>();
  return (zone) => {
    const floor = floors.get(zone) ?? readZoneRow(database, zone).floor;
    floors.set(zone, floor);
    return floor;
  };
}

/** What is there of them, zones before records; what is dead or due to be collected is left out. */
export function readItems(database: Database, seal: Seal, nowMs: number, refs: readonly ItemRef[]): readonly RawItem[] {
  const floorOf = rememberedFloors(database);
  return [...new Set(refs)].sort(compareText).flatMap((ref) => {
    const place = placeOf(ref);
    const value = place && database.get(place.table, place.key);
    if (place === undefined || value === undefined) return [];
    return itemsOf(place.table, { key: textOf(place.key), value }, floorOf, seal, nowMs);
  });
}

export function itemsOf(table: Table, { key, value }: TextRow, floorOf: FloorOf, seal: Seal, nowMs: number): RawItem[] {
  if (table === TABLE.ZONE) return zoneItems(JSON.parse(value), nowMs);
  if (table === TABLE.ALIAS) return [JSON.parse(value)];
  if (table === TABLE.FOREIGN)
    return isDue(readForeignRow(value), nowMs) ? [] : [openForeign(bytesOf(key), value, seal)];
  const kind = kindOfRow(key);
  const stored = unpackEnvelope(value);
  if (isDue({ dueMs: dueMsOf(stored) }, nowMs)) return [];
  if (isOfZone(kind) && stored.envelope.life !== floorOf(stored.key[0] ?? "")) return [];
  return [{ item: "object", kind, key: stored.key, envelope: openEnvelope(kind, stored, seal) }];
}

function zoneItems(row: ZoneRow, nowMs: number): RawItem[] {
  const { zone, floor, ending, serial, activation } = row;
  if (isDue(countedZone(row), nowMs)) return [];
  const items: RawItem[] = [];
  if (floor !== STAMP_ZERO) items.push({ item: "floor", zone, floor, ...(ending !== undefined && { ending }) });
  if (serial !== undefined) items.push({ item: "serial", zone, ...serial });
  if (activation !== undefined) items.push({ item: "activation", zone, ...activation });
  return items;
}

/** False where it is known already. */
export function writeAlias(database: Database, kind: Kind, id: string, key: NaturalKey): boolean {
  const item: AliasItem = { item: "alias", kind, id, key };
  const row = idKey(kind, id, keyBytes(kind, key));
  if (database.get(TABLE.ALIAS, row) !== undefined) return false;
  database.put(TABLE.ALIAS, row, JSON.stringify(item));
  return true;
}
