/** Takes in what another store has: the greater version of each key stays, the greater value of each register. */
import { isDeepStrictEqual } from "node:util";
import { KeyError, keyBytes } from "../model/keys.ts";
import type { Kind } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import type { Changes } from "./changes.ts";
import type { Database } from "./database.ts";
import { compareVersions, type Envelope, hasSeen, type StoredEnvelope } from "./envelope.ts";
import { foreignOf, mergeForeign } from "./foreign.ts";
import { isWellFormed } from "./item-check.ts";
import { writeJournal } from "./journal.ts";
import { mergeRows } from "./merge-rows.ts";
import { isOfZone, openEnvelope } from "./open-envelope.ts";
import type { RawItem } from "./raw-items.ts";
import type { Seal } from "./seal.ts";
import { type Clock, STAMP_ZERO, stampBehind } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import { isSwept } from "./sweep-list.ts";
import { collectionMs } from "./tombstones.ts";
import { freshZoneRow, greaterActivation, greaterSerial, isForgotten, raisedSerial, stateOfZone } from "./zone-row.ts";

export const STAMP_AHEAD_MAX_MS = 10_000;

/** `future`: stamped too far ahead of this node's clock. `collected`: a tombstone past its time. */
export type RefusalReason = "future" | "collected" | "malformed";
export type RefusedItem = { readonly index: number; readonly reason: RefusalReason };

export type MergeParts = {
  readonly changes: Changes;
  readonly database: Database;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly nowMs: number;
  readonly isFirstSync: boolean;
  readonly isPartial: boolean;
};

export type RemoteOptions = {
  /** Of zones that do not answer here yet no serial is raised: nobody has heard of one. */
  readonly firstSync?: true;
  /** More follows that belongs to these items: zones that do not answer here yet do not become active by them. */
  readonly partial?: true;
  /** Plain records as they lie in the other store, beside the items: see `RawPage`. Nobody is told which of them were refused. */
  readonly rows?: readonly string[];
};

/** Merges items in any order, a step each, and tells those that it refused. */
export function* mergeItems(
  parts: MergeParts,
  items: readonly RawItem[],
  rows: readonly string[] = [],
): Generator<void, readonly RefusedItem[]> {
  const futureFrom = stampBehind(parts.nowMs + STAMP_AHEAD_MAX_MS);
  const merging = beginMerging(parts, futureFrom);
  const floors: number[] = [];
  const others: number[] = [];
  for (const [index, item] of items.entries()) {
    if (merging.accepts(item, index)) (item.item === "floor" ? floors : others).push(index);
    yield;
  }
  // A deletion says what it knew; a record of the zone's next life only that there was one.
  for (const index of floors) {
    merging.merge(items[index], index);
    yield;
  }
  // Before other records: these are compared with what lies here, and what lies here already is not written as it came.
  const unwritten = yield* mergeRows({ ...parts, futureFrom, note: merging.note }, rows);
  for (const item of unwritten) {
    if (merging.accepts(item, undefined)) merging.merge(item, undefined);
    yield;
  }
  for (const index of others) {
    merging.merge(items[index], index);
    yield;
  }
  return merging.end();
}

/** What merging one after the other has to know of those before. `index` is absent where nobody asks which were refused. */
function beginMerging(parts: MergeParts, futureFrom: string) {
  const refused: RefusedItem[] = [];
  const changed = new Set<string>();
  const serials = new Map<string, number | undefined>();
  let latest: Stamp = STAMP_ZERO;
  const note = (stamp: Stamp) => {
    if (stamp > latest) latest = stamp;
  };
  const refuse = (index: number | undefined, reason: RefusalReason) => {
    if (index !== undefined) refused.push({ index, reason });
  };
  return {
    note,
    accepts: (item: RawItem, index: number | undefined): boolean => {
      const reason = faultOf(item, parts.nowMs, futureFrom);
      if (reason !== undefined) refuse(index, reason);
      return reason === undefined;
    },
    merge: (item: RawItem | undefined, index: number | undefined) => {
      if (item === undefined) return;
      try {
        if ("zone" in item && !serials.has(item.zone)) serials.set(item.zone, serialNow(parts, item.zone));
        mergeItem(parts, item, changed);
        for (const stamp of stampsOf(item)) note(stamp);
      } catch (thrown) {
        // Before anything of it was written: a key that is none, or more than a row may hold.
        if (!(thrown instanceof KeyError || thrown instanceof Refusal)) throw thrown;
        refuse(index, "malformed");
      }
    },
    end: (): readonly RefusedItem[] => {
      parts.clock.observe(latest);
      for (const zone of changed) raiseUnlessRaised(parts, zone, serials);
      return refused.sort((left, right) => left.index - right.index);
    },
  };
}

function serialNow({ changes }: MergeParts, zone: string): number | undefined {
  return changes.zoneRow(zone).serial?.serial;
}

/** A change that came without a serial above ours must still be seen by secondaries of this node. */
function raiseUnlessRaised(parts: MergeParts, zone: string, before: ReadonlyMap<string, number | undefined>): void {
  const row = parts.changes.zoneRow(zone);
  const isRaised = before.has(zone) && row.serial?.serial !== before.get(zone);
  if (!row.alive || row.serial === undefined || isRaised) return;
  if (parts.isFirstSync && stateOfZone(row) !== "active") return;
  const serial = { life: row.floor, serial: raisedSerial(row.serial.serial, parts.nowMs) };
  parts.changes.setZoneRow({ ...row, serial: greaterSerial(row.serial, serial) });
  parts.changes.trace?.noteMade(zone);
}

function stampsOf(item: RawItem): readonly Stamp[] {
  switch (item.item) {
    case "object":
      return [item.envelope.stamp, item.envelope.born, item.envelope.life];
    case "floor":
      return [item.floor];
    case "serial":
    case "activation":
      return [item.life];
    case "alias":
      return [];
  }
}

function faultOf(item: RawItem, nowMs: number, futureFrom: string): RefusalReason | undefined {
  if (!isWellFormed(item)) return "malformed";
  if (stampsOf(item).some((stamp) => stamp >= futureFrom)) return "future";
  if (item.item !== "object" || item.envelope.content.kind !== "tombstone") return undefined;
  return collectionMs(item.envelope.stamp) <= nowMs ? "collected" : undefined;
}

function mergeItem(parts: MergeParts, item: RawItem, changed: Set<string>): void {
  const { changes } = parts;
  const foreign = foreignOf(item);
  if (foreign !== undefined) {
    if (mergeForeign(parts.database, parts.seal, changes.trace, foreign)) changes.markDirty();
    return;
  }
  switch (item.item) {
    case "floor":
      changes.raiseFloor(item.zone, item.floor, item.ending);
      break;
    case "serial": {
      const row = changes.zoneRow(item.zone);
      const { life, serial } = item;
      changes.setZoneRow({ ...row, serial: greaterSerial(row.serial, { life, serial }) });
      break;
    }
    case "activation": {
      const row = changes.zoneRow(item.zone);
      const { life, state } = item;
      if (parts.isPartial && state === "active" && stateOfZone(row) !== "active") break;
      changes.setZoneRow({ ...row, activation: greaterActivation(row.activation, { life, state }) });
      break;
    }
    case "alias":
      changes.addAlias(item.kind, item.id, item.key, false);
      break;
    case "object":
      mergeObject(parts, item, changed);
      break;
  }
}

function mergeObject(
  parts: MergeParts,
  { kind, key, envelope }: Extract<RawItem, { item: "object" }>,
  changed: Set<string>,
): void {
  const { changes } = parts;
  const zone = isOfZone(kind) ? (key[0] ?? "") : undefined;
  if (zone !== undefined) {
    const { floor } = changes.zoneRow(zone);
    // Who made it hears of the floor too, and journals what the deletion had not seen.
    if (envelope.life < floor && !forgetFloor(parts, zone)) return;
    if (envelope.life > floor) changes.raiseFloor(zone, envelope.life, undefined);
  }
  const bytes = keyBytes(kind, key);
  const current = changes.at(kind, key, bytes);
  if (current === undefined) changes.place(kind, key, envelope, undefined, bytes);
  else if (!choose(parts, kind, current, envelope)) return;
  if (zone !== undefined) changed.add(zone);
}

/**
 * A floor that has been forgotten elsewhere holds nothing down here either: a zone that was created anew there begins with
 * the first life again. Records of the old lives must have been removed.
 */
function forgetFloor({ changes, database, nowMs }: MergeParts, zone: string): boolean {
  if (!isForgotten(changes.zoneRow(zone), nowMs) || isSwept(database, zone)) return false;
  changes.setZoneRow(freshZoneRow(zone));
  return true;
}

/** Whether the incoming version took the place of the current one. */
function choose(parts: MergeParts, kind: Kind, current: StoredEnvelope, incoming: Envelope): boolean {
  const { changes, database, seal } = parts;
  const { key } = current;
  const mine = openEnvelope(kind, current, seal);
  const order = compareVersions(mine, incoming);
  if (order === 0) return false;
  const [winner, loser] = order > 0 ? [mine, incoming] : [incoming, mine];
  const isConflict = winner.life === loser.life && !hasSeen(winner, loser) && !isSame(winner, loser);
  if (isConflict) {
    changes.markDirty();
    writeJournal(database, kind, order > 0 ? sealed(key, incoming, kind, seal) : current, "replaced", winner.stamp);
    const areCreates = winner.content.kind === "body" && loser.content.kind === "body";
    if (areCreates && loser.id !== "" && loser.id !== winner.id) changes.addAlias(kind, loser.id, key, true);
  }
  if (order > 0) return false;
  changes.place(kind, key, incoming, current);
  return true;
}

/** Whoever made the same lost nothing: parts of a blocklist have the same key only where they have the same content. */
function isSame({ content: left }: Envelope, { content: right }: Envelope): boolean {
  return left.kind === "body" && right.kind === "body" && isDeepStrictEqual(left.body, right.body);
}

function sealed(key: StoredEnvelope["key"], envelope: Envelope, kind: Kind, seal: Seal): StoredEnvelope {
  const { content } = envelope;
  if (content.kind !== "body") return { key, envelope, sealed: false, hidden: undefined };
  const { body, sealed: isSealed } = seal.seal(kind, key, content.body);
  return { key, envelope: { ...envelope, content: { kind: "body", body } }, sealed: isSealed, hidden: undefined };
}
