/** What one store gives another: versions with their secrets opened, registers, and ids that lost. */

import { keyBytes, kindOfByte } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { type Database, type Row, TABLE, type Table } from "./database.ts";
import { type Envelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { idKey, readZoneRow } from "./objects.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import { collectionMs } from "./tombstones.ts";
import type { Ending, ZoneRow } from "./zone-row.ts";

export type RawItem =
  | { readonly item: "object"; readonly kind: Kind; readonly key: NaturalKey; readonly envelope: Envelope }
  | { readonly item: "floor"; readonly zone: string; readonly floor: Stamp; readonly ending?: Ending }
  | { readonly item: "serial"; readonly zone: string; readonly life: Stamp; readonly serial: number }
  | {
      readonly item: "activation";
      readonly zone: string;
      readonly life: Stamp;
      readonly state: "pending" | "active";
    }
  | { readonly item: "alias"; readonly kind: Kind; readonly id: string; readonly key: NaturalKey };

export type RawPage = { readonly items: readonly RawItem[]; readonly cursor: string | undefined };

/** Zones first, so that who takes the items in this order knows the floors before the records. */
const ORDER = [TABLE.ZONE, TABLE.OBJECT, TABLE.ALIAS] as const;

/** Everything by pages of rows, in the order of keys. Leaves out what is dead and what is due to be collected. */
export function readRawItems(
  database: Database,
  seal: Seal,
  nowMs: number,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): RawPage {
  const items: RawItem[] = [];
  const start = cursor === undefined ? undefined : Buffer.from(cursor, "base64url");
  let left = limit;
  for (const [index, table] of ORDER.entries()) {
    if (index < (start?.[0] ?? 0)) continue;
    const after = start?.[0] === index ? start.subarray(1) : undefined;
    const rows = database.range(table, { prefix: NOTHING, limit: left, ...(after && { after }) });
    for (const row of rows) items.push(...itemsOf(table, row, database, seal, nowMs));
    left -= rows.length;
    const last = rows.at(-1);
    if (left <= 0 && last !== undefined) {
      return { items, cursor: Buffer.concat([Uint8Array.of(index), last.key]).toString("base64url") };
    }
  }
  return { items, cursor: undefined };
}
const NOTHING = new Uint8Array();

function itemsOf(table: Table, { key, value }: Row, database: Database, seal: Seal, nowMs: number): RawItem[] {
  if (table === TABLE.ZONE) return zoneItems(JSON.parse(value));
  if (table === TABLE.ALIAS) return [JSON.parse(value)];
  const kind = kindOfByte(key[0]!);
  const stored = unpackEnvelope(value);
  const { envelope } = stored;
  if (envelope.content.kind === "tombstone" && collectionMs(envelope.stamp) <= nowMs) return [];
  if (isOfZone(kind) && envelope.life !== readZoneRow(database, stored.key[0] ?? "").floor) return [];
  return [{ item: "object", kind, key: stored.key, envelope: openEnvelope(kind, stored, seal) }];
}

function zoneItems(row: ZoneRow): RawItem[] {
  const { zone, floor, ending, serial, activation } = row;
  const items: RawItem[] = [];
  if (floor !== STAMP_ZERO) items.push({ item: "floor", zone, floor, ...(ending !== undefined && { ending }) });
  if (serial !== undefined) items.push({ item: "serial", zone, ...serial });
  if (activation !== undefined) items.push({ item: "activation", zone, ...activation });
  return items;
}

/** The version with its secrets in the clear. */
export function openEnvelope(kind: Kind, { key, envelope, sealed }: StoredEnvelope, seal: Seal): Envelope {
  const { content } = envelope;
  if (!sealed || content.kind !== "body") return envelope;
  return { ...envelope, content: { kind: "body", body: seal.open(kind, key, content.body) } };
}

/** Kinds whose objects live and die with a zone's floor. */
export function isOfZone(kind: Kind): boolean {
  return kind === "zone" || kind === "record";
}

export type AliasItem = Extract<RawItem, { item: "alias" }>;

export function writeAlias(database: Database, kind: Kind, id: string, key: NaturalKey): void {
  const item: AliasItem = { item: "alias", kind, id, key };
  database.put(TABLE.ALIAS, idKey(kind, id, keyBytes(kind, key)), JSON.stringify(item));
}
