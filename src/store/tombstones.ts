/**
 * When a tombstone leaves: a moment worked out from its stamp alone, so that all nodes agree on it without a word. Those
 * that are due are found by a list in the order of that moment.
 */

import type { Kind, NaturalKey } from "../model/objects.ts";
import { type Database, TABLE } from "./database.ts";
import type { StoredEnvelope } from "./envelope.ts";
import { stampMs } from "./stamp.ts";
import type { Stamp } from "./store.ts";

const DAY_MS = 86_400_000;
export const TOMBSTONE_DAYS = 30;

/** Milliseconds since 1970: the first midnight UTC that lies 30 days or more behind the stamp. */
export function collectionMs(stamp: Stamp): number {
  return (Math.ceil(stampMs(stamp) / DAY_MS) + TOMBSTONE_DAYS) * DAY_MS;
}

const MOMENT_BYTES = 6;

function listKey(keyOfObject: Uint8Array, { envelope }: StoredEnvelope): Uint8Array {
  return Buffer.concat([momentBytes(collectionMs(envelope.stamp)), keyOfObject]);
}

export function momentBytes(ms: number): Uint8Array {
  const bytes = Buffer.alloc(MOMENT_BYTES);
  bytes.writeUIntBE(ms, 0, MOMENT_BYTES);
  return bytes;
}

export type TombstoneRow = { readonly kind: Kind; readonly key: NaturalKey };

export function enlistTombstone(database: Database, keyOfObject: Uint8Array, kind: Kind, stored: StoredEnvelope): void {
  if (stored.envelope.content.kind !== "tombstone") return;
  const row: TombstoneRow = { kind, key: stored.key };
  database.put(TABLE.TOMBSTONE, listKey(keyOfObject, stored), JSON.stringify(row));
}

export function strikeTombstone(database: Database, keyOfObject: Uint8Array, stored: StoredEnvelope): void {
  if (stored.envelope.content.kind === "tombstone") database.remove(TABLE.TOMBSTONE, listKey(keyOfObject, stored));
}
