import assert from "node:assert/strict";
import { test } from "node:test";
import { ALONE, type CommandWorld, givenZone, refusedWith, testCaller } from "../../tests/support/commands.ts";
import { bulkDelete } from "./bulk-delete.ts";
import { createRecord } from "./records.ts";
import { runCommand } from "./run.ts";
import { createZone } from "./zones.ts";

async function makeRecord(world: CommandWorld, name: string, isProtected = false, zoneId = world.zoneId) {
  const given = { name, type: "A" as const, ttl: 0, values: [{ value: "192.0.2.1" }], protected: isProtected };
  return (await createRecord(world.context, testCaller(), zoneId, given)).stored.body.id;
}

test("each id counts once: deleted, protected or not found; ids of other zones are not found", async () => {
  await using world = await givenZone("corp.");
  const other = await createZone(world.context, testCaller(), ALONE, { name: "lab." });
  const plain = await makeRecord(world, "plain");
  const guarded = await makeRecord(world, "guarded", true);
  const foreign = await makeRecord(world, "foreign", false, other.stored.body.id);
  const ids = [plain, plain, guarded, foreign, "rec_unknown", "rec_unknown", world.zoneId];
  const result = await bulkDelete(world.context, testCaller(), world.zoneId, { ids, force: false });
  assert.deepEqual(result, { deleted: 1, protected_skipped: 1, not_found: 3 });
  assert.notEqual(world.store.byId("record", foreign), undefined);
  assert.notEqual(world.store.byId("record", guarded), undefined);
  assert.equal(world.audit({ action: "delete" }).length, 1);
  const forced = await bulkDelete(world.context, testCaller(), world.zoneId, { ids: [guarded], force: true });
  assert.deepEqual(forced, { deleted: 1, protected_skipped: 0, not_found: 0 });
});

test("a call that deletes nothing is noted once, with what it found", async () => {
  await using world = await givenZone("corp.");
  const guarded = await makeRecord(world, "guarded", true);
  const ids = [guarded, "rec_unknown"];
  const nothing = { deleted: 0, protected_skipped: 1, not_found: 1 };
  assert.deepEqual(await bulkDelete(world.context, testCaller({ dryRun: true }), world.zoneId, { ids }), nothing);
  assert.equal(world.audit({ action: "bulk-delete" }).length, 0);
  assert.deepEqual(await bulkDelete(world.context, testCaller(), world.zoneId, { ids }), nothing);
  const [entry, ...more] = world.audit({ action: "bulk-delete" });
  assert.deepEqual(
    [entry?.result, entry?.resource, entry?.resource_id, entry?.after, more.length],
    ["unchanged", "zone", world.zoneId, nothing, 0],
  );
});

test("more ids than the cap are refused whole, however often one is repeated", async () => {
  await using world = await givenZone("corp.");
  const id = await makeRecord(world, "www");
  const before = world.everything();
  const repeated = Array.from({ length: 101 }, () => id);
  const refusal = await refusedWith(
    "bulk_cap_exceeded",
    bulkDelete(world.context, testCaller(), world.zoneId, { ids: repeated }),
  );
  assert.equal(refusal.members.bulk_delete_cap, 100);
  assert.deepEqual(world.everything(), before);
  const atCap = { ids: repeated.slice(1) };
  assert.equal((await bulkDelete(world.context, testCaller({ dryRun: true }), world.zoneId, atCap)).deleted, 1);
  assert.deepEqual(world.everything(), before);
});

test("the cap is that of the guardrails", async () => {
  await using world = await givenZone("corp.");
  await runCommand(world.context, testCaller({ role: "admin" }), (tx) =>
    tx.put("config", { name: "delete-guardrails", settings: { bulk_delete_cap: 2 } }),
  );
  const command = (ids: readonly string[]) => bulkDelete(world.context, testCaller(), world.zoneId, { ids });
  await refusedWith("bulk_cap_exceeded", command(["a", "b", "c"]));
  assert.deepEqual(await command(["a", "b"]), { deleted: 0, protected_skipped: 0, not_found: 2 });
});

test("a confined token deletes in its zone only", async () => {
  await using world = await givenZone("corp.");
  const ids = [await makeRecord(world, "www")];
  await refusedWith(
    "zone_not_permitted",
    bulkDelete(world.context, testCaller({ zoneIds: ["zon_other"] }), world.zoneId, { ids }),
  );
  const result = await bulkDelete(world.context, testCaller({ zoneIds: [world.zoneId] }), world.zoneId, { ids });
  assert.equal(result.deleted, 1);
});
