import assert from "node:assert/strict";
import test from "node:test";
import { seededChance } from "../../tests/support/chance.ts";
import { type FakeReplicaStore, fakeReplicaStore } from "../../tests/support/fake-replica-store.ts";
import { createReplicationNetwork, type ReplicationNetwork, wallMs } from "../../tests/support/replication-network.ts";

function startNodes(
  count: number,
  options: { readonly pushPullIntervalMs?: number; readonly latencyMs?: number; readonly queueRefs?: number } = {},
): { readonly net: ReplicationNetwork; readonly stores: readonly FakeReplicaStore[] } {
  const net = createReplicationNetwork({ chance: seededChance(7), ...options });
  const stores = Array.from({ length: count }, (_, index) => fakeReplicaStore(`n${index}`));
  for (const store of stores) net.start(store);
  return { net, stores };
}

function replicatorOf(net: ReplicationNetwork, store: FakeReplicaStore) {
  const node = net.nodes.get(store.nodeId);
  if (node === undefined) throw new Error(`${store.nodeId} does not run`);
  return node.replicator;
}

function haveSame(stores: readonly FakeReplicaStore[]): boolean {
  return new Set(stores.map(({ digest }) => digest.root())).size === 1;
}

function keys(count: number, prefix = "k"): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

test("a write reaches all peers within two round trips, without a comparison", async () => {
  const { net, stores } = startNodes(4, { latencyMs: 2 });
  await net.time.pass(10_000);
  const [writer] = stores;
  assert.ok(writer);
  const comparisons = () => [...net.nodes.values()].map(({ replicator }) => replicator.counters().leafComparisons);
  const before = comparisons();
  writer.put(["a"], "1");
  await net.time.pass(5);
  assert.deepEqual(
    stores.map((store) => store.stampOf("a")),
    ["1", "1", "1", "1"],
  );
  assert.deepEqual(comparisons(), before);
  assert.equal(replicatorOf(net, writer).queueDepth(), 0);
  await net.stopAll();
});

test("what was written on both sides of a partition is on both sides after it", async () => {
  const { net, stores } = startNodes(4);
  const [first, , , last] = stores;
  assert.ok(first && last);
  await net.time.pass(5_000);
  net.partition(["n0", "n1"], ["n2", "n3"]);
  await net.time.pass(5_000);
  first.put(keys(1_000, "left"), "1");
  last.put(keys(1_000, "right"), "1");
  await net.time.pass(5_000);
  assert.equal(haveSame(stores), false);
  net.partition();
  await net.time.until("all have the same", 10_000, () => haveSame(stores));
  assert.equal(first.size(), 2_000);
  await net.stopAll();
});

test("a stalled peer overflows its own queue only, is behind, and is compared with when it moves again", async () => {
  const { net, stores } = startNodes(3, { queueRefs: 5_000 });
  const [writer, healthy, stalled] = stores;
  assert.ok(writer && healthy && stalled);
  await net.time.pass(10_000);
  net.stall("n2", true);
  for (let round = 0; round < 6; round++) {
    writer.put(keys(1_000, `r${round}-`), "1");
    await net.time.until("the healthy one has it", 5_000, () => healthy.size() === (round + 1) * 1_000);
  }
  const replicator = replicatorOf(net, writer);
  const behind = replicator.peers().find(({ nodeId }) => nodeId === "n2");
  assert.equal(behind?.isBehind, true);
  assert.ok((behind?.queued ?? 0) > 5_000);
  await net.time.pass(100);
  // One stalled peer does not drain this node.
  assert.equal(replicator.queueDepth(), 0);
  assert.equal(replicator.counters().behindEvents, 1);
  net.stall("n2", false);
  await net.time.until("all have the same", 60_000, () => haveSame(stores));
  await net.time.until("it is not behind", 10_000, () => replicator.peers().every(({ isBehind }) => !isBehind));
  await net.stopAll();
});

test("a node that joins takes everything from a member before it is complete, and goes on with another where that dies", async () => {
  const { net, stores } = startNodes(2, { latencyMs: 20 });
  const [first] = stores;
  assert.ok(first);
  first.put(keys(5_000), "1");
  await net.time.pass(10_000);
  const joining = fakeReplicaStore("n9");
  const { replicator } = net.start(joining, { isJoining: true });
  await net.time.until("it takes pages", 10_000, () => joining.size() > 1_500);
  assert.equal(replicator.isComplete(), false);
  const before = replicator.counters().firstSyncItems;
  // Whichever it takes from, it loses it, and then the other one.
  net.partition(["n9", "n1"]);
  await net.time.until("it goes on", 10_000, () => replicator.counters().firstSyncItems > before + 1_500);
  net.partition(["n9", "n0"]);
  await net.time.until("it is complete", 20_000, () => replicator.isComplete());
  assert.equal(joining.digest.root(), first.digest.root());
  // Pages that were under way came twice, and no others.
  assert.ok(replicator.counters().firstSyncItems < 7_500);
  assert.ok(joining.lastAgreementMs() > 0);
  await net.stopAll();
});

test("all hear at once that a node has its first sync behind it, and count it from then on", async () => {
  const { net, stores } = startNodes(3, { latencyMs: 2 });
  stores[0]?.put(keys(100), "1");
  await net.time.pass(10_000);
  const joining = net.start(fakeReplicaStore("n9"), { isJoining: true });
  const counted = () => stores.map((store) => replicatorOf(net, store).freshness().peersComplete);
  await net.time.until("they know of its first sync", 10_000, () => counted().every((count) => count === 2));
  await net.time.until("it is complete", 10_000, () => joining.replicator.isComplete());
  await net.time.pass(20);
  assert.deepEqual(counted(), [3, 3, 3]);
  await net.stopAll();
});

test("a first sync waits for the digest of the other, and takes the pages once", async () => {
  const net = createReplicationNetwork({ chance: seededChance(5) });
  const source = fakeReplicaStore("n0");
  source.put(keys(1_200), "1");
  let isReady = false;
  net.start({ ...source, digest: { ...source.digest, isReady: () => isReady } });
  const { replicator } = net.start(fakeReplicaStore("n1"), { isJoining: true });
  await net.time.pass(20_000);
  assert.equal(replicator.isComplete(), false);
  isReady = true;
  await net.time.until("it is complete", 5_000, () => replicator.isComplete());
  assert.equal(replicator.counters().firstSyncItems, 1_200);
  await net.stopAll();
});

test("empty nodes that join each other agree", async () => {
  const net = createReplicationNetwork({ chance: seededChance(3) });
  const nodes = ["n0", "n1", "n2"].map((id) => net.start(fakeReplicaStore(id), { isJoining: true }));
  await net.time.until("all are complete", 20_000, () => nodes.every(({ replicator }) => replicator.isComplete()));
  await net.stopAll();
});

test("of nodes that start together the empty ones wait for the one that has everything", async () => {
  const net = createReplicationNetwork({ chance: seededChance(3) });
  const full = fakeReplicaStore("n9");
  full.put(keys(100), "1");
  const joining = ["n0", "n1"].map((id) => net.start(fakeReplicaStore(id), { isJoining: true }));
  net.start(full);
  await net.time.until("one is complete", 20_000, () => joining.some(({ replicator }) => replicator.isComplete()));
  for (const { replicator, store } of joining) {
    if (replicator.isComplete()) assert.equal(store.digest.root(), full.digest.root());
  }
  await net.time.until("all are complete", 20_000, () => joining.every(({ replicator }) => replicator.isComplete()));
  await net.stopAll();
});

test("a store that has not agreed with anybody for a month begins anew", async () => {
  const { net, stores } = startNodes(1);
  const [current] = stores;
  assert.ok(current);
  current.put(["kept"], "2");
  current.set({ lastAgreementMs: wallMs(net.time) });
  const old = fakeReplicaStore("n5");
  old.put(["kept", "deleted-elsewhere"], "1");
  old.set({ lastAgreementMs: wallMs(net.time, -40 * 86_400_000) });
  const { replicator } = net.start(old);
  await net.time.until("it has begun anew", 30_000, () => old.startedOver() === 1 && replicator.isComplete());
  assert.equal(current.stampOf("deleted-elsewhere"), undefined);
  assert.deepEqual([old.stampOf("deleted-elsewhere"), old.stampOf("kept")], [undefined, "2"]);
  assert.equal(old.startedOver(), 1);
  await net.stopAll();
});

test("who waits for acknowledgements hears when all that are alive have it, or which have not", async () => {
  const { net, stores } = startNodes(3);
  const [writer] = stores;
  assert.ok(writer);
  await net.time.pass(10_000);
  const replicator = replicatorOf(net, writer);
  writer.put(["zone"], "1");
  const outcomes: unknown[] = [];
  const ask = () => {
    replicator.acknowledgedBy(["zone"], 10_000).then((outcome) => outcomes.push(outcome), assert.ifError);
  };
  ask();
  await net.time.pass(100);
  assert.deepEqual(outcomes, [{ isComplete: true, missing: [] }]);
  net.stall("n1", true);
  writer.put(["zone"], "2");
  ask();
  await net.time.pass(5_000);
  assert.equal(outcomes.length, 1);
  await net.time.pass(6_000);
  assert.deepEqual(outcomes[1], { isComplete: false, missing: ["n1"] });
  net.stall("n1", false);
  stores[2]?.refuse(["3"]);
  writer.put(["zone"], "3");
  ask();
  await net.time.pass(1_000);
  assert.deepEqual(outcomes[2], { isComplete: false, missing: ["n2"] });
  assert.ok(replicator.counters().itemsRefusedThere > 0);
  await net.stopAll();
});

test("a refused item is offered again, ever less often, until it is taken", async () => {
  const { net, stores } = startNodes(2, { pushPullIntervalMs: 5_000 });
  const [writer, other] = stores;
  assert.ok(writer && other);
  await net.time.pass(10_000);
  other.refuse(["9"]);
  writer.put(["future"], "9");
  await net.time.pass(300_000);
  const { scans } = other;
  assert.ok(scans() < 20, `${scans()} scans in five minutes`);
  other.refuse([]);
  await net.time.until("it is taken", 700_000, () => other.stampOf("future") === "9");
  await net.stopAll();
});

test("while writes go on, comparisons do not read the store", async () => {
  const { net, stores } = startNodes(3, { pushPullIntervalMs: 1_000 });
  await net.time.pass(10_000);
  const before = stores.map(({ scans }) => scans());
  for (let round = 0; round < 600; round++) {
    stores[round % 3]?.put([`k${round % 100}`], String(round + 1).padStart(8, "0"));
    await net.time.pass(10);
  }
  assert.deepEqual(
    stores.map(({ scans }) => scans()),
    before,
  );
  await net.time.pass(1_000);
  assert.ok(haveSame(stores));
  await net.stopAll();
});

test("the audit log of every node is on every other, that of a dead one too", async () => {
  const { net, stores } = startNodes(3);
  const [first, second, third] = stores;
  assert.ok(first && second && third);
  await net.time.pass(5_000);
  for (let entry = 0; entry < 450; entry++) first.audit(`a${entry}`);
  second.audit("b");
  const isEverywhere = () => stores.every((store) => store.auditEntries().length === 451);
  await net.time.until("all entries are everywhere", 5_000, isEverywhere);
  net.partition(["n0", "n1"], ["n2"]);
  await net.time.pass(2_000);
  first.audit("only n1 hears of it");
  await net.time.pass(2_000);
  await net.stop("n0");
  net.partition();
  await net.time.until("it is on the third", 10_000, () => third.auditEntries().length === 452);
  await net.stopAll();
});

test("connections that break again and again lose nothing", async () => {
  const { net, stores } = startNodes(2);
  const [writer, other] = stores;
  assert.ok(writer && other);
  await net.time.pass(5_000);
  for (let round = 0; round < 20; round++) {
    writer.put(keys(700, `r${round}-`), "1");
    await net.time.pass(3);
    net.breakConnections("n0", "n1");
    await net.time.pass(500);
  }
  await net.time.until("all have the same", 10_000, () => haveSame(stores));
  await net.stopAll();
});

test("stores that differ in what is under way hold the same, and those that differ in more do not", async () => {
  const { net, stores } = startNodes(2, { latencyMs: 20 });
  const [first, second] = stores;
  assert.ok(first && second);
  const replicator = replicatorOf(net, first);
  await net.time.until("they know each other", 5_000, () => net.isConnected("n0", "n1"));
  first.put(keys(1_000), "1");
  await net.time.until("all have the same", 5_000, () => haveSame(stores));
  const look = async () => {
    let found: boolean | undefined;
    replicator.holdsTheSame("n1").then(
      (same) => {
        found = same;
      },
      () => undefined,
    );
    // The same objects are changed again and again, and others too: at no moment are both stores alike.
    for (let count = 0; found === undefined && count < 1_000; count++) {
      first.put(["hot", `k${count}`], `2${String(count).padStart(4, "0")}`);
      assert.equal(haveSame(stores), false);
      await net.time.pass(5);
    }
    return found;
  };
  assert.equal(await look(), true);
  second.refuse(["3"]);
  first.put(["refused"], "3");
  assert.equal(await look(), false);
  await net.stopAll();
});
