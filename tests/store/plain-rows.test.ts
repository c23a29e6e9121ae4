import assert from "node:assert/strict";
import test from "node:test";
import type { RecordBody } from "../../src/model/objects.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import { readPlainRow, valuesOfRow } from "../../src/store/plain-row.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { pair, START } from "./two-stores.ts";

type Given = { readonly items: readonly RawItem[]; readonly rows: readonly string[] };
const PARTIAL = { firstSync: true, partial: true } as const;

/** Everything by pages of that many rows, as a peer that has its first sync asks for it. */
function pagesOf(store: NodeStore, limit: number, asRows = true): readonly Given[] {
  const pages: Given[] = [];
  let cursor: string | undefined;
  do {
    const page = store.rawItems({ limit, asRows, ...(cursor !== undefined && { cursor }) });
    pages.push(page);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return pages;
}

async function take(store: NodeStore, pages: readonly Given[]): Promise<void> {
  for (const { items, rows } of pages) await store.applyRemote(items, { ...PARTIAL, rows });
  const activations = pages.flatMap(({ items }) => items.filter(({ item }) => item === "activation"));
  await store.applyRemote(activations, { firstSync: true });
}

/** All that a store shows of its records. */
function shown(store: NodeStore): unknown {
  const records = store
    .list("record", { limit: 5_000 })
    .map(({ key, body, shadowedBy }) => ({ key, body, shadowedBy }));
  const zones = store.list("zone", { limit: 100 }).map(({ body: { name } }) => ({
    name,
    count: store.count("record", name),
    digest: store.zoneDigest(name),
    state: store.stateOf(name),
    serial: store.serialOf(name),
    answering: store.answering(name, { limit: 5_000 }).records,
  }));
  const ids = records.map(({ body }) => store.byId("record", body.id)?.key);
  return { records, zones, ids, all: store.count("record"), everything: store.rawItems({ limit: 5_000 }).items };
}

const BODIES: readonly Partial<RecordBody>[] = [
  { name: "@", type: "NS", values: [{ value: "ns1.corp." }, { value: "ns2.corp." }] },
  { name: "a" },
  { name: "a", type: "AAAA", values: [{ value: "2001:db8::1" }] },
  { name: "a", type: "TXT", values: [{ value: '"quoted"' }] },
  { name: "a.b.c" },
  { name: "alias", type: "ALIAS", values: [{ value: "a.corp." }] },
  { name: "cname", type: "CNAME", values: [{ value: "a.corp." }] },
  { name: "odd\\001name" },
  { name: "policy", lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 10 } } },
  { name: "mail", type: "MX", values: [{ value: "a.corp.", priority: 10 }] },
  { name: "text", type: "TXT", values: [{ value: "größe" }] },
  { name: "two", values: [{ value: "192.0.2.1" }, { value: "192.0.2.2" }], ttl: 60, protected: true },
];

const put = (store: NodeStore, zone: string, extra: Partial<RecordBody>) =>
  store.write((tx) => tx.put("record", recordBody(zone, extra.name ?? "", extra)));

/** Records of all sorts, edited on two nodes, hidden, deleted, renamed, and of a zone's second life. */
async function fill(left: NodeStore, right: NodeStore): Promise<void> {
  for (const zone of ["corp.", "again.", "sub.corp."]) {
    await left.write((tx) => {
      tx.put("zone", zoneBody(zone));
      tx.setState(zone, "active");
      for (const body of BODIES) tx.put("record", recordBody(zone, body.name ?? "", body));
    });
  }
  const all = (from: NodeStore) => from.rawItems({ limit: 5_000 }).items;
  await right.applyRemote(all(left));
  await put(right, "corp.", { name: "a", ttl: 77 });
  await put(left, "corp.", { name: "both", type: "CNAME", values: [{ value: "a.corp." }] });
  await put(right, "corp.", { name: "both" });
  await put(left, "corp.", { name: "twice", id: "rec_left" });
  await put(right, "corp.", { name: "twice", id: "rec_right" });
  await left.write((tx) =>
    tx.move("record", ["corp.", "a.b.c", "A"], recordBody("corp.", "moved", { id: "rec_a.b.c.corp.A" })),
  );
  await left.write((tx) => tx.delete("record", ["corp.", "alias", "ALIAS"]));
  await left.write((tx) => tx.deleteZone("again."));
  await left.write((tx) => {
    tx.put("zone", zoneBody("again."));
    tx.setState("again.", "active");
    for (const name of ["a", "new"]) tx.put("record", recordBody("again.", name));
  });
  for (let turn = 0; turn < 2; turn++) {
    await left.applyRemote(all(right));
    await right.applyRemote(all(left));
  }
}

for (const limit of [1, 3, 7, 5_000]) {
  test(`a store that takes rows by pages of ${limit} has what one has that takes items`, async () => {
    const stores = pair();
    await using left = await stores.first;
    await using right = await stores.second;
    await fill(left.store, right.store);
    const others = pair();
    await using byRows = await others.first;
    await using byItems = await others.second;
    const pages = pagesOf(left.store, limit);
    assert.ok(pages.flatMap(({ rows }) => rows).length > 15);
    await take(byRows.store, pages);
    await take(byItems.store, pagesOf(left.store, limit, false));
    assert.deepEqual(shown(byRows.store), shown(byItems.store));
    assert.deepEqual(shown(byRows.store), shown(left.store));
    for (const { store } of [left, byRows, byItems]) await store.digest.ready();
    assert.equal(byRows.store.digest.root(), left.store.digest.root());
    assert.equal(byItems.store.digest.root(), left.store.digest.root());
    // And once more, where everything is there already.
    await take(byRows.store, pages);
    assert.deepEqual(shown(byRows.store), shown(byItems.store));
    assert.equal(byRows.store.digest.root(), left.store.digest.root());
    assert.deepEqual(byRows.store.journalTotals(), byItems.store.journalTotals());
  });
}

test("the digest that is kept while rows come is the one that is made from them afterwards", async () => {
  const stores = pair();
  await using left = await stores.first;
  await using right = await stores.second;
  await fill(left.store, right.store);
  const others = pair();
  await using taker = await others.first;
  await taker.store.digest.ready();
  await take(taker.store, pagesOf(left.store, 5));
  await left.store.digest.ready();
  assert.equal(taker.store.digest.root(), left.store.digest.root());
});

const STAMP = `${START.toString(16).padStart(12, "0")}0000-n9`;

type RowOptions = Partial<Pick<RecordBody, "type" | "zone" | "id" | "ttl">> & {
  readonly stamp?: string;
  readonly value?: string;
};

function rowText(name: string, options: RowOptions = {}): string {
  const { stamp = STAMP, zone = "corp.", type = "A", ttl = 60, value = "192.0.2.9" } = options;
  const id = options.id ?? `rec_${name}${type}`;
  return JSON.stringify({ s: stamp, v: recordBody(zone, name, { id, type, ttl, values: [{ value }] }) });
}

async function withPending(run: (store: NodeStore) => Promise<void>): Promise<void> {
  const stores = pair();
  await using temporary = await stores.first;
  await using _ = await stores.second;
  await temporary.store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.setState("corp.", "pending");
  });
  await run(temporary.store);
}

const namesOf = (store: NodeStore) => store.list("record", { limit: 100 }).map(({ key }) => `${key[1]} ${key[2]}`);

test("what is no plain row, or no row that a store may have, is not taken", () =>
  withPending(async (store) => {
    const future = `${(START + 3_600_000).toString(16).padStart(12, "0")}0000-n9`;
    const good = rowText("good");
    const rows = [
      good,
      "",
      "{}",
      "not JSON",
      good.slice(0, -1),
      `${good} `,
      good.replace("192.0.2.9", "\u0001"),
      good.replace('"ttl":60', '"ttl":060'),
      good.replace('"protected":false', '"protected":false,"more":1'),
      rowText("future", { stamp: future }),
      rowText("stamp", { stamp: "yesterday" }),
      rowText("zero", { stamp: "" }),
      rowText("spelled", { zone: "Corp." }),
      rowText("spelled", { zone: "corp" }),
      rowText("zone", { zone: "a..b." }),
      rowText("zone", { zone: `${"x".repeat(64)}.` }),
      rowText("x".repeat(70)),
      rowText("ttl", { ttl: 2 ** 31 }),
      rowText("id", { id: "with space" }),
      rowText("long", { value: "x".repeat(70_000) }),
      rowText("control", { value: "a\nb" }),
    ];
    await store.applyRemote([], { ...PARTIAL, rows });
    // Stamp zero is what a node makes by itself: an item like any other.
    assert.deepEqual(namesOf(store), ["good A", "zero A"]);
    assert.equal(store.count("record"), 2);
    await store.digest.ready();
  }));

test("of rows in any order, the same ones twice, and names that a CNAME owns, all that is true of items is true", () =>
  withPending(async (store) => {
    const rows = [
      rowText("own", { type: "A" }),
      rowText("own", { type: "AAAA", value: "2001:db8::1" }),
      rowText("own", { type: "CNAME", value: "a.corp." }),
      rowText("own", { type: "TXT" }),
      rowText("zz"),
      rowText("aa"),
      rowText("zz"),
      rowText("other", { id: "rec_zzA" }),
      rowText("case", { type: "CNAME", value: "a.corp." }),
      rowText("Case", { type: "TXT" }),
    ];
    const stores = pair();
    await using byItems = await stores.first;
    await using _ = await stores.second;
    await byItems.store.applyRemote(store.rawItems({ limit: 100 }).items, PARTIAL);
    const items = rows.map((text): RawItem => {
      const { s, v } = JSON.parse(text);
      const envelope = {
        stamp: s,
        born: s,
        life: "",
        renames: 0,
        seen: {},
        id: v.id,
        content: { kind: "body", body: v },
      } as const;
      return { item: "object", kind: "record", key: [v.zone, v.name, v.type], envelope };
    });
    await byItems.store.applyRemote(items, PARTIAL);
    for (const part of [rows.slice(0, 4), rows.slice(4)]) await store.applyRemote([], { ...PARTIAL, rows: part });
    const bodies = (of: NodeStore) =>
      of.list("record", { limit: 100 }).map(({ key, shadowedBy }) => ({ key, shadowedBy }));
    assert.deepEqual(bodies(store), bodies(byItems.store));
    assert.equal(store.zoneDigest("corp."), byItems.store.zoneDigest("corp."));
    for (const each of [store, byItems.store]) await each.digest.ready();
    assert.equal(store.digest.root(), byItems.store.digest.root());
  }));

test("who listens hears of a row of a zone that answers, and the greater version stays", () =>
  withPending(async (store) => {
    await store.write((tx) => {
      tx.setState("corp.", "active");
      tx.put("record", recordBody("corp.", "mine", { ttl: 5 }));
    });
    const heard: string[] = [];
    store.onChange(({ changes }) => heard.push(...changes.map(({ key }) => key.join(" "))));
    const before = store.serialOf("corp.") ?? 0;
    await store.applyRemote([], { ...PARTIAL, rows: [rowText("a"), rowText("mine")] });
    assert.deepEqual(heard, ["corp. a A"]);
    assert.equal(store.get("record", ["corp.", "mine", "A"])?.body.ttl, 5);
    assert.ok((store.serialOf("corp.") ?? 0) > before);
  }));

test("a row says what the record has", () => {
  const text = JSON.stringify({ s: STAMP, b: "b", l: "l", v: recordBody("corp.", "a", { id: "rec_1", ttl: 0 }) });
  const row = readPlainRow(text);
  assert.ok(row);
  const { values: _, ...said } = row;
  assert.deepEqual(said, {
    stamp: STAMP,
    born: "b",
    life: "l",
    id: "rec_1",
    zone: "corp.",
    name: "a",
    type: "A",
    ttl: 0,
  });
  assert.deepEqual(valuesOfRow(row), [{ value: "192.0.2.1" }]);
  for (const values of [[], [{ value: "a", region: "eu" }], [{ value: 'a"b' }]]) {
    assert.equal(readPlainRow(JSON.stringify({ s: STAMP, v: recordBody("corp.", "a", { values }) })), undefined);
  }
});

test("a name that is spelled with a dot behind it is the name without, and one that owns it hides the others", () =>
  withPending(async (store) => {
    const rows = [rowText("own", { id: "rec_1" }), rowText("own.", { type: "CNAME", id: "rec_2", value: "a.corp." })];
    await store.applyRemote([], { ...PARTIAL, rows });
    const shown = store.list("record", { limit: 100 }).filter(({ shadowedBy }) => shadowedBy === undefined);
    assert.equal(shown.length, 1);
  }));

test("an id that rows have at two keys lives at one of them", () =>
  withPending(async (store) => {
    const rows = ["aa", "bb", "cc"].map((name) => rowText(name, { id: name === "bb" ? "rec_bb" : "rec_same" }));
    await store.applyRemote([], { ...PARTIAL, rows });
    assert.equal(namesOf(store).length, 2);
    assert.equal(store.count("record"), 2);
  }));
