/**
 * The writes of one transaction, whoever made the versions: an object placed here brings its id, its rivals of the same
 * name, the counters and the list of tombstones up to date. Rules of merging and of commands are elsewhere.
 */
import { isDeepStrictEqual } from "node:util";
import { keyBytes, keyText } from "../model/keys.ts";
import type { Kind, NaturalKey, RecordBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import { changeCounts, versionText } from "./counts.ts";
import { type Database, TABLE, VALUE_BYTES_MAX } from "./database.ts";
import { effective, homeOfId } from "./effective.ts";
import { type Envelope, type Hidden, packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { writeJournal } from "./journal.ts";
import { type IdRow, readId, readObject, readZoneRow, removeId, writeId, writeZoneRow } from "./objects.ts";
import { makeReader } from "./reader.ts";
import type { Seal } from "./seal.ts";
import type { Change, ChangeBatch, Stamp, Stored, StoreReader } from "./store.ts";
import { enlistSweep, hasUnseen } from "./sweep-list.ts";
import { enlistTombstone, strikeTombstone } from "./tombstones.ts";
import { type Ending, freshZoneRow, type ZoneRow } from "./zone-row.ts";

export type Changes = {
  readonly reader: StoreReader;
  readonly at: (kind: Kind, key: NaturalKey) => StoredEnvelope | undefined;
  readonly idRows: (kind: Kind, id: string) => readonly IdRow[];
  readonly zoneRow: (zone: string) => ZoneRow;
  readonly setZoneRow: (row: ZoneRow) => void;
  /** Ends the zone's life, and with it all its records. `ending` is absent where only a later life tells of it. */
  readonly raiseFloor: (zone: string, floor: Stamp, ending: Ending | undefined) => void;
  /** Puts that version in the place of whatever is there. */
  readonly place: (kind: Kind, key: NaturalKey, envelope: Envelope) => void;
  /** Takes an object out without a trace: what is dead for good. */
  readonly erase: (kind: Kind, stored: StoredEnvelope) => void;
  readonly zoneDigest: (zone: string, life: string) => string;
  /** Whether anything was written. */
  readonly isDirty: () => boolean;
  readonly markDirty: () => void;
  /** Writes what was held back, and tells what became of everything touched. */
  readonly finish: (origin: ChangeBatch["origin"]) => ChangeBatch;
};

type Touched = { readonly kind: Kind; readonly key: NaturalKey; readonly before: Stored | undefined };

type Work = {
  readonly database: Database;
  readonly seal: Seal;
  readonly counts: ReturnType<typeof changeCounts>;
  readonly touched: Map<string, Touched>;
  readonly rows: Map<string, ZoneRow>;
  readonly rowsBefore: Map<string, ZoneRow>;
  readonly reader: StoreReader;
  dirty: boolean;
};

export function beginChanges(database: Database, seal: Seal): Changes {
  const counts = changeCounts(database);
  const rows = new Map<string, ZoneRow>();
  const zoneRow = (zone: string) => {
    const known = rows.get(zone) ?? readZoneRow(database, zone);
    rows.set(zone, known);
    return known;
  };
  const reader = makeReader({ database, seal, counts, zoneRow });
  const work: Work = { database, seal, counts, touched: new Map(), rows, rowsBefore: new Map(), reader, dirty: false };
  return {
    reader,
    zoneRow,
    at: (kind, key) => readObject(database, kind, key),
    idRows: (kind, id) => readId(database, kind, id),
    setZoneRow: (row) => setZoneRow(work, zoneRow(row.zone), row),
    raiseFloor: (zone, floor, ending) => raiseFloor(work, zoneRow(zone), floor, ending),
    place: (kind, key, envelope) => place(work, zoneRow, kind, key, envelope),
    erase: (kind, stored) => erase(work, zoneRow, kind, stored),
    zoneDigest: (zone, life) => counts.ofZone(zone, life).digest,
    isDirty: () => work.dirty,
    markDirty: () => {
      work.dirty = true;
    },
    finish: (origin) => finish(work, origin),
  };
}

function touch(work: Work, kind: Kind, key: NaturalKey): void {
  work.dirty = true;
  const text = keyText(kind, key);
  if (!work.touched.has(text)) work.touched.set(text, { kind, key, before: work.reader.get(kind, key) });
}

function setZoneRow(work: Work, before: ZoneRow, after: ZoneRow): void {
  if (isDeepStrictEqual(before, after)) return;
  work.dirty = true;
  if (!work.rowsBefore.has(after.zone)) work.rowsBefore.set(after.zone, before);
  const countOf = (row: ZoneRow) => (row.alive ? work.counts.ofZone(row.zone, row.floor).count : 0);
  const difference = countOf(after) - countOf(before);
  work.counts.addToKind("record", difference);
  work.counts.addToKind("zone", Number(after.alive) - Number(before.alive));
  work.rows.set(after.zone, after);
}

/**
 * The records are dead at once and removed later. Where the deletion knew other records than there are here, those here
 * go to the journal before they are removed.
 */
function raiseFloor(work: Work, row: ZoneRow, floor: Stamp, ending: Ending | undefined): void {
  const { zone, floor: life } = row;
  if (floor < row.floor) return;
  if (floor === row.floor) {
    if (row.ending === undefined && ending !== undefined) setZoneRow(work, row, { ...row, ending });
    return;
  }
  touch(work, "zone", [zone]);
  const known = ending?.life === life ? ending : undefined;
  const object = readObject(work.database, "zone", [zone]);
  const isUnseen = object?.envelope.content.kind === "body" && known?.zoneStamp !== object.envelope.stamp;
  if (object !== undefined && isUnseen) writeJournal(work.database, "zone", object, "zone-deleted", floor);
  const hasUnseen = known?.digest !== work.counts.ofZone(zone, life).digest;
  enlistSweep(work.database, { zone, life, hasUnseen });
  const { ending: _, ...rest } = row;
  setZoneRow(work, row, { ...rest, floor, alive: false, ...(ending !== undefined && { ending }) });
}

type ZoneLookup = (zone: string) => ZoneRow;

function place(work: Work, zoneRow: ZoneLookup, kind: Kind, key: NaturalKey, envelope: Envelope): void {
  touch(work, kind, key);
  const before = readObject(work.database, kind, key);
  const { content } = envelope;
  const { body, sealed } =
    content.kind === "body" ? work.seal.seal(kind, key, content.body) : { body: undefined, sealed: false };
  const stored: StoredEnvelope = {
    key,
    sealed,
    hidden: undefined,
    envelope: content.kind === "body" ? { ...envelope, content: { kind: "body", body } } : envelope,
  };
  if (before !== undefined) keepUnseen(work, kind, before, envelope.life);
  write(work, zoneRow, kind, before, stored);
  if (kind === "zone") {
    const row = zoneRow(key[0] ?? "");
    setZoneRow(work, row, { ...row, alive: content.kind === "body" && envelope.life === row.floor });
  }
  settle(work, zoneRow, kind, key, before, stored);
}

/** A record of an ended life that is replaced before the sweep comes to it. */
function keepUnseen({ database }: Work, kind: Kind, before: StoredEnvelope, life: Stamp): void {
  const { key, envelope } = before;
  if (kind !== "record" || envelope.content.kind !== "body" || envelope.life === life) return;
  if (hasUnseen(database, key[0] ?? "", envelope.life)) writeJournal(database, kind, before, "zone-deleted", life);
}

function erase(work: Work, zoneRow: ZoneLookup, kind: Kind, stored: StoredEnvelope): void {
  touch(work, kind, stored.key);
  write(work, zoneRow, kind, stored, undefined);
  settle(work, zoneRow, kind, stored.key, stored, undefined);
}

/** The row itself, the counters and the list of tombstones. */
function write(
  work: Work,
  zoneRow: ZoneLookup,
  kind: Kind,
  before: StoredEnvelope | undefined,
  after: StoredEnvelope | undefined,
): void {
  const { database } = work;
  if (before !== undefined) {
    count(work, zoneRow, kind, before, -1);
    strikeTombstone(database, kind, before);
  }
  if (after !== undefined) {
    const text = packEnvelope(after);
    if (Buffer.byteLength(text) > VALUE_BYTES_MAX) {
      throw new Refusal("invalid_request", `this ${kind} takes more than ${VALUE_BYTES_MAX} bytes to store`);
    }
    database.put(TABLE.OBJECT, keyBytes(kind, after.key), text);
    count(work, zoneRow, kind, after, 1);
    enlistTombstone(database, kind, after);
  } else if (before !== undefined) database.remove(TABLE.OBJECT, keyBytes(kind, before.key));
}

/** Zones are counted by their rows. */
function count(work: Work, zoneRow: ZoneLookup, kind: Kind, stored: StoredEnvelope, difference: 1 | -1): void {
  const { key, envelope, hidden } = stored;
  if (kind === "zone" || envelope.content.kind !== "body") return;
  const shown = hidden?.by === "id" ? 0 : difference;
  if (kind !== "record") {
    work.counts.addToKind(kind, shown);
    return;
  }
  const zone = key[0] ?? "";
  work.counts.addToZone(zone, envelope.life, shown, versionText(keyText(kind, key), envelope));
  const row = zoneRow(zone);
  if (row.alive && row.floor === envelope.life) work.counts.addToKind(kind, shown);
}

function settle(
  work: Work,
  zoneRow: ZoneLookup,
  kind: Kind,
  key: NaturalKey,
  before: StoredEnvelope | undefined,
  after: StoredEnvelope | undefined,
): void {
  const oldId = before?.envelope.id ?? "";
  const newId = after?.envelope.id ?? "";
  const moved: NaturalKey[] = [key];
  if (oldId !== "" && oldId !== newId) {
    removeId(work.database, kind, oldId, key);
    moved.push(...settleId(work, zoneRow, kind, oldId));
  }
  if (after !== undefined && newId !== "") {
    writeId(work.database, kind, newId, idRowOf(kind, after));
    moved.push(...settleId(work, zoneRow, kind, newId));
  }
  if (kind !== "record") return;
  for (const [zone = "", name = ""] of moved) settleName(work, zoneRow, zone, name);
}

function idRowOf(kind: Kind, { key, envelope }: StoredEnvelope): IdRow {
  const { life, renames, stamp, content } = envelope;
  const state = content.kind === "body" ? "alive" : content.movedTo === undefined ? "deleted" : "moved";
  return { key: keyText(kind, key), naturalKey: key, life, renames, stamp, state };
}

/** Lets an id live at one key only, and gives the keys at which that changed something. */
function settleId(work: Work, zoneRow: ZoneLookup, kind: Kind, id: string): NaturalKey[] {
  const rows = readId(work.database, kind, id);
  const home = homeOfId(rows);
  const changed: NaturalKey[] = [];
  for (const { key, naturalKey, state } of rows) {
    if (state !== "alive") continue;
    const stored = readObject(work.database, kind, naturalKey);
    if (stored === undefined || (stored.hidden?.by === "id") === (key !== home)) continue;
    const hidden: Hidden | undefined = key === home ? undefined : { by: "id", rival: id };
    if (hidden !== undefined) writeJournal(work.database, kind, stored, "renamed", home ?? "");
    hide(work, zoneRow, kind, stored, hidden);
    changed.push(naturalKey);
  }
  return changed;
}

function hide(work: Work, zoneRow: ZoneLookup, kind: Kind, stored: StoredEnvelope, hidden: Hidden | undefined): void {
  touch(work, kind, stored.key);
  write(work, zoneRow, kind, stored, { ...stored, hidden });
}

/** Works out which records of a name are in effect. */
function settleName(work: Work, zoneRow: ZoneLookup, zone: string, name: string): void {
  const rows = work.database.range(TABLE.OBJECT, { prefix: keyBytes("record", [zone, name]), limit: TYPES_READ });
  const { floor } = zoneRow(zone);
  const present = rows
    .map(({ value }) => unpackEnvelope(value))
    .filter(
      ({ envelope, hidden }) => envelope.content.kind === "body" && envelope.life === floor && hidden?.by !== "id",
    );
  if (present.length === 1 && present[0]?.hidden === undefined) return;
  const members = present.map(({ envelope }) => {
    const { id, born, life, content } = envelope;
    // Rows of this prefix are records.
    const { type } = (content.kind === "body" ? content.body : {}) as RecordBody;
    return { id, born, life, type };
  });
  const rivals = effective(members, { floor });
  for (const [index, stored] of present.entries()) {
    const rival = rivals[index];
    if (stored.hidden?.rival === rival) continue;
    hide(work, zoneRow, "record", stored, rival === undefined ? undefined : { by: "name", rival });
  }
}
/** More than there are types. */
const TYPES_READ = 1000;

function finish(work: Work, origin: ChangeBatch["origin"]): ChangeBatch {
  const zones: string[] = [];
  for (const [zone, before] of work.rowsBefore) {
    const after = work.rows.get(zone) ?? freshZoneRow(zone);
    writeZoneRow(work.database, after);
    const isSame =
      isDeepStrictEqual(before.serial, after.serial) && isDeepStrictEqual(before.activation, after.activation);
    if (!isSame) zones.push(zone);
  }
  work.counts.save();
  const changes: Change[] = [];
  for (const { kind, key, before } of work.touched.values()) {
    const after = work.reader.get(kind, key);
    if (before === undefined && after === undefined) continue;
    // The records of a deleted zone go with it, and are not named.
    if (
      kind === "record" &&
      after === undefined &&
      before !== undefined &&
      !(work.rows.get(key[0] ?? "")?.alive ?? true)
    ) {
      continue;
    }
    if (before?.stamp === after?.stamp && before?.shadowedBy === after?.shadowedBy) continue;
    changes.push({ kind, key, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
  }
  return { origin, changes, zones };
}
