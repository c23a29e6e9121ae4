/**
 * Puts one version in its place and brings everything that depends on it up to date: counters, the list of tombstones,
 * where its id lives, and which records of its name are in effect.
 */

import { keyBytes, keyText } from "../model/keys.ts";
import type { Kind, NaturalKey, RecordBody } from "../model/objects.ts";
import { OWNERS } from "../model/ownership.ts";
import { Refusal } from "../model/refusal.ts";
import { isAlive } from "./alive.ts";
import { type CountChanges, versionText } from "./counts.ts";
import { type Database, TABLE, VALUE_BYTES_MAX } from "./database.ts";
import { bestOfId, effective } from "./effective.ts";
import { type Envelope, type Hidden, packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { writeJournal } from "./journal.ts";
import { type IdRow, readId, readObject, writeId, writeIdOfRow } from "./objects.ts";
import type { KeyText } from "./overlay.ts";
import type { PlainRow } from "./plain-row.ts";
import { storedOf } from "./reader.ts";
import type { Seal } from "./seal.ts";
import type { Stamp, Stored } from "./store.ts";
import { hasUnseen } from "./sweep-list.ts";
import { collectionMs, enlistTombstone, strikeTombstone } from "./tombstones.ts";
import type { Trace } from "./trace.ts";
import type { ZoneRow } from "./zone-row.ts";

/** What a transaction has touched: what was seen of it before, and what lies there now. */
export type Touched = {
  readonly kind: Kind;
  readonly key: NaturalKey;
  readonly before: Stored | undefined;
  latest: StoredEnvelope | undefined;
};

export type Work = {
  readonly database: Database;
  readonly seal: Seal;
  readonly counts: CountChanges;
  readonly touched: Map<string, Touched>;
  readonly zoneRow: (zone: string) => ZoneRow;
  /** What other stores are to hear of it; undefined where nobody does. */
  readonly trace: Trace | undefined;
  dirty: boolean;
  /** Of the id that was asked for last: a write asks twice. */
  lastIds: { readonly kind: Kind; readonly id: string; readonly rows: readonly IdRow[] } | undefined;
};

/** Where an id has versions. */
export function idRowsOf(work: Work, kind: Kind, id: string): readonly IdRow[] {
  const last = work.lastIds;
  if (last?.id === id && last.kind === kind) return last.rows;
  const rows = readId(work.database, kind, id);
  work.lastIds = { kind, id, rows };
  return rows;
}

export function view<K extends Kind>(work: Work, kind: K, stored: StoredEnvelope | undefined): Stored<K> | undefined {
  if (stored === undefined || !isAlive(kind, stored, work.zoneRow)) return undefined;
  return storedOf(kind, stored, work.seal);
}

/** Notes what is seen of a key before the first change to it. */
export function touch(work: Work, kind: Kind, key: NaturalKey, before: StoredEnvelope | undefined): Touched {
  work.dirty = true;
  const text = keyText(kind, key);
  let touched = work.touched.get(text);
  if (touched === undefined) {
    touched = { kind, key, before: view(work, kind, before), latest: before };
    work.touched.set(text, touched);
  }
  return touched;
}

/** `before` is what lies there now. */
export function place(
  work: Work,
  kind: Kind,
  key: NaturalKey,
  envelope: Envelope,
  before: StoredEnvelope | undefined,
  bytes = keyBytes(kind, key),
): void {
  const { content } = envelope;
  const { body, sealed } =
    content.kind === "body" ? work.seal.seal(kind, key, content.body) : { body: undefined, sealed: false };
  const after: StoredEnvelope = {
    key,
    sealed,
    hidden: undefined,
    envelope: sealed ? { ...envelope, content: { kind: "body", body } } : envelope,
  };
  const text = packEnvelope(after);
  // Nothing of it is written before this.
  if (text.length > VALUE_BYTES_MAX / 3 && Buffer.byteLength(text) > VALUE_BYTES_MAX) {
    throw new Refusal("invalid_request", `this ${kind} takes more than ${VALUE_BYTES_MAX} bytes to store`);
  }
  if (before !== undefined) keepUnseen(work, kind, before, envelope.life);
  write(work, kind, before, after, bytes, text);
  const moved = settleIds(work, kind, before, after);
  if (kind !== "record") return;
  settleName(work, key, bytes);
  for (const each of moved) settleName(work, each, keyBytes(kind, each));
}

/**
 * Puts a plain record where nothing lies, of a name that nobody owns, as it lies in another store. Listeners
 * do not hear of it: its zone does not answer here, and is read as a whole when it does. False where its id lives elsewhere.
 */
export function placeRow(work: Work, text: string, row: PlainRow, key: KeyText): boolean {
  const { database, counts } = work;
  const { zone, name, type, life } = row;
  if (!writeIdOfRow(database, row)) return false;
  work.dirty = true;
  work.lastIds = undefined;
  database.put(TABLE.OBJECT, key, text);
  work.trace?.noteRow(key, row);
  counts.addToZone(zone, life, 1, versionText(keyText("record", [zone, name, type]), row));
  const { alive, floor } = work.zoneRow(zone);
  if (alive && floor === life) counts.addToKind("record", 1);
  return true;
}

/** A record of an ended life that is replaced before the sweep comes to it. */
function keepUnseen({ database }: Work, kind: Kind, before: StoredEnvelope, life: Stamp): void {
  const { key, envelope } = before;
  if (kind !== "record" || envelope.content.kind !== "body" || envelope.life === life) return;
  if (hasUnseen(database, key[0] ?? "", envelope.life)) writeJournal(database, kind, before, "zone-deleted", life);
}

/** The row itself, the counters and the list of tombstones. */
function write(
  work: Work,
  kind: Kind,
  before: StoredEnvelope | undefined,
  after: StoredEnvelope,
  bytes = keyBytes(kind, after.key),
  text = packEnvelope(after),
): void {
  touch(work, kind, after.key, before).latest = after;
  work.database.put(TABLE.OBJECT, bytes, text);
  work.trace?.noteObject(kind, bytes, before, after);
  if (before !== undefined) {
    count(work, kind, before, -1);
    strikeTombstone(work.database, bytes, before);
  }
  count(work, kind, after, 1);
  enlistTombstone(work.database, bytes, kind, after);
}

/** Takes a version out without leaving anything at its key. */
export function discard(work: Work, kind: Kind, stored: StoredEnvelope): void {
  const { key, envelope } = stored;
  touch(work, kind, key, stored).latest = undefined;
  const bytes = keyBytes(kind, key);
  work.database.remove(TABLE.OBJECT, bytes);
  count(work, kind, stored, -1);
  strikeTombstone(work.database, bytes, stored);
  if (envelope.id === "") return;
  const own = keyText(kind, key);
  work.lastIds = undefined;
  writeId(work.database, kind, envelope.id, rowsBesides(work, kind, envelope.id, own));
}

/** Zones are counted by their rows. */
function count(work: Work, kind: Kind, stored: StoredEnvelope, difference: 1 | -1): void {
  const { key, envelope, hidden } = stored;
  if (kind === "zone" || envelope.content.kind !== "body") return;
  const shown = hidden?.by === "id" ? 0 : difference;
  if (kind !== "record") {
    work.counts.addToKind(kind, shown);
    return;
  }
  const zone = key[0] ?? "";
  work.counts.addToZone(zone, envelope.life, shown, versionText(keyText(kind, key), envelope));
  const row = work.zoneRow(zone);
  if (row.alive && row.floor === envelope.life) work.counts.addToKind(kind, shown);
}

/** Notes where the ids of both versions are, and gives the keys at which that changed what is alive. */
function settleIds(
  work: Work,
  kind: Kind,
  before: StoredEnvelope | undefined,
  after: StoredEnvelope,
): readonly NaturalKey[] {
  const oldId = before?.envelope.id ?? "";
  const newId = after.envelope.id;
  const own = keyText(kind, after.key);
  const changed: NaturalKey[] = [];
  if (oldId !== "" && oldId !== newId) {
    changed.push(...settleId(work, kind, oldId, rowsBesides(work, kind, oldId, own)));
  }
  if (newId !== "") {
    changed.push(...settleId(work, kind, newId, [...rowsBesides(work, kind, newId, own), idRowOf(own, after)]));
  }
  return changed;
}

function rowsBesides(work: Work, kind: Kind, id: string, own: string): readonly IdRow[] {
  return idRowsOf(work, kind, id).filter(({ key }) => key !== own);
}

function idRowOf(key: string, stored: StoredEnvelope): IdRow {
  const { life, renames, stamp, content } = stored.envelope;
  const state = content.kind === "body" ? "alive" : content.movedTo === undefined ? "deleted" : "moved";
  return { key, naturalKey: stored.key, life, renames, stamp, state };
}

/** Lets an id live at one key only, and gives the keys at which that changed something. */
function settleId(work: Work, kind: Kind, id: string, rows: readonly IdRow[]): readonly NaturalKey[] {
  work.lastIds = undefined;
  writeId(work.database, kind, id, rows);
  const best = bestOfId(rows);
  const home = best?.state === "alive" ? best.key : undefined;
  const untilMs = best === undefined || home !== undefined ? undefined : collectionMs(best.stamp);
  const byId: Hidden = { by: "id", rival: id, ...(untilMs !== undefined && { untilMs }) };
  const changed: NaturalKey[] = [];
  for (const { key, naturalKey, state } of rows) {
    if (state !== "alive") continue;
    const stored = work.touched.get(key)?.latest ?? readObject(work.database, kind, naturalKey);
    const hidden = key === home ? undefined : byId;
    if (stored === undefined || isSameHiding(stored.hidden, hidden)) continue;
    if (hidden !== undefined) writeJournal(work.database, kind, stored, "renamed", home ?? "");
    write(work, kind, stored, { ...stored, hidden });
    changed.push(naturalKey);
  }
  return changed;
}

function isSameHiding(before: Hidden | undefined, byId: Hidden | undefined): boolean {
  return (before?.by === "id") === (byId !== undefined) && before?.untilMs === byId?.untilMs;
}

/** Works out which records of the name of that key are in effect. */
function settleName(work: Work, key: NaturalKey, bytes: Uint8Array): void {
  const [zone = "", name = "", type = ""] = key;
  if (!mayHaveRivals(work, bytes, type)) return;
  const rows = work.database.range(TABLE.OBJECT, { prefix: keyBytes("record", [zone, name]), limit: TYPES_READ });
  const { floor } = work.zoneRow(zone);
  const present = rows
    .map(({ value }) => unpackEnvelope(value))
    .filter(({ envelope, hidden }) => {
      return envelope.content.kind === "body" && envelope.life === floor && hidden?.by !== "id";
    });
  const members = present.map(({ envelope }) => {
    const { id, born, life, content } = envelope;
    // Rows of this prefix are records.
    const body = (content.kind === "body" ? content.body : {}) as RecordBody;
    return { id, born, life, type: body.type };
  });
  const rivals = effective(name, members, { floor });
  for (const [index, stored] of present.entries()) {
    const rival = rivals[index];
    if (stored.hidden?.rival === rival) continue;
    const { hidden: _, ...rest } = stored;
    write(work, "record", stored, { ...rest, hidden: rival === undefined ? undefined : { by: "name", rival } });
  }
}
/** More than there are types. */
const TYPES_READ = 1000;

/** Most names have no record that owns its name, and then there is nothing to work out. */
function mayHaveRivals({ database }: Work, bytes: Uint8Array, type: string): boolean {
  for (const [index, owner] of OWNERS.entries()) {
    if (owner === type || database.get(TABLE.OBJECT, siblingKey(bytes, type, OWNER_PARTS[index]!)) !== undefined)
      return true;
  }
  return false;
}
const OWNER_PARTS = OWNERS.map((owner) => Buffer.from(`${owner}\0`));

/** The key of the same name's record of another type: the type is the last part. */
function siblingKey(bytes: Uint8Array, type: string, part: Uint8Array): Uint8Array {
  const nameEnd = bytes.length - Buffer.byteLength(type) - 1;
  const sibling = Buffer.allocUnsafe(nameEnd + part.length);
  sibling.set(bytes.subarray(0, nameEnd));
  sibling.set(part, nameEnd);
  return sibling;
}
