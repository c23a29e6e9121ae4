import assert from "node:assert/strict";
import test from "node:test";
import type { NodeStore } from "../../src/store/open-store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { exchange, pair, START, send, withZone } from "./two-stores.ts";

const put = (store: NodeStore, name: string) => store.write((tx) => tx.put("record", recordBody("corp.", name)));

test("a zone of which only a part has come is pending, and becomes active by what comes last", async () => {
  const stores = pair();
  await using first = await stores.first;
  await using second = await stores.second;
  await withZone(first.store);
  await put(first.store, "a");
  const { items } = first.store.rawItems({ limit: 100 });
  await second.store.applyRemote(items, { firstSync: true, partial: true });
  assert.equal(second.store.stateOf("corp."), "pending");
  assert.equal(second.store.serialOf("corp."), first.store.serialOf("corp."));
  await second.store.applyRemote(items.slice(0, 3), { firstSync: true });
  assert.equal(second.store.stateOf("corp."), "active");
  assert.equal(second.store.serialOf("corp."), first.store.serialOf("corp."));
});

test("a zone that answers goes on to answer while its node has its first sync, and shows what came by its serial", async () => {
  const { pass, ...stores } = pair();
  await using first = await stores.first;
  await using second = await stores.second;
  for (const { store } of [first, second]) await withZone(store);
  await put(first.store, "a");
  pass(5_000);
  await put(second.store, "b");
  const before = second.store.serialOf("corp.") ?? 0;
  assert.ok(before > (first.store.serialOf("corp.") ?? 0));
  const { items } = first.store.rawItems({ limit: 100 });
  await second.store.applyRemote(items, { firstSync: true, partial: true });
  assert.equal(second.store.stateOf("corp."), "active");
  assert.ok((second.store.serialOf("corp.") ?? 0) > before, "other records under the same serial");
  await exchange(first.store, second.store);
  assert.equal(first.store.serialOf("corp."), second.store.serialOf("corp."));
});

test("a zone that was made anew is not active by what was said of the old one", async () => {
  const stores = pair();
  await using first = await stores.first;
  await using second = await stores.second;
  await withZone(first.store);
  await send(first.store, second.store);
  assert.equal(second.store.stateOf("corp."), "active");
  await first.store.write((tx) => tx.deleteZone("corp."));
  await first.store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.setState("corp.", "pending");
  });
  assert.equal(first.store.stateOf("corp."), "pending");
  // As a large zone arrives: itself and its records first, its registers last.
  const objects = first.store.rawItems({ limit: 100 }).items.filter(({ item }) => item === "object");
  await second.store.applyRemote(objects);
  assert.equal(second.store.stateOf("corp."), "pending");
  await exchange(first.store, second.store);
  await first.store.write((tx) => tx.setState("corp.", "active"));
  await exchange(first.store, second.store);
  assert.equal(second.store.stateOf("corp."), "active");
  assert.ok((second.store.serialOf("corp.") ?? 0) >= START / 1000);
});

test("the digest of a zone is equal where all that belongs to it is, and only there", async () => {
  const stores = pair();
  await using first = await stores.first;
  await using second = await stores.second;
  assert.equal(first.store.zoneDigest("corp."), undefined);
  await withZone(first.store);
  await send(first.store, second.store);
  const seen = new Set<string | undefined>();
  const differ = async (work: () => Promise<unknown>) => {
    await work();
    const digest = first.store.zoneDigest("corp.");
    assert.ok(digest !== undefined && !seen.has(digest) && digest !== second.store.zoneDigest("corp."));
    await exchange(first.store, second.store);
    assert.equal(first.store.zoneDigest("corp."), second.store.zoneDigest("corp."));
    seen.add(digest);
  };
  await differ(() => put(first.store, "a"));
  await differ(() => first.store.write((tx) => tx.put("zone", zoneBody("corp.", { default_ttl: 99 }))));
  await differ(() => first.store.write((tx) => tx.put("zone", zoneBody("corp.", { deletion_lock: true }))));
  await differ(() => first.store.write((tx) => tx.delete("record", ["corp.", "a", "A"])));
});

test("a store that began anew comes back with a greater serial where its secondaries know one that is lost", async () => {
  const { pass, ...stores } = pair();
  await using first = await stores.first;
  await using second = await stores.second;
  for (const zone of ["corp.", "same."]) {
    await first.store.write((tx) => {
      tx.put("zone", zoneBody(zone));
      tx.setState(zone, "active");
    });
  }
  await send(first.store, second.store);
  pass(120_000);
  await second.store.setAgreement(START + 120_000, {});
  pass(40 * 86_400_000);
  await put(second.store, "lost");
  const told = second.store.serialOf("corp.") ?? 0;
  assert.ok(told > (first.store.serialOf("corp.") ?? 0));
  await second.store.startOver();
  assert.deepEqual(second.store.rawItems({ limit: 100 }).items, []);
  await exchange(first.store, second.store);
  assert.equal(second.store.get("record", ["corp.", "lost", "A"]), undefined);
  for (const { store } of [first, second]) {
    assert.ok((store.serialOf("corp.") ?? 0) > told);
    assert.equal(store.serialOf("same."), Math.floor(START / 1000));
  }
});
