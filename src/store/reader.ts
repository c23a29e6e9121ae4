/** What the store shows: alive objects with what hides them, in the order of keys. */

import { keyBytes } from "../model/keys.ts";
import type { Bodies, Kind, NaturalKey } from "../model/objects.ts";
import { isAlive, type ZoneLookup } from "./alive.ts";
import { readAnswering } from "./answering.ts";
import type { Counts } from "./counts.ts";
import { behindPrefix, type Database, TABLE } from "./database.ts";
import { homeOfId } from "./effective.ts";
import { type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { idKey, readId, readObject } from "./objects.ts";
import type { AliasItem } from "./raw-items.ts";
import type { Seal } from "./seal.ts";
import { LIST_PAGE_MAX, type ListOptions, type Stored, type StoreReader } from "./store.ts";
import { stateOfZone, type ZoneRow } from "./zone-row.ts";

export type ReaderParts = {
  readonly database: Database;
  readonly seal: Seal;
  readonly counts: Counts;
  readonly zoneRow: ZoneLookup;
};

/** The object as others see it, its secrets opened. Undefined for a tombstone. */
export function storedOf<K extends Kind>(kind: K, object: StoredEnvelope, seal: Seal): Stored<K> | undefined {
  const { key, envelope, sealed, hidden } = object;
  if (envelope.content.kind !== "body") return undefined;
  const body = envelope.content.body;
  return {
    kind,
    key,
    stamp: envelope.stamp,
    born: envelope.born,
    // The store wrote it as a body of this kind.
    body: (sealed ? seal.open(kind, key, body) : body) as Bodies[K],
    ...(hidden?.by === "name" && { shadowedBy: hidden.rival }),
  };
}

export function makeReader({ database, seal, counts, zoneRow }: ReaderParts): StoreReader {
  const show = <K extends Kind>(kind: K, object: StoredEnvelope | undefined, lookup: ZoneLookup) =>
    object !== undefined && isAlive(kind, object, lookup) ? storedOf(kind, object, seal) : undefined;
  const get = <K extends Kind>(kind: K, key: NaturalKey) => show(kind, readObject(database, kind, key), zoneRow);
  return {
    get,
    byId: (kind, id) => {
      const rows = readId(database, kind, id);
      const home = homeOfId(rows);
      const row = rows.find(({ key }) => key === home);
      const found = row === undefined ? undefined : get(kind, row.naturalKey);
      if (found !== undefined) return found;
      for (const { value } of database.range(TABLE.ALIAS, { prefix: idKey(kind, id), limit: ALIASES_READ })) {
        const alias: AliasItem = JSON.parse(value);
        const stored = get(kind, alias.key);
        if (stored !== undefined) return stored;
      }
      return undefined;
    },
    list: (kind, options) => list(database, kind, options, zoneRow, show),
    count: (kind, zone) => {
      if (zone === undefined) return counts.ofKind(kind);
      const row = zoneRow(zone);
      return row.alive ? counts.ofZone(zone, row.floor).count : 0;
    },
    serialOf: (zone) => {
      const row = zoneRow(zone);
      return row.alive ? row.serial?.serial : undefined;
    },
    stateOf: (zone) => stateOfZone(zoneRow(zone)),
    answering: (zone, options) => readAnswering(database, zoneRow, seal, zone, options),
  };
}
const ALIASES_READ = 100;
/** Rows read at once while looking for those that are alive. */
const CHUNK_MIN = 64;

function list<K extends Kind>(
  database: Database,
  kind: K,
  options: ListOptions,
  zoneRow: ZoneLookup,
  show: (kind: K, object: StoredEnvelope, lookup: ZoneLookup) => Stored<K> | undefined,
): readonly Stored<K>[] {
  const limit = Math.min(options.limit, LIST_PAGE_MAX);
  const prefix = keyBytes(kind, options.prefix ?? []);
  const zones = new Map<string, ZoneRow>();
  const lookup: ZoneLookup = (zone) => {
    const known = zones.get(zone) ?? zoneRow(zone);
    zones.set(zone, known);
    return known;
  };
  const found: Stored<K>[] = [];
  let charactersLeft = options.charactersMax ?? Number.POSITIVE_INFINITY;
  let after = options.after === undefined ? undefined : keyBytes(kind, options.after);
  // An empty list is the end, so what is dead is read past, however much of it there is.
  while (found.length < limit && (charactersLeft > 0 || found.length === 0)) {
    const chunk = Math.max(limit - found.length, CHUNK_MIN);
    const page = database.values(TABLE.OBJECT, {
      prefix,
      limit: chunk,
      charactersMax: charactersLeft > 0 ? charactersLeft : (options.charactersMax ?? charactersLeft),
      ...(after !== undefined && { after }),
    });
    let { isLast } = page;
    after = page.lastKey;
    for (const value of page.values) {
      charactersLeft -= value.length;
      const object = unpackEnvelope(value);
      const stored = show(kind, object, lookup);
      if (stored !== undefined && found.length < limit) found.push(stored);
      const zone = kind === "record" ? object.key[0] : undefined;
      if (zone === undefined || lookup(zone).alive) continue;
      // The records of a deleted zone may be a million, and are removed in their own time.
      after = behindPrefix(keyBytes("record", [zone]));
      isLast = false;
      break;
    }
    if (isLast) break;
  }
  return found;
}
