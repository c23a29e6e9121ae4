/**
 * Reads what counts, row by row: once to build the digest, and again for the versions behind some of its leaves. Neither
 * holds the thread for more than a few milliseconds at a stretch.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { COUNTED_ALIAS, countedObject, countedZone, isDue } from "./counted.ts";
import { type Database, TABLE, type Table, type TextRow } from "./database.ts";
import { absorbText, beginHash, type Lanes, leafOf } from "./digest-hash.ts";
import { type Counted, leafCount } from "./digest-tree.ts";
import { unpackEnvelope } from "./envelope.ts";
import { countedForeign, readForeignRow } from "./foreign.ts";
import { readZoneRow } from "./objects.ts";
import { bytesOf, type KeyText } from "./overlay.ts";
import { hasRowRef, kindOfRow, objectRef, REF_TABLES, refOf, rowRef } from "./refs.ts";
import type { ItemRef, ItemVersion } from "./replica.ts";
import type { Seal } from "./seal.ts";
import type { Stamp } from "./store.ts";
import type { ZoneRow } from "./zone-row.ts";

export type ScanParts = { readonly database: Database; readonly seal: Seal; readonly now: () => number };
export type CountedRow = {
  readonly ref: ItemRef;
  readonly counted: Counted;
  /** Of a zone's registers: which life it is in, though there be no object of it yet. */
  readonly present?: Pick<ZoneRow, "zone" | "floor">;
};

/** The longest that a scan holds the thread at a stretch. */
const SCAN_SLICE_MS = 4;
const PAGE_ROWS = 128;
const PAGE_CHARACTERS_MAX = 200_000;
const PAGE_KEYS = 512;
const NOTHING = new Uint8Array();

/**
 * Record rows as `packEnvelope` writes nearly all of them, read without JSON.parse: stamp, life and zone. What is hidden
 * until a moment is read the long way.
 */
const PLAIN_ROW =
  /^\{"s":"([^"\\]+)",(?:"b":"[^"\\]*",)?(?:"l":"([^"\\]*)",)?(?:"r":\d+,)?(?:"n":\{[^{}]*\},)?"v":\{"id":"[^"\\]*","zone":"([^"\\]*)"/;

function countedRow(table: Table, { key, value }: TextRow, seal: Seal): CountedRow {
  switch (table) {
    case TABLE.ZONE: {
      const present: ZoneRow = JSON.parse(value);
      return { ref: rowRef(TABLE.ZONE, key), counted: countedZone(present), present };
    }
    case TABLE.ALIAS:
      return { ref: refOf(JSON.parse(value)), counted: COUNTED_ALIAS };
    case TABLE.FOREIGN:
      return { ref: rowRef(TABLE.FOREIGN, key), counted: countedForeign(readForeignRow(value)) };
    default: {
      const counted = plainRecord(key, value);
      if (counted !== undefined) return { ref: rowRef(TABLE.OBJECT, key), counted };
      const kind = kindOfRow(key);
      const stored = unpackEnvelope(value);
      return { ref: objectRef(kind, stored.key, bytesOf(key)), counted: countedObject(kind, stored, seal) };
    }
  }
}

function plainRecord(key: KeyText, value: string): Counted | undefined {
  if (kindOfRow(key) !== "record" || value.includes('"untilMs":')) return undefined;
  const plain = PLAIN_ROW.exec(value);
  if (plain === null) return undefined;
  const [, version = "", life = "", zone = ""] = plain;
  return { zone, life, dueMs: 0, version };
}

/** Where a scan over all tables is. */
export type ScanPlace = { readonly table: number; readonly after: KeyText | undefined };
export const SCAN_START: ScanPlace = { table: 0, after: undefined };

/** `onRecord` hears of nearly all records, whose references are made of their keys, `onRow` of all other rows. */
export type ScanVisitor = {
  readonly onRecord: (key: KeyText, counted: Counted) => void;
  readonly onRow: (row: CountedRow) => void;
};

/**
 * Reads on from `place` for some milliseconds, inside a transaction, so that it sees all that ran before and nothing else.
 * Returns where it is; undefined at the end.
 */
export function scanSlice(
  { database, seal }: ScanParts,
  place: ScanPlace,
  { onRecord, onRow }: ScanVisitor,
): ScanPlace | undefined {
  const end = performance.now() + SCAN_SLICE_MS;
  let { table, after } = place;
  for (;;) {
    const id = REF_TABLES[table];
    if (id === undefined) return undefined;
    const bounds = { prefix: NOTHING, limit: PAGE_ROWS, charactersMax: PAGE_CHARACTERS_MAX };
    const page = database.texts(id, { ...bounds, ...(after !== undefined && { after }) });
    for (const row of page.rows) {
      const plain = id === TABLE.OBJECT ? plainRecord(row.key, row.value) : undefined;
      if (plain === undefined) onRow(countedRow(id, row, seal));
      else onRecord(row.key, plain);
    }
    if (page.isLast) {
      table++;
      after = undefined;
    } else after = page.lastKey;
    if (performance.now() >= end) return { table, after };
  }
}

export type VersionScanner = (leaves: readonly number[]) => Promise<readonly ItemVersion[]>;

/** Several callers share one scan: those that come while one runs wait for the next. */
export function makeVersionScanner(parts: ScanParts): VersionScanner {
  type Caller = {
    readonly leaves: ReadonlySet<number>;
    readonly resolve: (versions: readonly ItemVersion[]) => void;
    readonly reject: (thrown: unknown) => void;
  };
  let waiting: Caller[] = [];
  let isRunning = false;
  const runAll = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const callers = waiting;
      waiting = [];
      try {
        const found = await scanVersions(parts, callers);
        for (const [index, caller] of callers.entries()) caller.resolve(found[index] ?? []);
      } catch (thrown) {
        for (const caller of callers) caller.reject(thrown);
      }
    }
    isRunning = false;
  };
  return (leaves) => {
    if (leaves.some((leaf) => !(Number.isInteger(leaf) && leaf >= 0 && leaf < leafCount()))) {
      return Promise.reject(new RangeError("a leaf that is none"));
    }
    return new Promise((resolve, reject) => {
      waiting.push({ leaves: new Set(leaves), resolve, reject });
      if (!isRunning) void runAll();
    });
  };
}

async function scanVersions(
  parts: ScanParts,
  callers: readonly { readonly leaves: ReadonlySet<number> }[],
): Promise<readonly (readonly ItemVersion[])[]> {
  const { database, seal, now } = parts;
  const wanted = new Uint8Array(leafCount());
  for (const { leaves } of callers) for (const leaf of leaves) wanted[leaf] = 1;
  const found: ItemVersion[][] = callers.map(() => []);
  const lanes: Lanes = { high: 0, low: 0 };
  let floors = new Map<string, Stamp>();
  let end = performance.now() + SCAN_SLICE_MS;
  const take = (table: Table, key: KeyText) => {
    const value = database.get(table, key);
    if (value === undefined) return;
    const { ref, counted } = countedRow(table, { key, value }, seal);
    const leaf = leafOfRef(lanes, ref);
    if (wanted[leaf] === 0 || isDue(counted, now()) || !isOfLife(database, floors, counted)) return;
    for (const [index, { leaves }] of callers.entries()) {
      if (leaves.has(leaf)) found[index]?.push({ ref, version: counted.version });
    }
  };
  for (const [head, table] of REF_TABLES.entries()) {
    let after: KeyText | undefined;
    for (;;) {
      const keys = database.keys(table, { limit: PAGE_KEYS, ...(after !== undefined && { after }) });
      for (const key of keys) {
        beginHash(lanes);
        absorbText(lanes, String(head));
        absorbText(lanes, key);
        if (wanted[leafOf(lanes)] === 1 || (table === TABLE.OBJECT && !hasRowRef(key))) take(table, key);
        if (performance.now() < end) continue;
        await nextTurn();
        floors = new Map();
        end = performance.now() + SCAN_SLICE_MS;
      }
      after = keys.at(-1);
      if (keys.length < PAGE_KEYS) break;
    }
  }
  return found;
}

function leafOfRef(lanes: Lanes, ref: ItemRef): number {
  beginHash(lanes);
  absorbText(lanes, ref);
  return leafOf(lanes);
}

function isOfLife(database: Database, floors: Map<string, Stamp>, { zone, life }: Counted): boolean {
  if (zone === "") return true;
  let floor = floors.get(zone);
  if (floor === undefined) {
    floor = readZoneRow(database, zone).floor;
    floors.set(zone, floor);
  }
  return floor === life;
}
