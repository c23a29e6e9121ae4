/** What two nodes wrote while they could not hear each other: one outcome on both, and what lost in the journal. */
import assert from "node:assert/strict";
import test from "node:test";
import type { NodeStore } from "../../src/store/open-store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { exchange, pair, send, withZone } from "./two-stores.ts";

/** What lost, wherever it did: kind, name, reason and body. */
function lost(...stores: readonly NodeStore[]): readonly (readonly [string, string, string, string])[] {
  const entries = new Map(
    stores.flatMap((store) => store.journalPage({ limit: 100 }).entries).map((entry) => [entry.id, entry]),
  );
  return [...entries.values()].map(({ kind, key, reason, body }) => [
    kind,
    key.join(" "),
    reason,
    JSON.stringify(body),
  ]);
}

test("of two zones of one name the later stays, with the records of both, and its rival's id leads to it", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  const create = (store: NodeStore, id: string, record: string) =>
    store.write((tx) => {
      tx.put("zone", zoneBody("corp.", { id, default_ttl: record.length }));
      tx.setState("corp.", "active");
      tx.put("record", recordBody("corp.", record));
    });
  await create(left.store, "zon_left", "one");
  await create(right.store, "zon_right", "three");
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    assert.equal(store.get("zone", ["corp."])?.body.id, "zon_right");
    assert.equal(store.byId("zone", "zon_left")?.body.id, "zon_right");
    const names = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => body.name);
    assert.deepEqual(names, ["one", "three"]);
    assert.equal(store.count("zone"), 1);
  }
  assert.equal(left.store.serialOf("corp."), right.store.serialOf("corp."));
  const [entry, ...others] = lost(left.store, right.store);
  assert.deepEqual([entry?.slice(0, 3), others], [["zone", "corp.", "replaced"], []]);
  assert.match(entry?.[3] ?? "", /zon_left/);
});

test("of two renames of one record the later stays, and the other is in the journal", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await left.store.write((tx) => tx.put("record", recordBody("corp.", "a", { id: "rec_1" })));
  await send(left.store, right.store);
  const rename = (store: NodeStore, to: string) =>
    store.write((tx) => tx.move("record", ["corp.", "a", "A"], recordBody("corp.", to, { id: "rec_1" })));
  await rename(left.store, "b");
  await rename(right.store, "c");
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    const names = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => body.name);
    assert.deepEqual(names, ["c"]);
    assert.equal(store.byId("record", "rec_1")?.body.name, "c");
    assert.equal(store.count("record"), 1);
  }
  const reasons = lost(left.store, right.store).filter(([, , , body]) => body?.includes('"b"'));
  assert.deepEqual(
    reasons.map(([, key, reason]) => [key, reason]),
    [["corp. b A", "renamed"]],
  );
});

test("of two records renamed to one name the later stays, and the other is in the journal", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await left.store.write((tx) => {
    tx.put("record", recordBody("corp.", "a", { id: "rec_a" }));
    tx.put("record", recordBody("corp.", "b", { id: "rec_b" }));
  });
  await send(left.store, right.store);
  await left.store.write((tx) => tx.move("record", ["corp.", "a", "A"], recordBody("corp.", "c", { id: "rec_a" })));
  await right.store.write((tx) => tx.move("record", ["corp.", "b", "A"], recordBody("corp.", "c", { id: "rec_b" })));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    const ids = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => [body.name, body.id]);
    assert.deepEqual(ids, [["c", "rec_b"]]);
    assert.equal(store.byId("record", "rec_a")?.body.id, "rec_b", "the id that lost leads to what is there");
  }
  assert.deepEqual(
    lost(left.store, right.store).map(([, key, reason, body]) => [key, reason, body?.includes("rec_a")]),
    [["corp. c A", "replaced", true]],
  );
});

test("protection that was set while another node edited or deleted does not undo what came later", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await left.store.write((tx) => {
    for (const name of ["deleted", "edited", "kept"]) tx.put("record", recordBody("corp.", name));
  });
  await send(left.store, right.store);
  const protect = (name: string) =>
    left.store.write((tx) => tx.put("record", recordBody("corp.", name, { protected: true })));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "kept", { ttl: 7 })));
  for (const name of ["deleted", "edited", "kept"]) await protect(name);
  await right.store.write((tx) => tx.delete("record", ["corp.", "deleted", "A"]));
  await right.store.write((tx) => tx.put("record", recordBody("corp.", "edited", { ttl: 9 })));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    const found = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => body);
    assert.deepEqual(
      found.map((body) => [body.name, body.protected, body.ttl]),
      [
        ["edited", false, 9],
        ["kept", true, 0],
      ],
    );
  }
  const journal = lost(left.store, right.store).map(([, key, reason, body]) => [
    key,
    reason,
    body?.includes('"protected":true'),
  ]);
  assert.deepEqual(journal, [
    ["corp. deleted A", "replaced", true],
    ["corp. edited A", "replaced", true],
    ["corp. kept A", "replaced", false],
  ]);
});

test("a record made in a zone that was deleted elsewhere goes with it, and its zone's edit too", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  await withZone(left.store);
  await send(left.store, right.store);
  await left.store.write((tx) => tx.deleteZone("corp."));
  await right.store.write((tx) => {
    tx.put("record", recordBody("corp.", "late"));
    tx.put("zone", zoneBody("corp.", { default_ttl: 77 }));
  });
  await exchange(left.store, right.store);
  await right.store.idle();
  for (const { store } of [left, right]) {
    assert.equal(store.get("zone", ["corp."]), undefined);
    assert.equal(store.count("record"), 0);
  }
  assert.deepEqual(
    lost(left.store, right.store).map(([kind, key, reason]) => [kind, key, reason]),
    [
      ["zone", "corp.", "zone-deleted"],
      ["record", "corp. late A", "zone-deleted"],
    ],
  );
});
