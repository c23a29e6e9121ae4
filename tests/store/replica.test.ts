import assert from "node:assert/strict";
import test from "node:test";
import type { Kind } from "../../src/model/objects.ts";
import { INSTANCES_TAKEN_MAX } from "../../src/store/audit-sync.ts";
import { openDatabase, STORE_FOLDER, TABLE } from "../../src/store/database.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import type { RawItem } from "../../src/store/raw-items.ts";
import { makeSeal } from "../../src/store/seal.ts";
import { temporaryStore } from "../support/store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

const START = Date.parse("2026-03-01T12:00:00Z");
const DAY_MS = 86_400_000;
const SECRET = { kind: "file", key: new Uint8Array(32) } as const;

function clock() {
  let nowMs = START;
  return { now: () => ++nowMs, pass: (ms: number) => (nowMs += ms) };
}

async function withZone(store: NodeStore, zone = "corp."): Promise<void> {
  await store.write((tx) => {
    tx.put("zone", zoneBody(zone));
    tx.setState(zone, "active");
  });
}

function all(store: NodeStore): readonly RawItem[] {
  return store.rawItems({ limit: 10_000 }).items;
}

/** What it tells of from now on, as items. */
function made(store: NodeStore): RawItem[] {
  const heard: RawItem[] = [];
  store.onItems((refs) => heard.push(...store.items(refs)));
  return heard;
}

const titles = (items: readonly RawItem[]) =>
  items.map((item) => [item.item, "key" in item ? item.key.join(" ") : "zone" in item ? item.zone : ""].join(" "));

test("a write tells of all that it made, and of nothing else", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  const heard = made(store);
  await store.write((tx) => tx.put("record", recordBody("corp.", "www")));
  assert.deepEqual(titles(heard), ["serial corp.", "activation corp.", "object corp. www A"]);
  heard.length = 0;
  // It hides the other, and that is nobody else's business.
  const alias = { id: "rec_c", type: "CNAME", values: [{ value: "x.corp." }] } as const;
  await store.write((tx) => tx.put("record", recordBody("corp.", "www", alias)));
  assert.deepEqual(titles(heard.filter(({ item }) => item === "object")), ["object corp. www CNAME"]);
  heard.length = 0;
  await store.write((tx) => tx.deleteZone("corp."));
  assert.deepEqual(titles(heard), ["floor corp.", "serial corp.", "activation corp."]);
  await assert.rejects(
    store.write((tx) => {
      tx.put("zone", zoneBody("other."));
      throw new Error("half-way");
    }),
  );
  assert.equal(heard.length, 3);
});

test("a merge tells of the serial that it raised and the alias that it made, and passes nothing on", async () => {
  const { now } = clock();
  await using left = await temporaryStore({ nodeId: "n1", now });
  await using right = await temporaryStore({ nodeId: "n2", now });
  await withZone(left.store);
  await right.store.applyRemote(all(left.store));
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_left" })));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_right" })));
  const heard = made(left.store);
  const objects = all(right.store).filter(({ item }) => item === "object");
  await left.store.applyRemote(objects);
  assert.deepEqual(titles(heard), ["serial corp.", "activation corp.", "alias corp. a A"]);
  heard.length = 0;
  await left.store.applyRemote(all(right.store));
  await left.store.applyRemote(objects);
  assert.deepEqual(heard, []);
});

test("pages end where they have enough characters, and together are everything", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  await store.write((tx) => {
    for (let index = 0; index < 50; index++) {
      const comment = "x".repeat(index % 10 === 0 ? 1_000 : 10);
      tx.put("record", recordBody("corp.", `host${index}`, { comment }));
    }
  });
  const items: RawItem[] = [];
  let pages = 0;
  let cursor: string | undefined;
  do {
    const page = store.rawItems({ limit: 1_000, charactersMax: 2_000, ...(cursor !== undefined && { cursor }) });
    assert.ok(JSON.stringify(page.items).length < 6_000);
    items.push(...page.items);
    cursor = page.cursor;
    pages++;
  } while (cursor !== undefined);
  assert.ok(pages > 5);
  assert.deepEqual(items, all(store));
  const refs = items.map(store.refOf);
  assert.deepEqual(store.items([...refs].reverse()), items);
  assert.deepEqual([...new Set(refs)].sort(), [...new Set(refs)]);
});

test("of what is asked for by references that are none the others are given", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  const [zone] = store.rawItems({ limit: 10 }).items;
  assert.ok(zone);
  const hostile = [
    "",
    "9",
    "x",
    "3",
    "3[]",
    '3["zone","a","b"]',
    '3["record","a..b.","a","A"]',
    '3["","zone","id","..","a"]',
    "1",
  ];
  assert.deepEqual(store.items([...hostile, store.refOf(zone)]), store.items([store.refOf(zone)]));
});

test("entries of other instances are in the audit log, once, and are pruned by their own time", async () => {
  const { now, pass } = clock();
  await using left = await temporaryStore({ nodeId: "n1", now, auditRetentionDays: 2 });
  await using right = await temporaryStore({ nodeId: "n2", now, auditRetentionDays: 2, secretKey: SECRET });
  let told = 0;
  left.store.onAudit(() => told++);
  for (let index = 0; index < 5; index++)
    await left.store.write((tx) => tx.audit(auditInput({ resource_id: `r${index}` })));
  assert.equal(told, 5);
  await right.store.write((tx) => tx.audit(auditInput({ resource_id: "own" })));
  const instance = left.store.instanceId;
  assert.deepEqual(left.store.auditVector(), { [instance]: 5 });
  const entries = left.store.auditAfter(instance, 0, 100);
  assert.deepEqual(left.store.auditAfter(instance, 3, 100), entries.slice(3));
  assert.deepEqual(left.store.auditAfter(instance, 0, 2), entries.slice(0, 2));
  await right.store.applyAudit(entries.slice(0, 3));
  assert.deepEqual(right.store.auditVector(), { [instance]: 3, [right.store.instanceId]: 1 });
  await right.store.applyAudit(entries);
  await right.store.applyAudit(entries);
  const ids = () => right.store.auditPage({}, { limit: 100 }).entries.map(({ resource_id }) => resource_id);
  assert.deepEqual(ids(), ["own", "r4", "r3", "r2", "r1", "r0"]);
  assert.equal(right.store.auditPage({}, { limit: 100 }).entries[1]?.node_id, "n1");
  pass(3 * DAY_MS);
  await right.store[Symbol.asyncDispose]();
  await using again = await openStore({
    directory: right.directory,
    nodeId: "n2",
    now,
    auditRetentionDays: 2,
    secretKey: SECRET,
  });
  await again.idle();
  assert.deepEqual(again.auditPage({}, { limit: 100 }).entries, []);
  assert.equal(again.auditVector()[instance], 5, "what was pruned would be asked for again");
  await again.applyAudit(entries);
  assert.deepEqual(again.auditPage({}, { limit: 100 }).entries, []);
});

test("what is no audit entry of another instance is left out", async () => {
  const { now } = clock();
  await using temporary = await temporaryStore({ nodeId: "n1", now });
  const { store } = temporary;
  await store.write((tx) => tx.audit(auditInput()));
  const [entry] = store.auditAfter(store.instanceId, 0, 1);
  assert.ok(entry);
  const of = (id: string, extra = {}) => ({ ...entry, id, ...extra });
  const bad: unknown[] = [
    null,
    {},
    of("other"),
    of("-1"),
    of("other-0"),
    of("other-1.5"),
    of("OTHER-1"),
    of(`${store.instanceId}-7`),
    of("other-1", { user_id: 7 }),
    of("other-2", { time: "never" }),
    of("other-3", { time: new Date(START + 3 * DAY_MS).toISOString() }),
    of("other-4", { before: "x".repeat(300_000) }),
    of("other-5", { after: deepValue() }),
  ];
  await store.applyAudit(bad as never);
  assert.deepEqual(store.auditVector(), { [store.instanceId]: 1, other: 5 });
  assert.equal(store.auditPage({}, { limit: 100 }).entries.length, 1);
});

test("instances beyond a number are not taken, and those that are known go on", async () => {
  const now = () => START;
  await using temporary = await temporaryStore({ nodeId: "n1", now });
  const { store } = temporary;
  await store.write((tx) => tx.audit(auditInput()));
  const [entry] = store.auditAfter(store.instanceId, 0, 1);
  assert.ok(entry);
  const ids = Array.from({ length: INSTANCES_TAKEN_MAX + 10 }, (_, index) => `other${index}-1`);
  const takes = () => Object.keys(store.auditVector()).length;
  await store.applyAudit(ids.slice(0, 100).map((id) => ({ ...entry, id })));
  // What they hold does not matter.
  await store.applyAudit(ids.map((id) => ({ ...entry, id, time: "never" })));
  assert.equal(takes(), INSTANCES_TAKEN_MAX);
  await store.applyAudit([
    { ...entry, id: "new-1" },
    { ...entry, id: "other7-2" },
  ]);
  assert.equal(takes(), INSTANCES_TAKEN_MAX);
  assert.equal(store.auditVector().other7, 2);
});

test("an agreement is remembered over a restart", async () => {
  await using temporary = await temporaryStore({ secretKey: SECRET });
  assert.equal(temporary.store.lastAgreementMs(), 0);
  await temporary.store.setAgreement(START, { n2: START });
  await temporary.store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: temporary.directory, nodeId: "n1", secretKey: SECRET });
  assert.equal(again.lastAgreementMs(), START);
  assert.deepEqual(again.agreements(), { n2: START });
});

test("a store that starts over is empty, and the journal has what others may not know", async () => {
  const { now, pass } = clock();
  await using temporary = await temporaryStore({ now });
  const { store } = temporary;
  await withZone(store);
  await store.write((tx) => {
    tx.put("record", recordBody("corp.", "agreed"));
    tx.put("user", { id: "usr_1", username: "alice", role: "admin", enabled: true });
    tx.audit(auditInput());
  });
  pass(DAY_MS);
  await store.setAgreement(now(), {});
  pass(DAY_MS);
  await store.write((tx) => tx.put("record", recordBody("corp.", "late")));
  await withZone(store, "late.");
  await store.write((tx) => tx.delete("record", ["corp.", "agreed", "A"]));
  await store.digest.ready();
  const gone: string[] = [];
  store.onChange(({ changes }) => {
    for (const { kind, key, after } of changes) if (after === undefined) gone.push(`${kind} ${key.join(" ")}`);
  });
  const heard = made(store);
  await store.startOver();
  assert.deepEqual(all(store), []);
  assert.deepEqual([store.count("record"), store.count("zone"), store.count("user")], [0, 0, 0]);
  assert.deepEqual(gone.sort(), ["user alice", "zone corp.", "zone late."]);
  assert.deepEqual(heard, []);
  assert.equal(store.lastAgreementMs(), 0);
  assert.equal(store.auditPage({}, { limit: 10 }).entries.length, 1);
  const lost = store.journalPage({ limit: 10 }).entries.map(({ kind, key, reason }) => [kind, key.join(" "), reason]);
  assert.deepEqual(lost, [
    ["zone", "late.", "stale"],
    ["record", "corp. late A", "stale"],
  ]);
  await store.digest.ready();
  assert.equal(store.digest.root(), "0000000000000000");
  await withZone(store);
  assert.equal(store.count("zone"), 1);
});

test("kinds of a newer version are kept, passed on, and merged by the version that knows them", async () => {
  const { now } = clock();
  await using left = await temporaryStore({ nodeId: "n1", now, secretKey: SECRET });
  await using right = await temporaryStore({ nodeId: "n2", now });
  const stamp = (ms: number, node = "n9") => `${(START - ms).toString(16).padStart(12, "0")}0000-${node}`;
  const gadget = (kind: string, version: string, secret: string): RawItem => ({
    item: "object",
    kind: kind as Kind,
    key: ["gadget"],
    envelope: {
      stamp: version,
      born: version,
      life: "",
      renames: 0,
      seen: {},
      id: "gdg_1",
      content: { kind: "body", body: { secret } },
    },
  });
  const alias = { item: "alias", kind: "gadget" as Kind, id: "gdg_2", key: ["gadget"] } as const;
  await left.store.digest.ready();
  for (const item of [gadget("gadget", stamp(500), "swordfish"), gadget("gadget", stamp(900), "older"), alias, alias]) {
    assert.deepEqual(await left.store.applyRemote([item]), []);
  }
  assert.deepEqual(all(left.store), [alias, gadget("gadget", stamp(500), "swordfish")]);
  await right.store.applyRemote([...all(left.store)].reverse());
  assert.deepEqual(all(right.store), all(left.store));
  await right.store.digest.ready();
  assert.equal(right.store.digest.root(), left.store.digest.root());
  assert.notEqual(right.store.digest.root(), "0000000000000000");
  await left.store[Symbol.asyncDispose]();
  // As a version had it that knew no users.
  const database = openDatabase(`${left.directory}/${STORE_FOLDER}`);
  const rows = database.range(TABLE.FOREIGN, { prefix: new Uint8Array(), limit: 10 });
  assert.ok(!JSON.stringify(rows).includes("swordfish"));
  const user = { username: "alice", id: "usr_1", role: "admin", enabled: true };
  const item: RawItem = {
    item: "object",
    kind: "user",
    key: ["alice"],
    envelope: {
      stamp: stamp(1),
      born: stamp(1),
      life: "",
      renames: 0,
      seen: {},
      id: "usr_1",
      content: { kind: "body", body: user },
    },
  };
  const key = Buffer.from(JSON.stringify(["user", "alice"]));
  const sealed = makeSeal(SECRET.key).sealText(`foreign ${key.toString("latin1")}`, JSON.stringify(item));
  await database.run(() => {
    database.put(TABLE.FOREIGN, key, JSON.stringify({ version: stamp(1), dueMs: 0, sealed }));
    return true;
  });
  await database.close();
  await using again = await openStore({ directory: left.directory, nodeId: "n1", now, secretKey: SECRET });
  assert.equal(again.get("user", ["alice"])?.body.id, "usr_1");
  assert.equal(all(again).length, 3);
});

test("fields that this version does not know stay in a body", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  const [first] = all(store).filter(({ item }) => item === "object");
  assert.ok(first?.item === "object");
  const body = { ...recordBody("corp.", "new"), colour: { of: "another version" }, type: "HTTPS" };
  const item: RawItem = {
    ...first,
    kind: "record",
    key: ["corp.", "new", "HTTPS"],
    envelope: { ...first.envelope, id: body.id, content: { kind: "body", body } },
  };
  assert.deepEqual(await store.applyRemote([item]), []);
  assert.deepEqual(store.items([store.refOf(item)]), [item]);
});

/** Whoever goes through it by recursion does not come back. */
function deepValue(): unknown {
  return JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
}

test("bodies that would stop who reads them are refused, and rows and keys that cannot be written", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const stamp = `${Date.now().toString(16).padStart(12, "0")}0001-n2`;
  const object = (kind: string, key: readonly string[], body: object) => ({
    ...{ item: "object", kind, key },
    envelope: { stamp, born: stamp, life: "", renames: 0, seen: {}, id: "x_1", content: { kind: "body", body } },
  });
  const check = {
    ...{ id: "x_1", name: "web", protocol: "tcp", target: "192.0.2.1:1", interval_seconds: 0, timeout_seconds: 1 },
    failure_threshold: 1,
  };
  const bad: unknown[] = [
    object("healthcheck", ["web"], check),
    object("healthcheck", ["web"], { ...check, interval_seconds: 1, id: null }),
    object("healthcheck", ["web"], { ...check, interval_seconds: 1, later: deepValue() }),
    object("config", ["cluster"], { name: "cluster", settings: [] }),
    object("gadget", ["x"], { later: deepValue() }),
    object("gadget", ["x"], { text: "x".repeat(70_000) }),
    object("gadget", ["x".repeat(1_000), "x".repeat(1_000)], {}),
  ];
  const good = [object("healthcheck", ["web"], { ...check, interval_seconds: 1 }), object("gadget", ["x"], { at: 1 })];
  const refused = await store.applyRemote([...bad, ...good] as never);
  assert.deepEqual(
    refused,
    bad.map((_, index) => ({ index, reason: "malformed" })),
  );
  assert.deepEqual(titles(all(store)), ["object web", "object x"]);
});

test("malformed items are refused by their index, and the others of their batch are merged", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await withZone(store);
  const [zone] = all(store).filter(({ item }) => item === "object");
  assert.ok(zone?.item === "object");
  const { envelope } = zone;
  const record = (name: string, extra: object = {}, of: object = {}) => {
    const body = recordBody("corp.", name);
    return {
      ...zone,
      kind: "record",
      key: ["corp.", name, "A"],
      envelope: { ...envelope, id: body.id, content: { kind: "body", body }, ...of },
      ...extra,
    };
  };
  const bad: unknown[] = [
    null,
    7,
    [],
    {},
    { item: "frob" },
    { item: "floor", zone: "corp", floor: "" },
    { item: "floor", zone: "Corp.", floor: "" },
    { item: "floor", zone: "corp.", floor: "", ending: { life: 1 } },
    { item: "serial", zone: "corp.", life: "", serial: 2 ** 32 },
    { item: "activation", zone: "corp.", life: "", state: "asleep" },
    { item: "alias", kind: "record", id: "", key: ["a"] },
    { item: "alias", kind: "record", id: "rec\u00001", key: ["a"] },
    { item: "alias", kind: "record", id: "rec_1", key: ["corp.", "a", "A", "more"] },
    record("a", { key: "corp." }),
    record("a", { key: ["corp.", "b", "A"] }),
    record("a", { key: [] }),
    record("a", { kind: "" }),
    record("a", { kind: "__proto__" }),
    record("a", { envelope: undefined }),
    record("a", {}, { stamp: "now" }),
    record("a", {}, { seen: { n1: 7 } }),
    record("a", {}, { renames: -1 }),
    record("a", {}, { content: { kind: "body", body: null } }),
    record("a", {}, { content: { kind: "body", body: "text" } }),
    record("a", {}, { content: { kind: "what" } }),
    record("a", {}, { content: { kind: "body", body: { ...recordBody("corp.", "a"), comment: "x".repeat(70_000) } } }),
    record(`${"x".repeat(64)}.y`),
    record(`${"x.".repeat(300)}y`),
  ];
  const mixed = bad.flatMap((item, index) => [item, record(`good${index}`)]);
  const refused = await store.applyRemote(mixed as never);
  assert.deepEqual(
    refused,
    bad.map((_, index) => ({ index: 2 * index, reason: "malformed" })),
  );
  assert.equal(store.count("record", "corp."), bad.length);
});
