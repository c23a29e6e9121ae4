import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { ChangeBatch } from "../../src/store/store.ts";
import { temporaryStore } from "../support/store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

test("what was put is read by key, by id and in a list", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const stored = await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.put("record", recordBody("corp.", "b"));
    return tx.put("record", recordBody("corp.", "a.b"));
  });
  assert.equal(stored.body.name, "a.b");
  assert.deepEqual(store.get("record", ["corp.", "a.b", "A"]), stored);
  assert.deepEqual(store.byId("record", stored.body.id), stored);
  const names = store.list("record", { prefix: ["corp."], limit: 10 }).map(({ body }) => body.name);
  assert.deepEqual(names, ["b", "a.b"]);
  assert.equal(store.count("record", "corp."), 2);
  assert.equal(store.count("record"), 2);
  assert.equal(store.count("zone"), 1);
});

test("no other user may read the files of a store", async () => {
  await using temporary = await temporaryStore();
  for (const name of ["data.mdb", "lock.mdb"]) {
    assert.equal(statSync(join(temporary.directory, "store", name)).mode & 0o777, 0o600);
  }
});

test("a deleted zone takes its records, and they stay away when it comes back", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    for (const name of ["a", "b", "c"]) tx.put("record", recordBody("corp.", name));
  });
  assert.equal(await store.write((tx) => tx.deleteZone("corp.")), true);
  assert.equal(store.count("record"), 0);
  assert.equal(store.serialOf("corp."), undefined);
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp.", { id: "zon_second" }));
    tx.put("record", recordBody("corp.", "b", { id: "rec_second" }));
  });
  assert.deepEqual(
    store.list("record", { limit: 10 }).map(({ body }) => body.id),
    ["rec_second"],
  );
  assert.equal(store.count("record", "corp."), 1);
  assert.equal(store.byId("record", "rec_a.corp.A"), undefined);
  assert.equal(store.byId("zone", "zon_corp."), undefined);
});

test("a moved record keeps its id and leaves nothing behind", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.put("record", recordBody("corp.", "a"));
  });
  const moved = recordBody("corp.", "z", { id: "rec_a.corp.A" });
  await store.write((tx) => tx.move("record", ["corp.", "a", "A"], moved));
  assert.equal(store.get("record", ["corp.", "a", "A"]), undefined);
  assert.equal(store.byId("record", "rec_a.corp.A")?.body.name, "z");
  assert.equal(store.count("record", "corp."), 1);
});

test("a throw half-way leaves nothing written and tells nobody", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => tx.put("zone", zoneBody("corp.")));
  const heard: ChangeBatch[] = [];
  store.onChange((batch) => heard.push(batch));
  const attempt = store.write((tx) => {
    tx.put("record", recordBody("corp.", "a"));
    tx.audit(auditInput());
    throw new Error("half-way");
  });
  await assert.rejects(attempt, /half-way/);
  assert.equal(store.count("record"), 0);
  assert.deepEqual(store.auditPage({}, { limit: 10 }), { entries: [], cursor: undefined });
  assert.deepEqual(heard, []);
});

test("a rehearsal gives its result and writes nothing", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const stored = await store.rehearse((tx) => tx.put("zone", zoneBody("corp.")));
  assert.equal(stored.body.name, "corp.");
  assert.equal(store.count("zone"), 0);
});

test("listeners have heard when the write resolves, in the order of writes", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const heard: string[] = [];
  store.onChange(({ changes }) => heard.push(...changes.map(({ key }) => String(key[0]))));
  const names = Array.from({ length: 50 }, (_, index) => `z${index}.`);
  await Promise.all(
    names.map(async (name) => {
      await store.write((tx) => tx.put("zone", zoneBody(name)));
      assert.ok(heard.includes(name));
    }),
  );
  assert.deepEqual(heard, names);
});

test("the audit log is read newest first, by pages", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  for (let index = 0; index < 7; index++) {
    await store.write((tx) => tx.audit(auditInput({ resource_id: `zon_${index}` })));
  }
  const first = store.auditPage({}, { limit: 4 });
  assert.deepEqual(
    first.entries.map(({ resource_id }) => resource_id),
    ["zon_6", "zon_5", "zon_4", "zon_3"],
  );
  const second = store.auditPage({}, { limit: 4, ...(first.cursor !== undefined && { cursor: first.cursor }) });
  assert.deepEqual(
    second.entries.map(({ resource_id }) => resource_id),
    ["zon_2", "zon_1", "zon_0"],
  );
  assert.equal(second.cursor, undefined);
  assert.equal(store.auditPage({ resource_id: "zon_3" }, { limit: 4 }).entries.length, 1);
});
