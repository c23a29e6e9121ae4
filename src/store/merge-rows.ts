/**
 * Takes in plain records as they lie in another store, a page of them in the order of their keys: what a first sync mostly is. Where
 * this store has nothing between the first and the last of them there is nothing to choose and nobody to hide, and a row is
 * written as it came. All else goes the way of single items.
 */
import { KeyError, keyBytes, keyCharacters } from "../model/keys.ts";
import { TTL_MAX } from "../model/limits.ts";
import type { NaturalKey } from "../model/objects.ts";
import { ownsName } from "../model/ownership.ts";
import type { Changes } from "./changes.ts";
import { behindPrefix, type Database, TABLE, VALUE_BYTES_MAX } from "./database.ts";
import { unpackEnvelope } from "./envelope.ts";
import { ID, isZoneName, PART_CHARACTERS_MAX } from "./item-check.ts";
import { bytesOf, type KeyText } from "./overlay.ts";
import { type PlainRow, readPlainRow } from "./plain-row.ts";
import type { RawItem } from "./raw-items.ts";
import { isStamp, STAMP_ZERO } from "./stamp.ts";
import type { Stamp } from "./store.ts";
import { stateOfZone } from "./zone-row.ts";

export type RowParts = {
  readonly changes: Changes;
  readonly database: Database;
  /** Stamps from here on are refused. */
  readonly futureFrom: string;
  /** Hears the stamps of what is written. */
  readonly note: (stamp: Stamp) => void;
};

/** A row that may be written as it came. */
type Fitting = { readonly text: string; readonly row: PlainRow; readonly key: KeyText };

/** About a tenth of a millisecond's. */
const ROWS_A_STEP = 16;

/**
 * Writes what it can, step by step, and gives the others as items. A text that is no plain row is left out: no store sends
 * one, and comparing finds what is missing.
 */
export function* mergeRows(parts: RowParts, texts: readonly string[]): Generator<void, readonly RawItem[]> {
  const others: RawItem[] = [];
  const fitting: Fitting[] = [];
  const isOpen = zoneCheck(parts.changes);
  let taken = 0;
  for (const text of texts) {
    const row = readPlainRow(text);
    if (row !== undefined) {
      // First, for a zone whose name is none has no row to ask.
      const key = keyOf(row);
      if (key !== undefined && isOpen(row) && isSound(row, text, parts.futureFrom)) fitting.push({ text, row, key });
      else others.push(itemOf(text));
    }
    if (++taken % ROWS_A_STEP === 0) yield;
  }
  const isFree = isNothingAt(parts.database, fitting);
  for (let index = 0; index < fitting.length; index++) {
    const { text, row, key } = fitting[index]!;
    const isPlaced = isFree && !isOwned(fitting, index) && parts.changes.placeRow(text, row, key);
    if (!isPlaced) others.push(itemOf(text));
    else {
      parts.note(row.stamp);
      parts.note(row.born);
      parts.note(row.life);
    }
    if (++taken % ROWS_A_STEP === 0) yield;
  }
  return others;
}

/** Whether nobody is told of the records of a zone one by one: it does not answer here, and is in that life. */
function zoneCheck({ zoneRow }: Changes): (row: PlainRow) => boolean {
  const known = new Map<string, Stamp | undefined>();
  return ({ zone, life }) => {
    if (!known.has(zone)) {
      const isClosed = !isZoneName(zone) || stateOfZone(zoneRow(zone)) === "active";
      known.set(zone, isClosed ? undefined : zoneRow(zone).floor);
    }
    return known.get(zone) === life;
  };
}

/** What is asked of every item; that it is a record's body with its own key the pattern of the row has seen. */
function isSound({ stamp, born, life, id, name, ttl }: PlainRow, text: string, futureFrom: string): boolean {
  if (stamp === STAMP_ZERO || !isStamp(stamp) || (born !== stamp && !isStamp(born))) return false;
  if (stamp >= futureFrom || born >= futureFrom || life >= futureFrom) return false;
  if (id === "" || !ID.test(id) || ttl > TTL_MAX) return false;
  // Of two spellings of a name the keys are the same.
  if (name.length > PART_CHARACTERS_MAX || name.toLowerCase() !== name || name.endsWith(".")) return false;
  return text.length <= VALUE_BYTES_MAX / 3;
}

function keyOf({ zone, name, type }: PlainRow): KeyText | undefined {
  try {
    return keyCharacters("record", [zone, name, type]);
  } catch (thrown) {
    if (!(thrown instanceof KeyError)) throw thrown;
    return undefined;
  }
}

/** Whether they come in the order of their keys, and the store has no record from the first one's name to the last one's. */
function isNothingAt(database: Database, rows: readonly Fitting[]): boolean {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return true;
  const isOrdered = rows.every(({ key }, index) => index === 0 || rows[index - 1]!.key < key);
  if (!isOrdered) return false;
  const [next] = database.range(TABLE.OBJECT, { prefix: RECORDS, after: bytesOf(nameOf(first)), limit: 1 });
  return next === undefined || Buffer.compare(next.key, behindPrefix(bytesOf(nameOf(last)))) >= 0;
}
const RECORDS = keyBytes("record", []);

/** Whether its name has several records and one of them owns it: which of them are in effect has to be worked out. */
function isOwned(rows: readonly Fitting[], index: number): boolean {
  const { row } = rows[index]!;
  let first = index;
  let last = index;
  while (first > 0 && haveOneName(rows[first - 1]!.row, row)) first--;
  while (last + 1 < rows.length && haveOneName(rows[last + 1]!.row, row)) last++;
  if (first === last) return false;
  for (let at = first; at <= last; at++) if (ownsName(rows[at]!.row.type)) return true;
  return false;
}

function haveOneName(left: PlainRow, right: PlainRow): boolean {
  return left.name === right.name && left.zone === right.zone;
}

/** The key without its type, which is the last part. */
function nameOf({ key, row }: Fitting): KeyText {
  return key.slice(0, key.length - row.type.length - 1);
}

function itemOf(text: string): RawItem {
  const { key, envelope } = unpackEnvelope(text);
  return { item: "object", kind: "record", key: key satisfies NaturalKey, envelope };
}
