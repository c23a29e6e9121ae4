/**
 * The conflict journal: versions that lost without the winner having known them, so that no acknowledged write vanishes
 * silently. An entry's key is that of the version itself: it is entered once however often it loses.
 */

import { keyBytes } from "../model/keys.ts";
import type { Kind } from "../model/objects.ts";
import { type Database, TABLE } from "./database.ts";
import { packEnvelope, type StoredEnvelope } from "./envelope.ts";
import type { Stamp } from "./store.ts";

/** `replaced`: a greater stamp won. `renamed`: its id lives at another key. `zone-deleted`: its zone was. */
export type JournalReason = "replaced" | "renamed" | "zone-deleted";
export type JournalRow = {
  readonly kind: Kind;
  readonly reason: JournalReason;
  /** What it lost to: a stamp, or for `renamed` the key at which the id lives. */
  readonly winner: string;
  readonly packed: string;
};

export function writeJournal(
  database: Database,
  kind: Kind,
  stored: StoredEnvelope,
  reason: JournalReason,
  winner: string,
): void {
  const row: JournalRow = { kind, reason, winner, packed: packEnvelope({ ...stored, hidden: undefined }) };
  database.put(TABLE.JOURNAL, journalKey(kind, stored), JSON.stringify(row));
}

function journalKey(kind: Kind, { key, envelope }: StoredEnvelope): Uint8Array {
  const stamp: Stamp = envelope.stamp === "" ? `zero-${envelope.born}` : envelope.stamp;
  return Buffer.concat([keyBytes(kind, key), Buffer.from(`\0${stamp}`)]);
}
