/** The writes of a command: new versions of this node, all under one stamp. */
import { isDeepStrictEqual } from "node:util";
import { keyText } from "../model/keys.ts";
import { type Bodies, type Kind, NATURAL_KEYS, type NaturalKey } from "../model/objects.ts";
import type { Changes } from "./changes.ts";
import { type Envelope, type StoredEnvelope, seenOf } from "./envelope.ts";
import { isOfZone } from "./open-envelope.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { AuditInput, PutOptions, Stamp, Stored, StoreTransaction } from "./store.ts";
import { greaterActivation, greaterSerial, IMPORTED_SERIAL_MAX, raisedSerial } from "./zone-row.ts";

/**
 * Meanwhile something came to where this transaction writes, under a later stamp: other stores would prefer that. It is to be made
 * anew, under a stamp of its own.
 */
export class Overtaken extends Error {
  override readonly name = "Overtaken";
}

export type TransactionParts = {
  readonly changes: Changes;
  readonly nodeId: string;
  readonly stamp: Stamp;
  readonly nowMs: number;
  readonly audit: (entry: AuditInput) => void;
};

type Local = TransactionParts & {
  /** Zones whose serial has been raised or set: once is enough for a transaction. */
  readonly serialDone: Set<string>;
  readonly created: Set<string>;
};

export function beginTransaction(parts: TransactionParts): StoreTransaction {
  const local: Local = { ...parts, serialDone: new Set(), created: new Set() };
  const { reader } = parts.changes;
  return {
    ...reader,
    stamp: parts.stamp,
    put: (kind, body, options) => put(local, kind, body, options),
    delete: (kind, key) => (kind === "zone" ? deleteZone(local, key[0] ?? "") : remove(local, kind, key)),
    move: (kind, from, body) => move(local, kind, from, body),
    deleteZone: (name) => deleteZone(local, name),
    setSerial: (zone, serial) => setSerial(local, zone, serial),
    setState: (zone, state) => setState(local, zone, state),
    audit: (entry) => {
      parts.changes.markDirty();
      parts.audit(entry);
    },
  };
}

/** The life that an object of that key belongs to; throws where a record's zone is missing. */
function lifeOf({ changes }: Local, kind: Kind, key: NaturalKey): Stamp {
  if (!isOfZone(kind)) return STAMP_ZERO;
  const row = changes.zoneRow(key[0] ?? "");
  if (kind === "record" && !row.alive) throw new Error(`no zone ${key[0]} for a record`);
  return row.floor;
}

function idOf(body: Bodies[Kind]): string {
  return "id" in body ? body.id : "";
}

/** The body as it will be read again: without members that are undefined. */
function plain<Body>(body: Body): Body {
  return JSON.parse(JSON.stringify(body));
}

function placed<K extends Kind>({ changes }: Local, kind: K, key: NaturalKey): Stored<K> {
  const stored = changes.view(kind, changes.placed(kind, key));
  if (stored === undefined) throw new Error(`the ${kind} ${key.join(" ")} is hidden by another of its id`);
  return stored;
}

function put<K extends Kind>(local: Local, kind: K, given: Bodies[K], options?: PutOptions): Stored<K> {
  const { changes, nodeId, stamp } = local;
  const key = NATURAL_KEYS[kind](given);
  const body = plain(given);
  const current = changes.at(kind, key);
  const incumbent = changes.view(kind, current);
  if (incumbent !== undefined && isDeepStrictEqual(incumbent.body, body)) return incumbent;
  const id = idOf(body);
  const life = lifeOf(local, kind, key);
  requireLatest(local, current, life);
  const envelope: Envelope = {
    stamp: options?.stampZero === true && current === undefined ? STAMP_ZERO : stamp,
    born: incumbent?.born ?? stamp,
    life,
    renames: renamesOf(local, kind, id),
    seen: seenOf(nodeId, [current?.envelope]),
    id,
    content: { kind: "body", body },
  };
  changes.place(kind, key, envelope, current);
  if (kind === "zone") zoneChanged(local, key[0] ?? "", incumbent?.body, body);
  else if (kind === "record") raiseSerial(local, key[0] ?? "");
  return placed(local, kind, key);
}

/** Of two versions of a key in one life the later one wins elsewhere, whichever was written first. */
function requireLatest({ stamp }: Local, current: StoredEnvelope | undefined, life: Stamp): void {
  if (current === undefined || current.envelope.life !== life || current.envelope.stamp <= stamp) return;
  throw new Overtaken(`${current.key.join(" ")} has a later version`);
}

/** As many as any version of that id has, so that this one outranks them all. */
function renamesOf({ changes, stamp: own }: Local, kind: Kind, id: string): number {
  let most = 0;
  if (id === "") return most;
  for (const { renames, stamp } of changes.idRows(kind, id)) {
    if (stamp > own) throw new Overtaken(`${id} has a later version`);
    most = Math.max(most, renames);
  }
  return most;
}

function remove(local: Local, kind: Kind, key: NaturalKey): boolean {
  const { changes } = local;
  const current = changes.at(kind, key);
  if (current === undefined || changes.view(kind, current) === undefined) return false;
  bury(local, kind, current, { renames: current.envelope.renames });
  if (kind === "record") raiseSerial(local, key[0] ?? "");
  return true;
}

function bury(
  local: Local,
  kind: Kind,
  current: StoredEnvelope,
  { renames, movedTo }: { readonly renames: number; readonly movedTo?: NaturalKey },
): void {
  const { changes, nodeId, stamp } = local;
  requireLatest(local, current, current.envelope.life);
  const envelope: Envelope = {
    ...current.envelope,
    stamp,
    renames,
    seen: seenOf(nodeId, [current.envelope]),
    content: { kind: "tombstone", ...(movedTo !== undefined && { movedTo }) },
  };
  changes.place(kind, current.key, envelope, current);
}

function move<K extends Kind>(local: Local, kind: K, from: NaturalKey, given: Bodies[K]): Stored<K> {
  const { changes, nodeId, stamp } = local;
  const to = NATURAL_KEYS[kind](given);
  if (keyText(kind, from) === keyText(kind, to)) return put(local, kind, given);
  const source = changes.at(kind, from);
  if (source === undefined || changes.view(kind, source) === undefined) {
    throw new Error(`no ${kind} ${from.join(" ")} to move`);
  }
  const body = plain(given);
  const target = changes.at(kind, to);
  const life = lifeOf(local, kind, to);
  requireLatest(local, target, life);
  const renames = renamesOf(local, kind, idOf(body)) + 1;
  bury(local, kind, source, { renames, movedTo: to });
  const envelope: Envelope = {
    stamp,
    born: source.envelope.born,
    life,
    renames,
    seen: seenOf(nodeId, [target?.envelope]),
    id: idOf(body),
    content: { kind: "body", body },
  };
  changes.place(kind, to, envelope, target);
  if (kind === "record") for (const key of [from, to]) raiseSerial(local, key[0] ?? "");
  return placed(local, kind, to);
}

function deleteZone(local: Local, name: string): boolean {
  const { changes, stamp } = local;
  const current = changes.at("zone", [name]);
  const row = changes.zoneRow(name);
  if (current === undefined || !row.alive) return false;
  if (row.floor > stamp) throw new Overtaken(`${name} was deleted meanwhile`);
  if (row.floor === stamp) throw new Error(`the zone ${name} cannot be deleted twice in one transaction`);
  const ending = {
    life: row.floor,
    zoneStamp: current.envelope.stamp,
    digest: changes.zoneDigest(name, row.floor),
  };
  bury(local, "zone", current, { renames: 0 });
  changes.raiseFloor(name, stamp, ending);
  local.created.delete(name);
  return true;
}

/** What the SOA or the answers are made of; the lock is neither. */
const SERVED_FIELDS = ["soa", "default_ttl", "lb_policy"] as const;

function zoneChanged(local: Local, name: string, before: unknown, after: unknown): void {
  if (before === undefined) local.created.add(name);
  const field = (body: unknown, each: string) => (body as Readonly<Record<string, unknown>>)[each];
  if (
    before === undefined ||
    SERVED_FIELDS.some((each) => !isDeepStrictEqual(field(before, each), field(after, each)))
  ) {
    raiseSerial(local, name);
  }
}

function raiseSerial(local: Local, zone: string): void {
  const { changes, serialDone, nowMs } = local;
  if (serialDone.has(zone)) return;
  serialDone.add(zone);
  const row = changes.zoneRow(zone);
  const serial = { life: row.floor, serial: raisedSerial(row.serial?.serial, nowMs) };
  changes.setZoneRow({ ...row, serial: greaterSerial(row.serial, serial) });
}

function setSerial(local: Local, zone: string, serial: number): void {
  if (!local.created.has(zone)) throw new Error(`the zone ${zone} was not created in this transaction`);
  if (!Number.isInteger(serial) || serial < 0 || serial > IMPORTED_SERIAL_MAX) {
    throw new RangeError(`serial ${serial} is not between 0 and ${IMPORTED_SERIAL_MAX}`);
  }
  const row = local.changes.zoneRow(zone);
  local.serialDone.add(zone);
  local.changes.setZoneRow({ ...row, serial: { life: row.floor, serial } });
}

function setState(local: Local, zone: string, state: "pending" | "active"): void {
  const row = local.changes.zoneRow(zone);
  if (!row.alive) throw new Error(`no zone ${zone}`);
  local.changes.setZoneRow({ ...row, activation: greaterActivation(row.activation, { life: row.floor, state }) });
}
