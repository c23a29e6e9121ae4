/** What a holder of the cluster's key says on its streams: whoever it says it to goes on with everybody else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExchangeParts, exchange } from "../../src/replication/exchange.ts";
import { VERSIONS_MAX } from "../../src/replication/limits.ts";
import { type Answers, encodeChanges, encodeMessage, type StoreStatus } from "../../src/replication/messages.ts";
import type { AuditEntry } from "../../src/store/store.ts";
import { fakeReplicaStore } from "../support/fake-replica-store.ts";
import { type HostilePeer, hastyTimers, hostilePeer, replicatingNode } from "../support/hostile-peer.ts";
import { waitFor } from "../support/wait.ts";

const STATUS: StoreStatus = { isComplete: true, collectedUpToMs: 0, lastAgreementMs: 0, agreements: {} };
const ROOT: Answers["root"] = { root: "f".repeat(16), status: STATUS, queued: 0 };
const WAIT_MS = 30_000;
const NEVER = () => {};

async function disposeAll(all: readonly AsyncDisposable[]): Promise<void> {
  await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
}

test("an answer of versions without an end is none, however it is cut", async () => {
  const store = fakeReplicaStore("n0");
  store.put(["a"], "1");
  let sent = 0;
  const version = { ref: "r".repeat(40), version: "v" };
  const parts: Omit<ExchangeParts, "ask"> = {
    ...{ store, isFirstSync: false, mayWait: false, status: () => STATUS, pause: () => Promise.resolve() },
    ...{ push: () => Promise.resolve(), pull: () => Promise.resolve(0), underWay: () => 0 },
    ...{ onCompared: NEVER, onStatus: NEVER, staleSide: () => "none" as const },
  };
  const answering =
    (versions: readonly (typeof version)[]): ExchangeParts["ask"] =>
    async (ask, _, onPart) => {
      const say = onPart as (part: unknown) => void;
      if (ask === "root") return say(ROOT);
      if (ask === "children")
        return say({ children: Array.from({ length: 256 }, () => Array(16).fill("1".repeat(16))) });
      for (;;) {
        say({ versions });
        sent += versions.length;
      }
    };
  await assert.rejects(exchange({ ...parts, ask: answering(Array(2_000).fill(version)) }), /without an end/);
  assert.ok(sent <= VERSIONS_MAX);
  await assert.rejects(exchange({ ...parts, ask: answering([]) }), /without an end/);
});

test("peers that answer in drops keep no place from those that answer", async () => {
  const timers = hastyTimers(60);
  const store = fakeReplicaStore("n0");
  const good = fakeReplicaStore("n9");
  const dripping: NodeJS.Timeout[] = [];
  const liars: HostilePeer[] = [];
  for (let count = 1; count <= 5; count++) {
    const liar = await hostilePeer(`n${count}`, ({ ask }, reply) => {
      if (ask === "root") return reply({ isLast: true, body: ROOT });
      if (ask === "children") {
        const children = Array.from({ length: 256 }, () => Array(16).fill("1".repeat(16)));
        return reply({ isLast: true, body: { children } });
      }
      if (ask !== "versions") return;
      // One at a time, each just in time, and never the last.
      const drop = () => reply({ isLast: false, body: { versions: [["made up", "v"]] } });
      dripping.push(setInterval(drop, 50));
    });
    liars.push(liar);
  }
  const node = await replicatingNode(store, { timers });
  try {
    node.meet(liars);
    await waitFor(
      "all places are taken",
      WAIT_MS,
      () => liars.filter(({ asked }) => asked.includes("versions")).length >= 4,
    );
    const friend = await replicatingNode(good, { timers });
    try {
      good.put(["of the friend"], "1");
      store.put(["of the node"], "1");
      node.meet([...liars, friend]);
      // It asks nobody itself: what it knows of its peers is that they are there.
      await waitFor(
        "it is compared with",
        WAIT_MS,
        () => good.stampOf("of the node") === "1" && store.stampOf("of the friend") === "1",
      );
      await waitFor("the liars are hung up on", WAIT_MS, () =>
        liars.some(({ closed }) => closed.some((why) => /took too long/.test(why))),
      );
    } finally {
      await disposeAll([friend]);
    }
  } finally {
    for (const timer of dripping) clearInterval(timer);
    await disposeAll([node, ...liars]);
  }
});

test("a node that joins takes everything from whoever gives it, whatever the others give", async () => {
  const timers = hastyTimers(300);
  const good = fakeReplicaStore("n9");
  good.put(
    Array.from({ length: 2_000 }, (_, at) => `k${at}`),
    "1",
  );
  good.set({ lastAgreementMs: Date.now() });
  const store = fakeReplicaStore("n0");
  let pages = 0;
  const circle = await hostilePeer("n1", ({ ask }, reply) => {
    if (ask === "root") reply({ isLast: true, body: ROOT });
    if (ask === "page") reply({ isLast: true, body: { items: [], cursor: `c${pages++ % 3}` } });
  });
  const endless = await hostilePeer("n2", ({ ask }, reply) => {
    if (ask === "root") reply({ isLast: true, body: ROOT });
    if (ask === "page") reply({ isLast: true, body: { items: [], cursor: `e${pages++}` } });
  });
  const mute = await hostilePeer("n3", NEVER);
  const friend = await replicatingNode(good, { timers });
  const node = await replicatingNode(store, { timers, isJoining: true });
  try {
    node.meet([circle, endless, mute]);
    await waitFor("pages that lead nowhere", WAIT_MS, () => pages > 0);
    node.meet([circle, endless, mute, friend]);
    await waitFor("the first sync is over", 120_000, () => node.replicator.isComplete());
    await waitFor("everything", WAIT_MS, () => store.size() === 2_000);
  } finally {
    await disposeAll([node, friend, circle, endless, mute]);
  }
});

test("an audit log that never ends keeps that of nobody else out", async () => {
  const timers = hastyTimers(10);
  const store = fakeReplicaStore("n0");
  const good = fakeReplicaStore("n9");
  const entry: Omit<AuditEntry, "id"> = {
    ...{ time: "2030-01-01T00:00:00.000Z", node_id: "n1", user_id: "", user_name: "", source_address: "" },
    ...{ request_id: "", action: "made up", resource: "zone", resource_id: "", resource_name: "", result: "success" },
  };
  let sequence = 0;
  const flood = await hostilePeer("n1", ({ ask }, reply) => {
    if (ask !== "audit") return;
    sequence++;
    reply({ isLast: true, body: { entries: [{ ...entry, id: `madeup-${sequence}` }], isMore: true } });
  });
  const friend = await replicatingNode(good, { timers });
  const node = await replicatingNode(store, { timers });
  try {
    node.meet([flood, friend]);
    await waitFor("a connection", WAIT_MS, () => flood.channels.length > 0);
    flood.channels[0]?.send(encodeMessage({ type: "audit-notice", vector: { madeup: 2 ** 40 } }));
    await waitFor("the flood", WAIT_MS, () => sequence > 100);
    good.audit("true");
    friend.meet([node]);
    await waitFor("the entry of the friend", WAIT_MS, () =>
      store.auditEntries().some(({ action }) => action === "true"),
    );
  } finally {
    await disposeAll([node, friend, flood]);
  }
});

test("changes that the store cannot take as fast as they come fill no memory, whoever makes up how many peers", async () => {
  const timers = hastyTimers(1);
  const store = fakeReplicaStore("n0");
  const held = Promise.withResolvers<void>();
  const slow: typeof store = {
    ...store,
    applyRemote: async (items, options) => {
      await held.promise;
      return store.applyRemote(items, options);
    },
  };
  const good = fakeReplicaStore("n9");
  const liars = await Promise.all(["n1", "n2", "n3", "n4"].map((id) => hostilePeer(id, NEVER)));
  const node = await replicatingNode(slow, { timers });
  const friend = await replicatingNode(good, { timers });
  const content = { kind: "body", body: { padding: "x".repeat(200_000) } };
  const envelope = { stamp: "1", born: "1", life: "", renames: 0, seen: {}, id: "", content };
  const item = JSON.stringify({ item: "object", kind: "zone", key: ["made up"], envelope });
  const batch = Array.from({ length: 33 }, () => item);
  try {
    node.meet([...liars, friend]);
    friend.meet([node]);
    await waitFor("all are connected", WAIT_MS, () => liars.every(({ channels }) => channels.length > 0));
    for (const { channels } of liars) {
      for (let sent = 0; sent < 8; sent++) channels[0]?.send(encodeChanges(1 + sent * batch.length, batch));
    }
    // Together 200 MiB: those with the most are hung up on.
    await waitFor("they are hung up on", WAIT_MS, () =>
      liars.some(({ closed }) => closed.some((why) => /could not be stored/.test(why))),
    );
    held.resolve();
    good.put(["of the friend"], "1");
    await waitFor("changes of the friend", WAIT_MS, () => store.stampOf("of the friend") === "1");
  } finally {
    held.resolve();
    await disposeAll([node, friend, ...liars]);
  }
});
