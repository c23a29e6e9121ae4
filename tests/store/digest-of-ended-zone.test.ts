import assert from "node:assert/strict";
import test from "node:test";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

test("a digest that was built between two lives of a zone counts what is written in the second", async () => {
  await using one = await temporaryStore({ nodeId: "n1" });
  await using other = await temporaryStore({ nodeId: "n2" });
  const { store } = one;
  await store.write((tx) => tx.put("zone", zoneBody("corp.")));
  await store.write((tx) => tx.deleteZone("corp."));
  const { items } = store.rawItems({ limit: 100 });
  // The other store hears of the deletion only: it has a floor, and no object of the zone.
  await other.store.applyRemote(items.filter(({ item }) => item === "floor"));
  await other.store.digest.ready();
  await store.digest.ready();
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.put("record", recordBody("corp.", "a"));
  });
  await other.store.applyRemote(store.rawItems({ limit: 100 }).items);
  assert.equal(other.store.digest.root(), store.digest.root());
});
