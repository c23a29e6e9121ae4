import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type NodeStore, openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { createReplicationNetwork, wallMs } from "../support/replication-network.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const DAY_MS = 86_400_000;

test("a store that was away for longer than deletions are kept brings nothing back, and its own edits are in its journal", async () => {
  const root = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "signpost-stale-"));
  const net = createReplicationNetwork({ chance: seededChance(1) });
  const open = new Set<NodeStore>();
  const start = async (nodeId: string, daysLater: number) => {
    const clockOffsetMs = daysLater * DAY_MS;
    const directory = join(root, nodeId);
    await mkdir(directory, { recursive: true });
    const store = await openStore({
      directory,
      nodeId,
      now: () => wallMs(net.time, clockOffsetMs),
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
  const put = (store: NodeStore, name: string) =>
    net.time.track(store.write((tx) => tx.put("record", recordBody("corp.", name))));
  try {
    const first = await start("n0", 0);
    await first.store.write((tx) => tx.put("zone", zoneBody("corp.")));
    await put(first.store, "kept");
    await put(first.store, "deleted");
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
    await put(later.store, "new");
    const other = await start("n2", 40);
    await net.time.until("the new one is complete", 30_000, () => other.replicator.isComplete());
    const back = await start("n1", 40);
    await put(back.store, "written-alone");
    await net.time.until("all have the same", 60_000, () => {
      const roots = [later, other, back].map(({ replicator }) => replicator.root());
      return (
        back.replicator.isComplete() &&
        new Set(roots).size === 1 &&
        back.store.get("record", ["corp.", "new", "A"]) !== undefined
      );
    });
    for (const { store } of [later, other, back]) {
      const names = store.list("record", { limit: 10 }).map(({ key }) => key[1]);
      assert.deepEqual(
        names.filter((name) => name !== "written-alone"),
        ["kept", "new"],
      );
    }
    const { entries } = back.store.journalPage({ limit: 10 });
    assert.ok(entries.some(({ key, reason }) => key[1] === "written-alone" && reason === "stale"));
  } finally {
    await net.stopAll();
    for (const store of open) await store[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  }
});
