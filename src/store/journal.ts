/**
 * The conflict journal: versions that lost without the winner having known them, so that no acknowledged write vanishes
 * silently. An entry's key is that of the version itself: it is entered once however often it loses.
 */

import { keyBytes } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { maskSecrets } from "../model/secrets.ts";
import { type Database, TABLE } from "./database.ts";
import { packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import type { Stamp } from "./store.ts";

/**
 * `replaced`: a greater stamp won. `renamed`: its id lives at another key. `zone-deleted`: its zone was. `stale`: this store
 * had to begin anew.
 */
export type JournalReason = "replaced" | "renamed" | "zone-deleted" | "stale";
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
  database.put(TABLE.JOURNAL, journalKey(kind, stored), JSON.stringify(row));
}

function journalKey(kind: Kind, { key, envelope }: StoredEnvelope): Uint8Array {
  const stamp: Stamp = envelope.stamp === "" ? `zero-${envelope.born}` : envelope.stamp;
  return Buffer.concat([keyBytes(kind, key), Buffer.from(`\0${stamp}`)]);
}

export type JournalEntry = {
  readonly kind: Kind;
  readonly key: NaturalKey;
  readonly stamp: Stamp;
  readonly reason: JournalReason;
  readonly winner: string;
  /** Undefined where it was a deletion that lost. */
  readonly body: unknown;
};
export type JournalPage = { readonly entries: readonly JournalEntry[]; readonly cursor: string | undefined };

/** The secrets of a body are masked. */
export function readJournal(
  database: Database,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): JournalPage {
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url");
  const rows = database.range(TABLE.JOURNAL, { prefix: new Uint8Array(), limit, ...(after && { after }) });
  const last = rows.length < limit ? undefined : rows.at(-1);
  return {
    entries: rows.map(({ value }) => entryOf(JSON.parse(value))),
    cursor: last && Buffer.from(last.key).toString("base64url"),
  };
}

function entryOf({ kind, reason, winner, packed }: JournalRow): JournalEntry {
  const { key, envelope } = unpackEnvelope(packed);
  const { stamp, content } = envelope;
  const body = content.kind === "body" ? maskSecrets(kind, content.body) : undefined;
  return { kind, key, stamp, reason, winner, body };
}
