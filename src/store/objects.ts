/** Objects, ids and zones as they lie in the database: rows in, values out. No rule lives here. */

import { KIND_BYTES, keyBytes, keyText } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { type Database, TABLE } from "./database.ts";
import { compareRank, type IdMember } from "./effective.ts";
import { type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import type { PlainRow } from "./plain-row.ts";
import type { Stamp } from "./store.ts";
import { freshZoneRow, type ZoneRow } from "./zone-row.ts";

export function textKey(...parts: readonly string[]): Uint8Array {
  return Buffer.from(`${parts.join("\0")}\0`);
}

/** Kind, id and, behind them, the natural key where one is given. */
export function idKey(kind: Kind, id: string, objectKey?: Uint8Array): Uint8Array {
  const head = Buffer.from(`${String.fromCharCode(KIND_BYTES[kind])}${id}\0`);
  return objectKey === undefined ? head : Buffer.concat([head, objectKey]);
}

export function readObject(
  database: Pick<Database, "get">,
  kind: Kind,
  key: NaturalKey,
  bytes = keyBytes(kind, key),
): StoredEnvelope | undefined {
  const text = database.get(TABLE.OBJECT, bytes);
  return text === undefined ? undefined : unpackEnvelope(text);
}

/** Where an id has versions; `naturalKey` of each is what `key` stands for. */
export type IdRow = IdMember & { readonly naturalKey: NaturalKey };

type PackedIdRow = readonly [NaturalKey, Stamp, IdRow["state"], number, Stamp];

/** The versions of an id that matter: those alive, and the latest of those that are not. */
export function readId(database: Database, kind: Kind, id: string): readonly IdRow[] {
  const text = database.get(TABLE.ID, idKey(kind, id));
  if (text === undefined) return [];
  const packed: readonly PackedIdRow[] = JSON.parse(text);
  return packed.map(([naturalKey, stamp, state, renames, life]) => {
    return { key: keyText(kind, naturalKey), naturalKey, stamp, state, renames, life };
  });
}

/** Each rename leaves a version behind; beyond these, old ones are no longer needed to tell where the id lives. */
const DEAD_VERSIONS_KEPT = 64;

export function writeId(database: Database, kind: Kind, id: string, rows: readonly IdRow[]): void {
  if (rows.length === 0) {
    database.remove(TABLE.ID, idKey(kind, id));
    return;
  }
  const packed = kept(rows).map(({ naturalKey, stamp, state, renames, life }): PackedIdRow => {
    return [naturalKey, stamp, state, renames, life];
  });
  database.put(TABLE.ID, idKey(kind, id), JSON.stringify(packed));
}

const RECORD = String.fromCharCode(KIND_BYTES.record);

/** Where a record's id lives of which nothing is known yet; false where something is. Its parts have nothing that JSON escapes. */
export function writeIdOfRow(database: Database, { id, zone, name, type, stamp, life }: PlainRow): boolean {
  const key = `${RECORD}${id}\0`;
  if (database.get(TABLE.ID, key) !== undefined) return false;
  database.put(TABLE.ID, key, `[[["${zone}","${name}","${type}"],"${stamp}","alive",0,"${life}"]]`);
  return true;
}

function kept(rows: readonly IdRow[]): readonly IdRow[] {
  if (rows.length <= DEAD_VERSIONS_KEPT) return rows;
  const dead = rows.filter(({ state }) => state !== "alive").sort((left, right) => compareRank(right, left));
  return [...rows.filter(({ state }) => state === "alive"), ...dead.slice(0, DEAD_VERSIONS_KEPT)];
}

export function readZoneRow(database: Pick<Database, "get">, zone: string): ZoneRow {
  const text = database.get(TABLE.ZONE, keyBytes("zone", [zone]));
  return text === undefined ? freshZoneRow(zone) : JSON.parse(text);
}

export function writeZoneRow(database: Database, row: ZoneRow): void {
  database.put(TABLE.ZONE, keyBytes("zone", [row.zone]), JSON.stringify(row));
}

export function removeZoneRow(database: Database, zone: string): void {
  database.remove(TABLE.ZONE, keyBytes("zone", [zone]));
}
