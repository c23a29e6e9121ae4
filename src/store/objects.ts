/** Objects, ids and zones as they lie in the database: rows in, values out. No rule lives here. */

import { KIND_BYTES, keyBytes } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { type Database, TABLE } from "./database.ts";
import type { IdMember } from "./effective.ts";
import { packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { freshZoneRow, type ZoneRow } from "./zone-row.ts";

const encoder = new TextEncoder();

export function textKey(...parts: readonly string[]): Uint8Array {
  return encoder.encode(parts.map((part) => `${part}\0`).join(""));
}

/** Kind, id and, behind them, the natural key where one is given. */
export function idKey(kind: Kind, id: string, objectKey?: Uint8Array): Uint8Array {
  const idBytes = encoder.encode(id);
  const bytes = new Uint8Array(idBytes.length + 2 + (objectKey?.length ?? 0));
  bytes[0] = KIND_BYTES[kind];
  bytes.set(idBytes, 1);
  if (objectKey !== undefined) bytes.set(objectKey, idBytes.length + 2);
  return bytes;
}

export function readObject(database: Database, kind: Kind, key: NaturalKey): StoredEnvelope | undefined {
  const text = database.get(TABLE.OBJECT, keyBytes(kind, key));
  return text === undefined ? undefined : unpackEnvelope(text);
}

export function writeObject(database: Database, kind: Kind, stored: StoredEnvelope): void {
  database.put(TABLE.OBJECT, keyBytes(kind, stored.key), packEnvelope(stored));
}

/** Where an id has versions; `naturalKey` of each is what `key` stands for. */
export type IdRow = IdMember & { readonly naturalKey: NaturalKey };

export function readId(database: Database, kind: Kind, id: string): readonly IdRow[] {
  const rows = database.range(TABLE.ID, { prefix: idKey(kind, id), limit: ID_ROWS_MAX });
  return rows.map(({ value }) => JSON.parse(value));
}
/** Renames leave one each until their tombstones are collected. */
const ID_ROWS_MAX = 10_000;

export function writeId(database: Database, kind: Kind, id: string, row: IdRow): void {
  database.put(TABLE.ID, idKey(kind, id, keyBytes(kind, row.naturalKey)), JSON.stringify(row));
}

export function removeId(database: Database, kind: Kind, id: string, key: NaturalKey): void {
  database.remove(TABLE.ID, idKey(kind, id, keyBytes(kind, key)));
}

export function readZoneRow(database: Database, zone: string): ZoneRow {
  const text = database.get(TABLE.ZONE, keyBytes("zone", [zone]));
  return text === undefined ? freshZoneRow(zone) : JSON.parse(text);
}

export function writeZoneRow(database: Database, row: ZoneRow): void {
  database.put(TABLE.ZONE, keyBytes("zone", [row.zone]), JSON.stringify(row));
}
