import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { Replicator } from "../../src/replication/replicator.ts";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { createReplicationNetwork, type ReplicationNetwork, wallMs } from "../support/replication-network.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const DAY_MS = 86_400_000;

/** Nodes on real stores that are started and stopped, at days that differ. */
async function withNodes(run: (world: World) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "signpost-stale-"));
  const net = createReplicationNetwork({ chance: seededChance(1), pushPullIntervalMs: 5_000 });
  const open = new Set<NodeStore>();
  const start = async (nodeId: string, daysLater: number) => {
    const clockOffsetMs = daysLater * DAY_MS;
    const directory = join(root, nodeId);
    await mkdir(directory, { recursive: true });
    const store = await openStore({
      directory,
      nodeId,
      now: () => Math.floor(wallMs(net.time, clockOffsetMs)),
      secretKey: { kind: "cluster", key: new Uint8Array(32).fill(7) },
    });
    open.add(store);
    const { replicator } = net.start(store, { clockOffsetMs, isJoining: nodeId !== "n0" });
    return { store, replicator };
  };
  const stop = async ({ store }: { readonly store: NodeStore }) => {
    open.delete(store);
    await net.stop(store.nodeId);
    await store[Symbol.asyncDispose]();
  };
  try {
    await run({ net, start, stop });
  } finally {
    await net.stopAll();
    for (const store of open) await store[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  }
}

type Running = { readonly store: NodeStore; readonly replicator: Replicator };
type World = {
  readonly net: ReplicationNetwork;
  readonly start: (nodeId: string, daysLater: number) => Promise<Running>;
  readonly stop: (node: Running) => Promise<void>;
};

function put({ net }: World, { store }: Running, name: string): Promise<unknown> {
  return net.time.track(store.write((tx) => tx.put("record", recordBody("corp.", name))));
}

function namesOf({ store }: Running): (string | undefined)[] {
  return store.list("record", { limit: 10 }).map(({ key }) => key[1]);
}

function haveSame(nodes: readonly Running[]): boolean {
  const roots = nodes.map(({ replicator }) => replicator.root());
  return !roots.includes(undefined) && new Set(roots).size === 1;
}

test("a store that was away for longer than deletions are kept brings nothing back, and its own edits are in its journal", async () => {
  await withNodes(async (world) => {
    const { net, start, stop } = world;
    const first = await start("n0", 0);
    await first.store.write((tx) => tx.put("zone", zoneBody("corp.")));
    await put(world, first, "kept");
    await put(world, first, "deleted");
    const old = await start("n1", 0);
    await net.time.until("both have the same", 30_000, () => old.replicator.isComplete());
    const agreedMs = old.store.lastAgreementMs();
    await stop(old);
    await first.store.write((tx) => tx.delete("record", ["corp.", "deleted", "A"]));
    await stop(first);
    // Two nodes agree meanwhile, and what they deleted is collected.
    const later = await start("n0", 40);
    await later.store.idle();
    assert.ok(later.store.collectedUpToMs() > agreedMs, "nothing was collected");
    await put(world, later, "new");
    const other = await start("n2", 40);
    await net.time.until("the new one is complete", 30_000, () => other.replicator.isComplete());
    const back = await start("n1", 40);
    await put(world, back, "written-alone");
    const nodes = [later, other, back];
    await net.time.until("all have the same", 60_000, () => {
      return back.replicator.isComplete() && haveSame(nodes) && namesOf(back).includes("new");
    });
    for (const node of nodes) {
      assert.deepEqual(
        namesOf(node).filter((name) => name !== "written-alone"),
        ["kept", "new"],
      );
    }
    const { entries } = back.store.journalPage({ limit: 10 });
    assert.ok(entries.some(({ key, reason }) => key[1] === "written-alone" && reason === "stale"));
  });
});

test("of two halves that were apart for 40 days one begins anew, and what only it had is in its journals", async () => {
  await withNodes(async (world) => {
    const { net, start, stop } = world;
    const ids = ["n0", "n1", "n2", "n3"];
    const startAll = async (daysLater: number) => {
      const nodes: Running[] = [];
      for (const id of ids) nodes.push(await start(id, daysLater));
      return nodes;
    };
    const [n0, n1, n2, n3] = (await startAll(0)) as [Running, Running, Running, Running];
    await n0.store.write((tx) => tx.put("zone", zoneBody("corp.")));
    for (const name of ["kept", "deleted-left", "deleted-right"]) await put(world, n0, name);
    await net.time.until("all are complete", 60_000, () => [n1, n2, n3].every((each) => each.replicator.isComplete()));
    await net.time.until("all have agreed with all", 300_000, () => {
      return [n0, n1, n2, n3].every(({ store }) => Object.keys(store.agreements()).length === 3);
    });
    net.partition(["n0", "n3"], ["n1", "n2"]);
    await net.time.pass(5_000);
    await n3.store.write((tx) => tx.delete("record", ["corp.", "deleted-left", "A"]));
    await n2.store.write((tx) => tx.delete("record", ["corp.", "deleted-right", "A"]));
    let nodes = [n0, n1, n2, n3];
    for (const days of [20, 40]) {
      await net.time.pass(70_000);
      for (const node of nodes) await stop(node);
      nodes = await startAll(days);
      if (days === 20) {
        await put(world, nodes[0] as Running, "left");
        await put(world, nodes[1] as Running, "right");
      }
      const [left, right] = [
        [0, 3],
        [1, 2],
      ].map((half) => half.map((at) => nodes[at] as Running));
      await net.time.until("each half agrees", 120_000, () => {
        return [left ?? [], right ?? []].every((half) =>
          half.every(({ store }) => wallMs(net.time, days * DAY_MS) - store.lastAgreementMs() < 120_000),
        );
      });
      for (const { store } of nodes) await store.idle();
    }
    assert.deepEqual(nodes.map(namesOf), [
      ["deleted-right", "kept", "left"],
      ["deleted-left", "kept", "right"],
      ["deleted-left", "kept", "right"],
      ["deleted-right", "kept", "left"],
    ]);
    net.partition();
    await net.time.until("all have the same", 300_000, () => {
      return nodes.every(({ replicator }) => replicator.isComplete()) && haveSame(nodes);
    });
    // The half of n0 stays as it is, without what it deleted; the deletion of the other half is forgotten on both sides.
    for (const node of nodes) assert.deepEqual(namesOf(node), ["deleted-right", "kept", "left"]);
    const stale = nodes.map(({ store }) => {
      return store.journalPage({ limit: 10 }).entries.map(({ key, reason }) => `${key[1]} ${reason}`);
    });
    assert.deepEqual(stale, [[], ["right stale"], ["right stale"], []]);
  });
});
