/** The writes of one transaction, whoever made the versions. Rules of merging and of commands are elsewhere. */
import { isDeepStrictEqual } from "node:util";
import { keyText } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { changeCounts } from "./counts.ts";
import type { Database } from "./database.ts";
import type { Envelope, StoredEnvelope } from "./envelope.ts";
import { writeAlias } from "./items.ts";
import { writeJournal } from "./journal.ts";
import { type IdRow, readObject, readZoneRow, removeZoneRow, writeZoneRow } from "./objects.ts";
import type { KeyText } from "./overlay.ts";
import { discard, idRowsOf, place, placeRow, touch, view, type Work } from "./placing.ts";
import type { PlainRow } from "./plain-row.ts";
import { makeReader } from "./reader.ts";
import type { Seal } from "./seal.ts";
import type { Change, ChangeBatch, Stamp, Stored, StoreReader } from "./store.ts";
import { enlistSweep } from "./sweep-list.ts";
import { NOTHING_TRACED, type Trace, type Traced } from "./trace.ts";
import { type Ending, freshZoneRow, type ZoneRow } from "./zone-row.ts";

export type Changes = {
  readonly reader: StoreReader;
  /** `bytes` is the key's, where the caller has them; likewise in `place`. */
  readonly at: (kind: Kind, key: NaturalKey, bytes?: Uint8Array) => StoredEnvelope | undefined;
  /** What others see of a version at this moment. */
  readonly view: <K extends Kind>(kind: K, stored: StoredEnvelope | undefined) => Stored<K> | undefined;
  readonly idRows: (kind: Kind, id: string) => readonly IdRow[];
  readonly zoneRow: (zone: string) => ZoneRow;
  readonly setZoneRow: (row: ZoneRow) => void;
  /** Ends the zone's life, and with it all its records. `ending` is absent where only a later life tells of it. */
  readonly raiseFloor: (zone: string, floor: Stamp, ending: Ending | undefined) => void;
  /** Puts that version in the place of `before`, which is what `at` gives. */
  readonly place: (
    kind: Kind,
    key: NaturalKey,
    envelope: Envelope,
    before: StoredEnvelope | undefined,
    bytes?: Uint8Array,
  ) => void;
  /** See `placeRow` in placing.ts. */
  readonly placeRow: (text: string, row: PlainRow, key: KeyText) => boolean;
  /** Takes a version out, as if it had never been. */
  readonly discard: (kind: Kind, stored: StoredEnvelope) => void;
  /** What was placed at that key in this transaction, without reading it again. */
  readonly placed: (kind: Kind, key: NaturalKey) => StoredEnvelope | undefined;
  readonly zoneDigest: (zone: string, life: Stamp) => string;
  /** A fact about a lost id. `isMade`: by this node, and not heard of. */
  readonly addAlias: (kind: Kind, id: string, key: NaturalKey, isMade: boolean) => void;
  readonly trace: Trace | undefined;
  /** Whether anything was written. */
  readonly isDirty: () => boolean;
  readonly markDirty: () => void;
  /** Whether a zone's life ended, so that its records wait to be removed. */
  readonly hasEnded: () => boolean;
  /** Writes what was held back, and tells what became of everything touched; in steps, because that may be much. */
  readonly finish: (origin: ChangeBatch["origin"]) => Generator<void, Finished>;
};
export type Finished = { readonly batch: ChangeBatch; readonly traced: Traced };

type ZoneRows = {
  readonly current: Map<string, ZoneRow>;
  readonly before: Map<string, ZoneRow>;
  hasEnded: boolean;
};

export function beginChanges(database: Database, seal: Seal, trace: Trace | undefined): Changes {
  const counts = changeCounts(database);
  const rows: ZoneRows = { current: new Map(), before: new Map(), hasEnded: false };
  const zoneRow = (zone: string) => {
    const known = rows.current.get(zone) ?? readZoneRow(database, zone);
    rows.current.set(zone, known);
    return known;
  };
  const work: Work = { database, seal, counts, touched: new Map(), zoneRow, trace, dirty: false, lastIds: undefined };
  return {
    reader: makeReader({ database, seal, counts, zoneRow }),
    at: (kind, key, bytes) => readObject(database, kind, key, bytes),
    view: (kind, stored) => view(work, kind, stored),
    idRows: (kind, id) => idRowsOf(work, kind, id),
    zoneRow,
    setZoneRow: (row) => setZoneRow(work, rows, row),
    raiseFloor: (zone, floor, ending) => raiseFloor(work, rows, zone, floor, ending),
    place: (kind, key, envelope, before, bytes) => {
      place(work, kind, key, envelope, before, bytes);
      if (kind !== "zone") return;
      const row = zoneRow(key[0] ?? "");
      setZoneRow(work, rows, { ...row, alive: envelope.content.kind === "body" && envelope.life === row.floor });
    },
    placeRow: (text, row, key) => placeRow(work, text, row, key),
    discard: (kind, stored) => discard(work, kind, stored),
    placed: (kind, key) => work.touched.get(keyText(kind, key))?.latest,
    zoneDigest: (zone, life) => counts.ofZone(zone, life).digest,
    addAlias: (kind, id, key, isMade) => {
      if (!writeAlias(database, kind, id, key)) return;
      work.dirty = true;
      trace?.noteAlias(kind, id, key, isMade);
    },
    trace,
    isDirty: () => work.dirty,
    markDirty: () => {
      work.dirty = true;
    },
    hasEnded: () => rows.hasEnded,
    finish: (origin) => finish(work, rows, origin),
  };
}

function setZoneRow(work: Work, rows: ZoneRows, after: ZoneRow): void {
  const before = work.zoneRow(after.zone);
  if (isDeepStrictEqual(before, after)) return;
  work.dirty = true;
  if (!rows.before.has(after.zone)) rows.before.set(after.zone, before);
  const countOf = (row: ZoneRow) => (row.alive ? work.counts.ofZone(row.zone, row.floor).count : 0);
  const difference = countOf(after) - countOf(before);
  work.counts.addToKind("record", difference);
  work.counts.addToKind("zone", Number(after.alive) - Number(before.alive));
  rows.current.set(after.zone, after);
}

/**
 * The records are dead at once and removed later. Where the deletion knew other records than there are here, those here
 * go to the journal before they are removed.
 */
function raiseFloor(work: Work, rows: ZoneRows, zone: string, floor: Stamp, ending: Ending | undefined): void {
  const row = work.zoneRow(zone);
  const { floor: life } = row;
  if (floor < life) return;
  if (floor === life) {
    if (row.ending === undefined && ending !== undefined) setZoneRow(work, rows, { ...row, ending });
    return;
  }
  const object = readObject(work.database, "zone", [zone]);
  touch(work, "zone", [zone], object);
  const known = ending?.life === life ? ending : undefined;
  const isUnseen = object?.envelope.content.kind === "body" && known?.zoneStamp !== object.envelope.stamp;
  if (object !== undefined && isUnseen) writeJournal(work.database, "zone", object, "zone-deleted", floor);
  const hasUnseen = known?.digest !== work.counts.ofZone(zone, life).digest;
  enlistSweep(work.database, { zone, life, hasUnseen });
  rows.hasEnded = true;
  const { ending: _, ...rest } = row;
  setZoneRow(work, rows, { ...rest, floor, alive: false, ...(ending !== undefined && { ending }) });
}

function* finish(work: Work, rows: ZoneRows, origin: ChangeBatch["origin"]): Generator<void, Finished> {
  const zones: string[] = [];
  const serials = new Map<string, number>();
  for (const [zone, before] of rows.before) {
    const after = rows.current.get(zone) ?? freshZoneRow(zone);
    if (isDeepStrictEqual(after, freshZoneRow(zone))) removeZoneRow(work.database, zone);
    else writeZoneRow(work.database, after);
    work.trace?.noteZone(before, after);
    const isSame =
      isDeepStrictEqual(before.serial, after.serial) && isDeepStrictEqual(before.activation, after.activation);
    if (isSame) continue;
    zones.push(zone);
    if (after.serial !== undefined) serials.set(zone, after.serial.serial);
  }
  const changes: Change[] = [];
  for (const { kind, key, before, latest } of work.touched.values()) {
    yield;
    const after = view(work, kind, latest);
    if (before?.stamp === after?.stamp && before?.shadowedBy === after?.shadowedBy) continue;
    // The records of a deleted zone go with it, and are not named.
    if (kind === "record" && after === undefined && !work.zoneRow(key[0] ?? "").alive) continue;
    changes.push({ kind, key, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
  }
  // At the end, for they are everybody's: a transaction in slices that has read them lets no other change them.
  work.counts.save();
  const traced = work.trace?.traced() ?? NOTHING_TRACED;
  return { batch: { origin, changes, zones, serials }, traced };
}
