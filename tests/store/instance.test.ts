import assert from "node:assert/strict";
import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { createReplicationNetwork, wallMs } from "../support/replication-network.ts";
import { auditInput } from "../support/store-objects.ts";

/** What opens stores in a folder that goes with it, and copies them. */
async function withStores(run: (stores: Stores) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "signpost-instance-"));
  const open = new Set<NodeStore>();
  const log: string[] = [];
  try {
    await run({
      log,
      path: (name) => join(root, name),
      open: async (name, options = {}) => {
        const store = await openStore({
          directory: join(root, name),
          nodeId: "n1",
          machine: "machine-1",
          secretKey: { kind: "cluster", key: new Uint8Array(32).fill(7) },
          log: (_, message) => log.push(message),
          ...options,
        });
        open.add(store);
        return store;
      },
      close: async (store) => {
        open.delete(store);
        await store[Symbol.asyncDispose]();
      },
      copy: (from, to) => cp(join(root, from), join(root, to), { recursive: true, preserveTimestamps: true }),
    });
  } finally {
    for (const store of open) await store[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  }
}

type Stores = {
  readonly log: readonly string[];
  readonly path: (name: string) => string;
  readonly open: (
    name: string,
    options?: { nodeId?: string; machine?: string; now?: () => number },
  ) => Promise<NodeStore>;
  readonly close: (store: NodeStore) => Promise<void>;
  readonly copy: (from: string, to: string) => Promise<void>;
};

function write(store: NodeStore, ...ids: readonly string[]): Promise<unknown> {
  return Promise.all(ids.map((resource_id) => store.write((tx) => tx.audit(auditInput({ resource_id })))));
}

/** Oldest first. */
function logged(store: NodeStore): (readonly string[])[] {
  const { entries } = store.auditPage({}, { limit: 100 });
  return entries.map(({ id, resource_id }) => [id, resource_id]).reverse();
}

test("a store is one instance for as long as it stays where it is", async () => {
  await withStores(async ({ open, close, path, log }) => {
    await rename(await mkdtemp(join(tmpdir(), "signpost-place-")), path("a"));
    const first = await open("a");
    await write(first, "one");
    await close(first);
    await rename(path("a"), path("moved"));
    const again = await open("moved");
    assert.equal(again.instanceId, first.instanceId);
    await write(again, "two");
    assert.deepEqual(again.auditVector(), { [first.instanceId]: 2 });
    assert.deepEqual(log, []);
  });
});

test("a copy, an old copy put back, and a store on another machine are other instances that number from 1", async () => {
  await withStores(async ({ open, close, copy, log, path }) => {
    await rename(await mkdtemp(join(tmpdir(), "signpost-place-")), path("a"));
    const first = await open("a");
    await write(first, "one");
    await close(first);
    await copy("a", "copy");
    await copy("a", "backup");
    const second = await open("a");
    await write(second, "two");
    await close(second);
    const copied = await open("copy");
    assert.notEqual(copied.instanceId, first.instanceId);
    await write(copied, "other two");
    assert.deepEqual(copied.auditVector(), { [first.instanceId]: 1, [copied.instanceId]: 1 });
    assert.deepEqual(logged(copied), [
      [`${first.instanceId}-1`, "one"],
      [`${copied.instanceId}-1`, "other two"],
    ]);
    // Into the files that are there, as a careless restore does.
    await copy("backup", "a");
    const restored = await open("a");
    assert.notEqual(restored.instanceId, first.instanceId);
    await close(restored);
    const elsewhere = await open("a", { machine: "machine-2" });
    assert.notEqual(elsewhere.instanceId, restored.instanceId);
    await close(elsewhere);
    const back = await open("a", { machine: "machine-2" });
    assert.equal(back.instanceId, elsewhere.instanceId);
    assert.equal(log.length, 3);
  });
});

test("a disk that was put back is told by its peers: what it lost comes back, and no number is given twice", async () => {
  await withStores(async ({ open, close, path }) => {
    for (const name of ["n1", "n2"]) await rename(await mkdtemp(join(tmpdir(), "signpost-place-")), path(name));
    const net = createReplicationNetwork({ chance: seededChance(1) });
    const now = () => Math.floor(wallMs(net.time));
    const store = await open("n1", { now });
    const other = await open("n2", { now, nodeId: "n2" });
    const { instanceId } = store;
    await write(store, "one");
    // What the store wrote before its disk was put back.
    const entry = store.auditAfter(instanceId, 0, 1)[0];
    assert.ok(entry);
    const lost = ["two", "three"].map((resource_id, index) => ({
      ...entry,
      resource_id,
      id: `${instanceId}-${index + 2}`,
    }));
    await other.applyAudit([entry, ...lost]);
    await close(store);
    const back = await open("n1", { now });
    await write(back, "another two");
    net.start(back);
    net.start(other);
    await net.time.until("both have all entries", 30_000, () => {
      return [back, other].every((each) => logged(each).length === 4);
    });
    for (const each of [back, other]) {
      assert.deepEqual(
        new Map(logged(each).map(([id, name]) => [name, id])),
        new Map([
          ["one", `${instanceId}-1`],
          ["another two", `${back.auditInstance()}-1`],
          ["two", `${instanceId}-2`],
          ["three", `${instanceId}-3`],
        ]),
      );
    }
    assert.notEqual(back.auditInstance(), instanceId);
    assert.ok(net.log.some((line) => line.includes("put back from a copy")));
    await write(back, "next");
    await net.time.until("the next is there too", 30_000, () => logged(other).length === 5);
    await net.stopAll();
  });
});
