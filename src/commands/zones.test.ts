import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, everythingIn, givenZone, refusedWith, testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { createRecord } from "./records.ts";
import { runCommand } from "./run.ts";
import { createZone, deleteZone, updateZone } from "./zones.ts";

const setGuardrails = (context: Parameters<typeof runCommand>[0], settings: Record<string, unknown>) =>
  runCommand(context, testCaller({ role: "admin" }), (tx) => tx.put("config", { name: "delete-guardrails", settings }));

test("a zone has the defaults, is active on a lone node and pending beside peers", async () => {
  await using world = await temporaryStore();
  const alone = await createZone(world.context, testCaller(), ALONE, { name: "corp." });
  assert.equal(alone.status, "active");
  assert.equal(alone.stored.body.default_ttl, 3600);
  assert.deepEqual(alone.stored.body.soa, {
    mname: "ns1.corp.",
    rname: "hostmaster.corp.",
    refresh: 7200,
    retry: 900,
    expire: 1209600,
    minimum: 300,
  });
  assert.ok(alone.serial > 0);
  const beside = await createZone(world.context, testCaller(), { peersAlive: () => 2 }, { name: "lab." });
  assert.equal(beside.status, "pending");
  assert.equal(world.store.stateOf("lab."), "pending");
});

test("a zone that exists is not created again, in whatever case, and the refusal names it", async () => {
  await using world = await givenZone("corp.");
  const before = world.everything();
  const refusal = await refusedWith("conflict", createZone(world.context, testCaller(), ALONE, { name: "CORP." }));
  assert.equal(refusal.members.zone_id, world.zoneId);
  assert.deepEqual(world.everything(), before);
});

test("the default deletion lock applies to zones made after it, and only where none is given", async () => {
  await using world = await givenZone("before.");
  await setGuardrails(world.context, { default_zone_deletion_lock: true });
  const inherits = await createZone(world.context, testCaller(), ALONE, { name: "inherits." });
  const says = await createZone(world.context, testCaller(), ALONE, { name: "says.", deletion_lock: false });
  assert.equal(inherits.stored.body.deletion_lock, true);
  assert.equal(says.stored.body.deletion_lock, false);
  assert.equal(world.store.get("zone", ["before."])?.body.deletion_lock, false);
  await setGuardrails(world.context, { default_zone_deletion_lock: false });
  assert.equal(world.store.get("zone", ["inherits."])?.body.deletion_lock, true);
});

test("a locked zone is not deleted; unlocked it goes with all its records, protected ones too", async () => {
  await using world = await givenZone("corp.");
  const value = { type: "A" as const, ttl: 0, values: [{ value: "192.0.2.1" }] };
  const { stored } = await createRecord(world.context, testCaller(), world.zoneId, {
    ...value,
    name: "www",
    protected: true,
  });
  await updateZone(world.context, testCaller(), world.zoneId, { deletion_lock: true });
  const before = world.everything();
  await refusedWith("deletion_locked", deleteZone(world.context, testCaller(), world.zoneId));
  assert.deepEqual(world.everything(), before);
  await updateZone(world.context, testCaller(), world.zoneId, { deletion_lock: false });
  await deleteZone(world.context, testCaller(), world.zoneId);
  assert.equal(world.store.get("zone", ["corp."]), undefined);
  assert.equal(world.store.byId("record", stored.body.id), undefined);
  assert.equal(world.store.count("record"), 0);
  const again = await createZone(world.context, testCaller(), ALONE, { name: "corp." });
  assert.notEqual(again.stored.body.id, world.zoneId);
  assert.equal(again.recordCount, 0);
});

test("an update merges the SOA by part, and moves the serial only when something changes", async () => {
  await using world = await givenZone("corp.");
  const serial = world.store.serialOf("corp.")!;
  const changed = await updateZone(world.context, testCaller(), world.zoneId, { soa: { refresh: 60 } });
  assert.equal(changed.stored.body.soa.refresh, 60);
  assert.equal(changed.stored.body.soa.mname, "ns1.corp.");
  assert.ok(changed.serial > serial);
  const same = await updateZone(world.context, testCaller(), world.zoneId, { soa: { refresh: 60 } });
  assert.equal(same.serial, changed.serial);
  assert.equal(same.stored.stamp, changed.stored.stamp);
});

test("a policy is set, replaced whole, and removed in two ways", async () => {
  await using world = await givenZone("corp.");
  const update = async (given: Parameters<typeof updateZone>[3]) =>
    (await updateZone(world.context, testCaller(), world.zoneId, given)).stored.body.lb_policy;
  assert.deepEqual(await update({ lb_policy: { method: "region", region_preference: ["eu"] } }), {
    method: "region",
    region_preference: ["eu"],
  });
  assert.deepEqual(await update({ lb_policy: { method: "latency" } }), { method: "latency" });
  assert.equal(await update({ clear_lb_policy: true }), undefined);
  await update({ lb_policy: { method: "latency" } });
  assert.equal(await update({ lb_policy: null }), undefined);
  await refusedWith("invalid_request", update({ lb_policy: { method: "latency" }, clear_lb_policy: true }));
});

test("an in-zone name server without an address is a warning until it has one", async () => {
  await using world = await temporaryStore();
  const { stored, warnings } = await createZone(world.context, testCaller(), ALONE, { name: "corp." });
  assert.match(warnings.join(), /ns1\.corp\./);
  const update = async () => (await updateZone(world.context, testCaller(), stored.body.id, {})).warnings;
  assert.equal((await update()).length, 1);
  const address = { type: "A" as const, ttl: 0, values: [{ value: "192.0.2.1" }] };
  await createRecord(world.context, testCaller(), stored.body.id, { ...address, name: "ns1" });
  assert.deepEqual(await update(), []);
  const elsewhere = { name: "lab.", soa: { mname: "ns.elsewhere.", rname: "hostmaster.lab." } };
  assert.deepEqual((await createZone(world.context, testCaller(), ALONE, elsewhere)).warnings, []);
  const sibling = { name: "sub.corp.", soa: { mname: "ns1.corp.", rname: "hostmaster.corp." } };
  assert.deepEqual((await createZone(world.context, testCaller(), ALONE, sibling)).warnings, []);
});

test("a confined token changes its zone, and neither makes nor ends any", async () => {
  await using world = await givenZone("corp.");
  const caller = testCaller({ zoneIds: [world.zoneId] });
  await updateZone(world.context, caller, world.zoneId, { default_ttl: 60 });
  const before = world.everything();
  await refusedWith("zone_not_permitted", createZone(world.context, caller, ALONE, { name: "lab." }));
  await refusedWith("zone_not_permitted", deleteZone(world.context, caller, world.zoneId));
  const other = testCaller({ zoneIds: [] });
  await refusedWith("zone_not_permitted", updateZone(world.context, other, world.zoneId, { default_ttl: 1 }));
  assert.deepEqual(world.everything(), before);
});

test("what throws half-way, a dry run and a stale version leave nothing behind", async () => {
  await using world = await givenZone("corp.");
  const before = world.everything();
  const broken = { peersAlive: () => assert.fail("no cluster") };
  await assert.rejects(createZone(world.context, testCaller(), broken, { name: "lab." }), /no cluster/);
  const dry = testCaller({ dryRun: true });
  assert.equal((await createZone(world.context, dry, ALONE, { name: "lab." })).stored.body.name, "lab.");
  await updateZone(world.context, dry, world.zoneId, { default_ttl: 60 });
  await deleteZone(world.context, dry, world.zoneId);
  const stale = testCaller({ ifMatch: '"000000000000000000-x"' });
  await refusedWith("precondition_failed", updateZone(world.context, stale, world.zoneId, { default_ttl: 60 }));
  await refusedWith("precondition_failed", deleteZone(world.context, stale, world.zoneId));
  assert.deepEqual(everythingIn(world.store), before);
});
