/**
 * How many objects are alive, kept as counters. The records of a zone are counted under the zone's life, so that raising
 * its floor leaves the old count behind. Beside that count lies a digest of the versions: an exclusive or of their
 * hashes, equal for equal sets whatever their order.
 */
import type { Kind } from "../model/objects.ts";
import { type Database, TABLE } from "./database.ts";
import { textKey } from "./objects.ts";
import type { Stamp } from "./store.ts";

export type Tally = { readonly count: number; readonly digest: string };
const EMPTY: Tally = { count: 0, digest: "0000000000000000" };

export type Counts = {
  readonly ofKind: (kind: Kind) => number;
  readonly ofZone: (zone: string, life: Stamp) => Tally;
};

export type CountChanges = Counts & {
  readonly addToKind: (kind: Kind, difference: number) => void;
  /** `version` is what comes to or leaves the set of versions: it is its own opposite. */
  readonly addToZone: (zone: string, life: Stamp, difference: number, version: string | undefined) => void;
  /** Writes what has changed. */
  readonly save: () => void;
};

function kindKey(kind: Kind): Uint8Array {
  return textKey("kind", kind);
}

function zoneKey(zone: string, life: Stamp): Uint8Array {
  return textKey("zone", zone, life);
}

function readTally(database: Database, key: Uint8Array): Tally {
  const text = database.get(TABLE.COUNT, key);
  return text === undefined ? EMPTY : JSON.parse(text);
}

export function readCounts(database: Database): Counts {
  return {
    ofKind: (kind) => readTally(database, kindKey(kind)).count,
    ofZone: (zone, life) => readTally(database, zoneKey(zone, life)),
  };
}

/** What stands for one version in the digest of its zone; `key` is the text of its key. */
export function versionText(key: string, { stamp }: { readonly stamp: Stamp }): string {
  return `${key}\0${stamp}`;
}

/** Forgets the counter of an ended life. */
export function strikeTally(database: Database, zone: string, life: Stamp): void {
  database.remove(TABLE.COUNT, zoneKey(zone, life));
}

/**
 * Counters of one transaction: held in memory until `save`. Those of kinds are read no earlier unless somebody asks: nearly
 * all transactions change them, and one that only adds to them stands in the way of no other.
 */
export function changeCounts(database: Database): CountChanges {
  const zones = new Map<string, Counter>();
  const kinds = new Map<Kind, number>();
  const ofZone = (zone: string, life: Stamp) => {
    const name = `${zone}\0${life}`;
    let found = zones.get(name);
    if (found === undefined) {
      const key = zoneKey(zone, life);
      const { count, digest } = readTally(database, key);
      const [high, low] = [0, 8].map((at) => Number.parseInt(digest.slice(at, at + 8), 16));
      found = { key, count, high: high ?? 0, low: low ?? 0, isChanged: false };
      zones.set(name, found);
    }
    return found;
  };
  return {
    ofKind: (kind) => readTally(database, kindKey(kind)).count + (kinds.get(kind) ?? 0),
    ofZone: (zone, life) => tallyOf(ofZone(zone, life)),
    addToKind: (kind, difference) => {
      kinds.set(kind, (kinds.get(kind) ?? 0) + difference);
    },
    addToZone: (zone, life, difference, version) => {
      const found = ofZone(zone, life);
      found.count += difference;
      found.isChanged = true;
      if (version !== undefined) mixIn(found, version);
    },
    save: () => {
      for (const counter of zones.values()) {
        if (counter.isChanged) database.put(TABLE.COUNT, counter.key, JSON.stringify(tallyOf(counter)));
      }
      for (const [kind, difference] of kinds) {
        if (difference === 0) continue;
        const key = kindKey(kind);
        const tally = readTally(database, key);
        database.put(TABLE.COUNT, key, JSON.stringify({ ...tally, count: tally.count + difference }));
      }
      kinds.clear();
    },
  };
}

/** A tally in the making: the digest as two words. */
type Counter = { readonly key: Uint8Array; count: number; high: number; low: number; isChanged: boolean };

function tallyOf({ count, high, low }: Counter): Tally {
  const digest = [high, low].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  return { count, digest };
}

/** Two lanes of FNV-1a with a final mix; guards against accidents, not against an attacker. */
function mixIn(counter: Counter, text: string): void {
  let low = 0x811c9dc5;
  let high = 0x1b873593;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ (code + index), 0x5bd1e995);
    high ^= high >>> 15;
  }
  counter.high ^= mix(low);
  counter.low ^= mix(high);
}

function mix(half: number): number {
  const mixed = Math.imul(half ^ (half >>> 16), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
