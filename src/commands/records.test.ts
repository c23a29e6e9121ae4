import assert from "node:assert/strict";
import { test } from "node:test";
import { givenZone, refusedWith, testCaller } from "../../tests/support/commands.ts";
import type { RecordType } from "../model/objects.ts";
import { createRecord, deleteRecord, updateRecord } from "./records.ts";

const A = (name: string, ...values: readonly string[]) => ({
  name,
  type: "A" as const,
  ttl: 300,
  values: values.map((value) => ({ value })),
});

test("a create that finds its like replaces it and keeps the id", async () => {
  await using world = await givenZone("corp.");
  const first = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  assert.equal(first.before, undefined);
  const second = await createRecord(world.context, testCaller(), world.zoneId, A("WWW", "192.0.2.2"));
  assert.equal(second.stored.body.id, first.stored.body.id);
  assert.equal(second.before?.stamp, first.stored.stamp);
  assert.deepEqual(
    second.stored.body.values.map(({ value }) => value),
    ["192.0.2.2"],
  );
  assert.equal(world.store.count("record", "corp."), 1);
});

test("a create of what is there changes neither stamp nor serial, and is noted", async () => {
  await using world = await givenZone("corp.");
  const first = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  const serial = world.store.serialOf("corp.");
  const again = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  assert.equal(again.stored.stamp, first.stored.stamp);
  assert.equal(world.store.serialOf("corp."), serial);
  assert.deepEqual(
    world.audit({ resource: "record" }).map(({ result }) => result),
    ["unchanged", "success"],
  );
});

test("a protected incumbent is not replaced, and the refusal names it", async () => {
  await using world = await givenZone("corp.");
  const given = { ...A("www", "192.0.2.1"), protected: true };
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, given);
  const before = world.everything();
  const refusal = await refusedWith(
    "record_protected",
    createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.2")),
  );
  assert.equal(refusal.members.record_id, stored.body.id);
  assert.match(refusal.message, /www\.corp\. A/);
  assert.deepEqual(world.everything(), before);
});

const OWNERSHIP: readonly (readonly [RecordType, RecordType, boolean])[] = [
  ["A", "AAAA", true],
  ["A", "CNAME", false],
  ["CNAME", "TXT", false],
  ["ALIAS", "TXT", false],
  ["MX", "ALIAS", false],
  ["CNAME", "ALIAS", false],
];
const VALUES: Partial<Record<RecordType, string>> = { A: "192.0.2.1", AAAA: "2001:db8::1", TXT: "text" };

for (const [incumbent, comer, isAllowed] of OWNERSHIP) {
  test(`${comer} ${isAllowed ? "comes" : "does not come"} to a name that has ${incumbent}`, async () => {
    await using world = await givenZone("corp.");
    const make = (type: RecordType) =>
      createRecord(world.context, testCaller(), world.zoneId, {
        name: "www",
        type,
        ttl: 0,
        values: [{ value: VALUES[type] ?? "target.corp." }],
      });
    const first = await make(incumbent);
    if (isAllowed) {
      await make(comer);
      assert.equal(world.store.count("record", "corp."), 2);
      return;
    }
    const before = world.everything();
    const refusal = await refusedWith("name_owned", make(comer));
    assert.equal(refusal.members.record_id, first.stored.body.id);
    assert.deepEqual(world.everything(), before);
  });
}

test("a name below one that a CNAME owns is free, and so is one that begins with it", async () => {
  await using world = await givenZone("corp.");
  const alias = { name: "www", type: "CNAME" as const, ttl: 0, values: [{ value: "target.corp." }] };
  await createRecord(world.context, testCaller(), world.zoneId, alias);
  await createRecord(world.context, testCaller(), world.zoneId, A("a.www", "192.0.2.1"));
  await createRecord(world.context, testCaller(), world.zoneId, A("www2", "192.0.2.1"));
  assert.equal(world.store.count("record", "corp."), 3);
});

test("an update changes what it is given and leaves the rest", async () => {
  await using world = await givenZone("corp.");
  const given = { ...A("www", "192.0.2.1"), comment: "first" };
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, given);
  const serial = world.store.serialOf("corp.")!;
  const changed = await updateRecord(world.context, testCaller(), stored.body.id, { ttl: 60 });
  assert.equal(changed.stored.body.ttl, 60);
  assert.equal(changed.stored.body.comment, "first");
  assert.deepEqual(changed.stored.body.values, stored.body.values);
  assert.ok(world.store.serialOf("corp.")! > serial);
});

test("a rename keeps the id; the old name is free", async () => {
  await using world = await givenZone("corp.");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  const renamed = await updateRecord(world.context, testCaller(), stored.body.id, { name: "web" });
  assert.equal(renamed.stored.body.id, stored.body.id);
  assert.equal(world.store.get("record", ["corp.", "www", "A"]), undefined);
  assert.equal(world.store.byId("record", stored.body.id)?.body.name, "web");
  assert.equal(world.store.count("record", "corp."), 1);
});

test("a rename on to an unprotected record replaces it, and its id ends", async () => {
  await using world = await givenZone("corp.");
  const { stored: www } = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  const { stored: web } = await createRecord(world.context, testCaller(), world.zoneId, A("web", "192.0.2.2"));
  await updateRecord(world.context, testCaller(), www.body.id, { name: "web" });
  assert.equal(world.store.count("record", "corp."), 1);
  assert.deepEqual(world.store.get("record", ["corp.", "web", "A"])?.body.values, [{ value: "192.0.2.1" }]);
  assert.equal(world.store.byId("record", web.body.id), undefined);
  const [entry] = world.audit({ resource_id: web.body.id });
  assert.equal(entry?.action, "delete");
});

test("a rename on to a protected record, or to a name that a CNAME owns, changes nothing", async () => {
  await using world = await givenZone("corp.");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  const guarded = { ...A("web", "192.0.2.2"), protected: true };
  const { stored: kept } = await createRecord(world.context, testCaller(), world.zoneId, guarded);
  const alias = { name: "alias", type: "CNAME" as const, ttl: 0, values: [{ value: "target.corp." }] };
  await createRecord(world.context, testCaller(), world.zoneId, alias);
  const before = world.everything();
  const rename = (name: string) => updateRecord(world.context, testCaller(), stored.body.id, { name });
  assert.equal((await refusedWith("record_protected", rename("web"))).members.record_id, kept.body.id);
  await refusedWith("name_owned", rename("alias"));
  assert.deepEqual(world.everything(), before);
});

test("a protected record is deleted only by force", async () => {
  await using world = await givenZone("corp.");
  const given = { ...A("www", "192.0.2.1"), protected: true };
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, given);
  const refusal = await refusedWith(
    "record_protected",
    deleteRecord(world.context, testCaller(), stored.body.id, false),
  );
  assert.equal(refusal.members.record_id, stored.body.id);
  assert.equal(world.store.count("record", "corp."), 1);
  await deleteRecord(world.context, testCaller(), stored.body.id, true);
  assert.equal(world.store.count("record", "corp."), 0);
  assert.equal(world.audit({ action: "delete" })[0]?.detail, "forced");
});

test("a stale If-Match changes nothing", async () => {
  await using world = await givenZone("corp.");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  await updateRecord(world.context, testCaller(), stored.body.id, { ttl: 60 });
  const before = world.everything();
  const caller = testCaller({ ifMatch: `"${stored.stamp}"` });
  await refusedWith("precondition_failed", updateRecord(world.context, caller, stored.body.id, { ttl: 90 }));
  await refusedWith("precondition_failed", deleteRecord(world.context, caller, stored.body.id, false));
  assert.deepEqual(world.everything(), before);
});

test("a dry run gives what the write would give, and changes nothing", async () => {
  await using world = await givenZone("corp.");
  const before = world.everything();
  const caller = testCaller({ dryRun: true });
  const { stored } = await createRecord(world.context, caller, world.zoneId, A("www", "192.0.2.1"));
  assert.equal(stored.body.name, "www");
  assert.deepEqual(world.everything(), before);
});

test("a token confined to another zone writes nothing here", async () => {
  await using world = await givenZone("corp.");
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, A("www", "192.0.2.1"));
  const before = world.everything();
  for (const zoneIds of [[], ["zon_aaaaaaaaaaaaaaaaaaaa"]]) {
    const caller = testCaller({ zoneIds });
    await refusedWith("zone_not_permitted", createRecord(world.context, caller, world.zoneId, A("a", "192.0.2.1")));
    await refusedWith("zone_not_permitted", updateRecord(world.context, caller, stored.body.id, { ttl: 1 }));
    await refusedWith("zone_not_permitted", deleteRecord(world.context, caller, stored.body.id, false));
  }
  assert.deepEqual(world.everything(), before);
  const caller = testCaller({ zoneIds: [world.zoneId] });
  await updateRecord(world.context, caller, stored.body.id, { ttl: 1 });
});

test("an unknown zone or record is not found", async () => {
  await using world = await givenZone("corp.");
  await refusedWith("not_found", createRecord(world.context, testCaller(), "zon_x", A("www", "192.0.2.1")));
  await refusedWith("not_found", updateRecord(world.context, testCaller(), "rec_x", { ttl: 1 }));
  await refusedWith("not_found", deleteRecord(world.context, testCaller(), world.zoneId, false));
});
