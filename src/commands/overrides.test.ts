import assert from "node:assert/strict";
import { test } from "node:test";
import { everythingIn, refusedWith, testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { createOverride, deleteOverride, updateOverride } from "./overrides.ts";

const A = (name: string, value: string) => ({ name, type: "A" as const, values: [{ value }] });

test("an override is created, replaced by its like under the same id, changed, renamed and deleted", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const { stored } = await createOverride(context, testCaller(), A("db.partner.example.", "192.0.2.1"));
  assert.equal(stored.body.enabled, true);
  const again = await createOverride(context, testCaller(), A("DB.partner.example.", "192.0.2.2"));
  assert.equal(again.stored.body.id, stored.body.id);
  assert.equal(store.count("override"), 1);
  const expiry = { enabled: false, expires_at: "2031-01-01T00:00:00Z" };
  const changed = await updateOverride(context, testCaller(), stored.body.id, expiry);
  assert.equal(changed.stored.body.enabled, false);
  assert.equal(changed.stored.body.expires_at, "2031-01-01T00:00:00.000Z");
  await createOverride(context, testCaller(), A("new.partner.example.", "192.0.2.9"));
  const renamed = await updateOverride(context, testCaller(), stored.body.id, { name: "new.partner.example." });
  assert.equal(renamed.stored.body.id, stored.body.id);
  assert.equal(store.count("override"), 1);
  await deleteOverride(context, testCaller(), stored.body.id);
  assert.equal(store.count("override"), 0);
});

test("a CNAME does not come beside another override, and nothing comes beside it", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const { stored } = await createOverride(context, testCaller(), A("db.partner.example.", "192.0.2.1"));
  const cname = { name: "db.partner.example.", type: "CNAME" as const, values: [{ value: "x.example." }] };
  const before = everythingIn(store);
  const refusal = await refusedWith("name_owned", createOverride(context, testCaller(), cname));
  assert.equal(refusal.members.override_id, stored.body.id);
  assert.deepEqual(everythingIn(store), before);
  await createOverride(context, testCaller(), { ...cname, name: "other.partner.example." });
  const rename = updateOverride(context, testCaller(), stored.body.id, { name: "other.partner.example." });
  await refusedWith("name_owned", rename);
});

test("a confined token, a stale version and a dry run leave overrides as they are", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const { stored } = await createOverride(context, testCaller(), A("db.partner.example.", "192.0.2.1"));
  const before = everythingIn(store);
  const confined = testCaller({ zoneIds: ["zon_x"] });
  await refusedWith("zone_not_permitted", createOverride(context, confined, A("a.example.", "192.0.2.1")));
  await refusedWith("zone_not_permitted", updateOverride(context, confined, stored.body.id, { ttl: 1 }));
  await refusedWith("zone_not_permitted", deleteOverride(context, confined, stored.body.id));
  const stale = testCaller({ ifMatch: '"0"' });
  await refusedWith("precondition_failed", updateOverride(context, stale, stored.body.id, { ttl: 1 }));
  await refusedWith("precondition_failed", deleteOverride(context, stale, stored.body.id));
  const dry = testCaller({ dryRun: true });
  assert.equal((await updateOverride(context, dry, stored.body.id, { ttl: 1 })).stored.body.ttl, 1);
  await deleteOverride(context, dry, stored.body.id);
  assert.deepEqual(everythingIn(store), before);
});
