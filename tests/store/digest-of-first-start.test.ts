import assert from "node:assert/strict";
import test from "node:test";
import { ensureAdmin } from "../../src/commands/first-admin.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import { temporaryStore } from "../support/store.ts";

/** Everything of it, as another store is given it. */
const everything = (store: NodeStore) => store.rawItems({ limit: 1_000 }).items;

test("two nodes that each made an admin at their first start end with one, and with one digest", async () => {
  await using left = await temporaryStore({ nodeId: "left" });
  await using right = await temporaryStore({ nodeId: "right" });
  for (const { store } of [left, right]) {
    await ensureAdmin({ store });
    await store.digest.ready();
  }
  assert.notEqual(left.store.digest.root(), right.store.digest.root());
  await left.store.applyRemote(everything(right.store));
  await right.store.applyRemote(everything(left.store));
  assert.equal(left.store.digest.root(), right.store.digest.root());
  assert.deepEqual(left.store.get("user", ["admin"])?.body, right.store.get("user", ["admin"])?.body);
});
