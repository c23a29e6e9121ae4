/**
 * The conflict journal: versions that lost without the winner having known them, so that no acknowledged write vanishes
 * silently. An entry's key is that of the version itself: it is entered once however often it loses.
 */

import { KEY_BYTES_MAX, keyBytes } from "../model/keys.ts";
import type { Kind } from "../model/objects.ts";
import { maskSecrets } from "../model/secrets.ts";
import { type Database, TABLE } from "./database.ts";
import { packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import { openEnvelope } from "./open-envelope.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO, stampMs, stampNode } from "./stamp.ts";
import type { JournalEntry, JournalOptions, JournalPage, JournalReason, Stamp } from "./store.ts";

export type JournalRow = {
  readonly kind: Kind;
  readonly reason: JournalReason;
  /** What it lost to: a stamp, or for `renamed` the key at which the id lives. */
  readonly winner: string;
  readonly packed: string;
  /** When it was entered, where that may be long after it was written: milliseconds since 1970. */
  readonly atMs?: number;
};

export function writeJournal(
  database: Database,
  kind: Kind,
  stored: StoredEnvelope,
  reason: JournalReason,
  winner: string,
  atMs?: number,
): void {
  const packed = packEnvelope({ ...stored, hidden: undefined });
  const row: JournalRow = { kind, reason, winner, packed, ...(atMs !== undefined && { atMs }) };
  const key = journalKey(kind, stored);
  if (database.get(TABLE.JOURNAL, key) === undefined) {
    const total = Number(readMetaText(database, TOTAL + reason) ?? 0);
    writeMetaText(database, TOTAL + reason, String(total + 1));
  }
  database.put(TABLE.JOURNAL, key, JSON.stringify(row));
}
/** Of a reason: how many entries there ever were. */
const TOTAL = "journalled ";

/** How many entries were made for each reason since the store was made; those that are gone count. */
export function journalTotals(database: Database): Readonly<Record<JournalReason, number>> {
  const totalOf = (reason: JournalReason) => Number(readMetaText(database, TOTAL + reason) ?? 0);
  return {
    replaced: totalOf("replaced"),
    renamed: totalOf("renamed"),
    "zone-deleted": totalOf("zone-deleted"),
    stale: totalOf("stale"),
  };
}

function journalKey(kind: Kind, { key, envelope }: StoredEnvelope): Uint8Array {
  const stamp: Stamp = envelope.stamp === "" ? `zero-${envelope.born}` : envelope.stamp;
  return Buffer.concat([keyBytes(kind, key), Buffer.from(`\0${stamp}`)]);
}

/** Text of one page, beside its last entry. */
const PAGE_CHARACTERS_MAX = 262_144;

/** In the order of keys; the secrets of a body are masked. */
export function readJournal(database: Database, options: JournalOptions): JournalPage {
  const { cursor } = options;
  const start = cursor === undefined ? undefined : Buffer.from(cursor, "base64url");
  const entries: JournalEntry[] = [];
  for (const prefix of prefixesOf(options)) {
    const isBehind = start !== undefined && Buffer.compare(start.subarray(0, prefix.length), prefix) > 0;
    if (isBehind) continue;
    const bounds = { prefix, limit: options.limit - entries.length, charactersMax: PAGE_CHARACTERS_MAX };
    const isInside = start !== undefined && Buffer.compare(start, prefix) > 0;
    const page = database.page(TABLE.JOURNAL, { ...bounds, ...(isInside && { after: start }) });
    for (const { key, value } of page.rows) entries.push(masked(entryOf(key, JSON.parse(value))));
    if (!page.isLast && page.lastKey !== undefined) {
      return { entries, cursor: Buffer.from(page.lastKey).toString("base64url") };
    }
  }
  return { entries, cursor: undefined };
}

/** In the order of keys. */
function prefixesOf({ kind, zone }: JournalOptions): readonly Uint8Array[] {
  if (zone === undefined) return [kind === undefined ? new Uint8Array() : keyBytes(kind, [])];
  const kinds = (["zone", "record"] as const).filter((each) => kind === undefined || each === kind);
  return kinds.map((each) => keyBytes(each, [zone]));
}

/** One entry with the secrets of its body in the clear; undefined where there is none of that id. */
export function readJournalEntry(database: Database, seal: Seal, id: string): JournalEntry | undefined {
  const key = Buffer.from(id, "base64url");
  if (key.length === 0 || key.length > KEY_BYTES_MAX) return undefined;
  const text = database.get(TABLE.JOURNAL, key);
  if (text === undefined) return undefined;
  const row: JournalRow = JSON.parse(text);
  const { content } = openEnvelope(row.kind, unpackEnvelope(row.packed), seal);
  return { ...entryOf(key, row), body: content.kind === "body" ? content.body : undefined };
}

function masked(entry: JournalEntry): JournalEntry {
  return { ...entry, body: entry.body && maskSecrets(entry.kind, entry.body) };
}

function entryOf(rowKey: Uint8Array, { kind, reason, winner, packed }: JournalRow): JournalEntry {
  const { key, envelope } = unpackEnvelope(packed);
  const { stamp, born, content } = envelope;
  return {
    id: Buffer.from(rowKey).toString("base64url"),
    kind,
    key,
    stamp,
    timeMs: stampMs(stamp === STAMP_ZERO ? born : stamp),
    node: stampNode(stamp),
    objectId: envelope.id,
    reason,
    winner,
    body: content.kind === "body" ? content.body : undefined,
  };
}
