import assert from "node:assert/strict";
import test from "node:test";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { DIGEST_CHILDREN, DIGEST_LEVELS, type ItemVersion } from "../../src/store/replica.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const SECRET = { kind: "file", key: new Uint8Array(32) } as const;
const NOTHING = "0".repeat(16);
const RECORDS = 3_000;
const ZONES = ["one.", "two.", "three."];

async function fill(store: NodeStore): Promise<void> {
  await store.writeInSlices(function* (tx) {
    for (const zone of ZONES) tx.put("zone", zoneBody(zone));
    for (let index = 0; index < RECORDS; index++) {
      tx.put("record", recordBody(ZONES[index % ZONES.length] ?? "", `host${index}`));
      yield;
    }
  });
}

/** The leaves in which two digests differ, found from the root down, and how many nodes were asked for. */
function differingLeaves(
  left: NodeStore,
  right: NodeStore,
): { readonly leaves: readonly number[]; readonly asked: number } {
  let nodes = [0];
  let asked = 0;
  for (let level = 0; level < DIGEST_LEVELS; level++) {
    const [mine, theirs] = [left, right].map((store) => store.digest.children(level, nodes));
    asked += nodes.length;
    nodes = nodes.flatMap((node, at) =>
      Array.from({ length: DIGEST_CHILDREN }, (_, child) => child)
        .filter((child) => mine?.[at]?.[child] !== theirs?.[at]?.[child])
        .map((child) => node * DIGEST_CHILDREN + child),
    );
  }
  return { leaves: nodes, asked };
}

/** One random write of any sort. */
function change(store: NodeStore, chance: Chance, number: number): Promise<unknown> {
  const zone = chance.pick(ZONES);
  const name = `host${chance.below(RECORDS)}`;
  return store.write((tx) => {
    if (tx.get("zone", [zone]) === undefined) tx.put("zone", zoneBody(zone, { id: `zon_${number}` }));
    const sort = chance.below(100);
    const current = tx.get("record", [zone, name, "A"]);
    if (sort === 0) tx.deleteZone(zone);
    else if (sort < 30 && current !== undefined) tx.delete("record", current.key);
    else if (sort < 50 && current !== undefined) {
      tx.move("record", current.key, { ...current.body, name: `moved${number}` });
    } else tx.put("record", { ...(current?.body ?? recordBody(zone, name)), ttl: number });
  });
}

test("a digest that is built while others write counts each change once, and goes on so", async (t) => {
  const seed = Number(process.env.SIGNPOST_DIGEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`SIGNPOST_DIGEST_SEED=${seed}`);
  const chance = seededChance(seed);
  await using temporary = await temporaryStore({ secretKey: SECRET });
  const { store } = temporary;
  await fill(store);
  let isReady = false;
  const ready = store.digest.ready().then(() => {
    isReady = true;
  });
  assert.throws(() => store.digest.root(), /not ready/);
  let writes = 0;
  while (!isReady) await Promise.all(Array.from({ length: 5 }, () => change(store, chance, ++writes)));
  await ready;
  for (let more = 0; more < 100; more++) await change(store, chance, ++writes);
  const kept = store.digest.root();
  const children = store.digest.children(0, [0]);
  await store.idle();
  assert.equal(store.digest.root(), kept, "what nobody sees is no part of it");
  await store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: temporary.directory, nodeId: "test-node", secretKey: SECRET });
  await again.digest.ready();
  assert.equal(again.digest.root(), kept, `${writes} writes`);
  assert.deepEqual(again.digest.children(0, [0]), children);
});

test("what differs is found from the root down, and equal stores have equal roots whatever came when", async () => {
  await using left = await temporaryStore({ nodeId: "n1" });
  await using right = await temporaryStore({ nodeId: "n2" });
  await left.store.digest.ready();
  assert.equal(left.store.digest.root(), NOTHING);
  await fill(left.store);
  const items = left.store.rawItems({ limit: 100_000 }).items;
  for (let at = items.length; at > 0; at -= 997) {
    await right.store.applyRemote(items.slice(Math.max(0, at - 997), at), { firstSync: true });
  }
  await right.store.digest.ready();
  assert.equal(right.store.digest.root(), left.store.digest.root());
  assert.deepEqual(differingLeaves(left.store, right.store), { leaves: [], asked: 1 });
  await left.store.write((tx) => tx.put("record", recordBody("one.", "host0", { ttl: 5 })));
  const { leaves, asked } = differingLeaves(left.store, right.store);
  // The record, and the registers of its zone.
  assert.equal(leaves.length, 2);
  assert.ok(asked <= 1 + 3 * 2);
  const [mine, theirs] = await Promise.all([left, right].map(({ store }) => store.digest.versions(leaves)));
  const versionOf = (versions: readonly ItemVersion[] | undefined) =>
    new Map(versions?.map(({ ref, version }) => [ref, version]));
  const known = versionOf(theirs);
  const differing = [...versionOf(mine)].filter(([ref, version]) => known.get(ref) !== version).map(([ref]) => ref);
  assert.deepEqual(
    left.store.items(differing).map(({ item }) => item),
    ["serial", "object"],
  );
  await right.store.applyRemote(left.store.items(differing));
  assert.equal(right.store.digest.root(), left.store.digest.root());
  await left.store.write((tx) => tx.deleteZone("one."));
  await right.store.applyRemote(left.store.rawItems({ limit: 10 }).items);
  assert.equal(right.store.digest.root(), left.store.digest.root(), "though the records are still there");
});

test("who asks for versions at the same time shares a look at everything", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await fill(store);
  const all = Array.from({ length: 65_536 }, (_, leaf) => leaf);
  const [none, everything, few] = await Promise.all([[], all, all.slice(0, 4_096)].map(store.digest.versions));
  assert.deepEqual(none, []);
  assert.equal(everything?.length, RECORDS + 2 * ZONES.length);
  assert.ok(few !== undefined && few.length > 100 && few.length < 300);
  await assert.rejects(store.digest.versions([65_536]), RangeError);
  await store.digest.ready();
  assert.throws(() => store.digest.children(4, [0]), RangeError);
  assert.throws(() => store.digest.children(1, [16]), RangeError);
});

test("what each node makes by itself differs by what is in it, and not by how its secrets are sealed", async () => {
  const admin = { id: "usr_1", username: "admin", role: "admin", enabled: true, password_hash: "swordfish" } as const;
  const now = () => Date.parse("2026-03-01T12:00:00Z");
  await using left = await temporaryStore({ nodeId: "n1", now });
  await using right = await temporaryStore({ nodeId: "n1", now });
  await using other = await temporaryStore({ nodeId: "n1", now });
  for (const { store } of [left, right]) await store.write((tx) => tx.put("user", admin, { stampZero: true }));
  await other.store.write((tx) => tx.put("user", { ...admin, password_hash: "other" }, { stampZero: true }));
  for (const { store } of [left, right, other]) await store.digest.ready();
  assert.equal(left.store.digest.root(), right.store.digest.root());
  assert.notEqual(left.store.digest.root(), other.store.digest.root());
});

test("what was made and deleted in one transaction leaves with its tombstone", async () => {
  let nowMs = Date.parse("2026-03-01T12:00:00Z");
  const now = () => ++nowMs;
  await using temporary = await temporaryStore({ secretKey: SECRET, now });
  const { store } = temporary;
  await store.digest.ready();
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.put("record", recordBody("corp.", "brief"));
    tx.delete("record", ["corp.", "brief", "A"]);
  });
  const before = store.digest.root();
  nowMs += 32 * 86_400_000;
  const after = store.digest.root();
  assert.notEqual(after, before);
  await store[Symbol.asyncDispose]();
  await using again = await openStore({ directory: temporary.directory, nodeId: "test-node", secretKey: SECRET, now });
  await again.digest.ready();
  assert.equal(again.digest.root(), after);
});

test("while a digest is built the thread does other things", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await fill(store);
  let turns = 0;
  const count = () => {
    turns++;
    if (!store.digest.isReady()) setImmediate(count);
  };
  const ready = store.digest.ready();
  count();
  const before = turns;
  await ready;
  assert.ok(turns > before, "the event loop stood still");
});
