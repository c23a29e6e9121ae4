/** Pages of rows that no store would send, made by chance: they do what the same records do that come as items. */
import assert from "node:assert/strict";
import test from "node:test";
import { keyBytes } from "../../src/model/keys.ts";
import type { RecordType } from "../../src/model/objects.ts";
import { unpackEnvelope } from "../../src/store/envelope.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { readPlainRow } from "../../src/store/plain-row.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { clockAt, HOUR_MS, seedOf } from "./random-stores.ts";
import { START } from "./two-stores.ts";

const PARTIAL = { firstSync: true, partial: true } as const;
/** Nothing lies in these before their first page comes. */
const EMPTY_ZONES = Array.from({ length: 8 }, (_, index) => `empty${index}.`);
const ZONES = ["active.", "again.", "gone.", "pending.", "sub.pending.", "unknown.", ".", ...EMPTY_ZONES];
const NOT_ZONES = ["a..b.", "..", `${"x".repeat(64)}.`, "a.".repeat(130), "Pending.", "pending", ""];
const NAMES = [
  "@",
  "*",
  "a",
  "a.b",
  "b",
  "b.a.b",
  "größe",
  "one two",
  "_x",
  "z".repeat(63),
  "a.".repeat(120).slice(0, -1),
];
/** Each the only spelling of its name. */
const NOT_NAMES = ["", "dot.", "Case", "x..y", "y".repeat(64), "v.".repeat(600).slice(0, -1)];
const TYPES: readonly RecordType[] = ["A", "AAAA", "ALIAS", "CNAME", "NS", "TXT"];
const IDS = Array.from({ length: 12 }, (_, index) => `rec_${index}`);
const NOT_IDS = ["", "with space", "größe", "x".repeat(129), "\u007f"];
const VALUES = ["192.0.2.1", "", "größe", "x".repeat(21_900), "ü".repeat(32_000), "x".repeat(65_500)];

const stampAt = (ms: number, node: string) => `${ms.toString(16).padStart(12, "0")}0000-${node}`;
const LONG_AGO = START - HOUR_MS;

/** What most rows have, and now and then something else. */
function usually(chance: Chance, usual: readonly string[], odd: readonly string[]): string {
  return chance.below(12) === 0 ? chance.pick(odd) : chance.pick(usual);
}

function stampOf(chance: Chance): string {
  const usual = ["n8", "n9"].flatMap((node) => [0, 1, 2].map((ms) => stampAt(LONG_AGO + ms, node)));
  return usually(chance, usual, ["", "yesterday", stampAt(START + HOUR_MS, "n9"), `${stampAt(LONG_AGO, "n9")} `]);
}

/** The present life of each zone that has ended one. */
type Floors = ReadonlyMap<string, string>;

/** What the rows of a page are of. `isAlone`: it may end a life, and what comes with others of that life depends on the order. */
type Page = { readonly zones: readonly string[]; readonly names: readonly string[]; readonly isAlone: boolean };

function randomRow(chance: Chance, floors: Floors, { zones, names, isAlone }: Page): string {
  const stamp = stampOf(chance);
  const born = chance.below(3) === 0 ? stampOf(chance) : stamp;
  const zone = usually(chance, zones, [...NOT_ZONES, ...zones.map((each) => each.slice(0, -1))]);
  const later = isAlone ? [stampAt(LONG_AGO, "n7"), stampAt(START - 1, "n7")] : [];
  const life = usually(chance, [floors.get(zone) ?? ""], ["", "life", ...later]);
  const type = chance.pick(TYPES);
  const value = chance.below(8) === 0 ? chance.pick(VALUES) : "192.0.2.1";
  const body = recordBody(zone, usually(chance, names, NOT_NAMES), {
    id: usually(chance, chance.below(2) === 0 ? IDS : [`rec_${chance.below(2 ** 20)}`], NOT_IDS),
    type,
    ttl: chance.below(12) === 0 ? chance.pick([2 ** 31 - 1, 2 ** 31, 9_999_999_999]) : 60,
    values: Array.from({ length: 1 + chance.below(2) }, () => ({ value })),
    protected: chance.below(2) === 0,
  });
  return JSON.stringify({
    s: stamp,
    ...((born !== stamp || chance.below(8) === 0) && { b: born }),
    ...((life !== "" || chance.below(8) === 0) && { l: life }),
    v: body,
  });
}

function itemOf(text: string): RawItem {
  const { key, envelope } = unpackEnvelope(text);
  return { item: "object", kind: "record", key, envelope };
}

/** Where a row lies, or where it would if it could. */
function placeOf(text: string): string {
  const { key } = unpackEnvelope(text);
  try {
    return Buffer.from(keyBytes("record", key)).toString("latin1");
  } catch {
    return key.join(" ");
  }
}

function randomPage(chance: Chance, floors: Floors): readonly string[] {
  const length = chance.pick([1, 3, 8, 20]);
  const isNarrow = chance.below(3) > 0;
  const zones = isNarrow ? [chance.pick(EMPTY_ZONES)] : ZONES;
  const names = isNarrow && chance.below(2) === 0 ? [chance.pick(NAMES), chance.pick(NAMES)] : NAMES;
  const rows = Array.from({ length }, () => randomRow(chance, floors, { zones, names, isAlone: length === 1 }));
  const placed = [...new Map(rows.map((text) => [placeOf(text), text]))].map(([place, text]) => ({ place, text }));
  // Of one stamp: of several versions of a key in one page it depends on the order which of them meet.
  if (chance.below(4) === 0) {
    const { place, text } = chance.pick(placed);
    placed.push({ place, text: text.replace('"ttl":60', `"ttl":${60 + chance.below(2)}`) });
  }
  if (chance.below(4) > 0) placed.sort((left, right) => (left.place < right.place ? -1 : 1));
  return placed.map(({ text }) => text);
}

/** What both have before anything comes: zones of all states, and ids that live, have moved and are deleted. */
async function fill(store: NodeStore): Promise<void> {
  await store.write((tx) => {
    for (const zone of ZONES) if (zone !== "unknown.") tx.put("zone", zoneBody(zone));
    tx.setState("active.", "active");
    for (const zone of ["pending.", "again.", "gone."]) {
      for (const name of ["b", "own"]) tx.put("record", recordBody(zone, name, { id: `rec_${name}.${zone}` }));
    }
    tx.put("record", recordBody("sub.pending.", "a", { id: IDS[0] ?? "" }));
    tx.put("record", recordBody("pending.", "a", { id: IDS[1] ?? "" }));
    tx.put("record", recordBody("pending.", "c", { id: IDS[2] ?? "", type: "CNAME" }));
  });
  await store.write((tx) => {
    tx.move("record", ["pending.", "a", "A"], recordBody("pending.", "moved", { id: IDS[1] ?? "" }));
    tx.delete("record", ["pending.", "c", "CNAME"]);
    for (const zone of ["again.", "gone."]) tx.deleteZone(zone);
  });
  await store.write((tx) => void tx.put("zone", zoneBody("again.")));
}

function floorsOf(store: NodeStore): Floors {
  const { items } = store.rawItems({ limit: 10_000 });
  return new Map(items.flatMap((item) => (item.item === "floor" ? [[item.zone, item.floor]] : [])));
}

/** All that a store shows of what came. */
function shown(store: NodeStore) {
  const records = store
    .list("record", { limit: 5_000 })
    .map(({ key, body, stamp, born, shadowedBy }) => ({ key, body, stamp, born, shadowedBy }));
  const zones = ZONES.map((zone) => ({
    zone,
    count: store.count("record", zone),
    digest: store.zoneDigest(zone),
    state: store.stateOf(zone),
    serial: store.serialOf(zone),
    answering: store.answering(zone, { limit: 5_000 }).records,
  }));
  const everything = store.rawItems({ limit: 10_000 }).items;
  const ids = everything.flatMap((item) =>
    item.item === "object" && item.kind === "record" ? [item.envelope.id] : [],
  );
  const homes = [...IDS, ...ids].map((id) => [id, store.byId("record", id)?.key]);
  return { records, zones, everything, homes, count: store.count("record"), root: store.digest.root() };
}

/** What shows whether the rows behind what is shown are in order too: everything is deleted, and what was hidden comes out. */
async function removeAll(store: NodeStore): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  for (let turn = 0; turn < 4; turn++) {
    const found = store.list("record", { limit: 5_000 });
    await store.write((tx) => {
      for (const { key, shadowedBy } of found) if (shadowedBy === undefined) tx.delete("record", key);
    });
    seen.push(shown(store));
  }
  return seen;
}

async function run(seed: number): Promise<void> {
  const chance = seededChance(seed);
  await using byRows = await temporaryStore(clockAt("n1", START));
  await using byItems = await temporaryStore(clockAt("n1", START));
  const stores = [byRows.store, byItems.store];
  for (const store of stores) {
    await fill(store);
    await store.digest.ready();
  }
  for (let page = 0; page < 12; page++) {
    // Plain is what comes as a row at all.
    const rows = randomPage(chance, floorsOf(byRows.store)).filter((text) => readPlainRow(text) !== undefined);
    await byRows.store.applyRemote([], { ...PARTIAL, rows });
    await byItems.store.applyRemote(rows.map(itemOf), PARTIAL);
    assert.deepEqual(shown(byRows.store), shown(byItems.store), `page ${page}`);
  }
  assert.deepEqual(await removeAll(byRows.store), await removeAll(byItems.store));
  const root = byRows.store.digest.root();
  await byRows.store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: byRows.directory, ...clockAt("n1", START) });
  await again.digest.ready();
  assert.equal(again.digest.root(), root);
}

const RUNS = 4;

for (let index = 0; index < RUNS; index++) {
  const seed = seedOf() + index;
  test(`rows of all sorts do what items do (SIGNPOST_SEED=${seed})`, () => run(seed));
}
