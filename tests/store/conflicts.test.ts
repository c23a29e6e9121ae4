import assert from "node:assert/strict";
import test from "node:test";
import { getConflict, listConflicts, reapplyConflict } from "../../src/commands/conflicts.ts";
import { createRecord, updateRecord } from "../../src/commands/records.ts";
import type { Caller, CommandContext } from "../../src/commands/run.ts";
import { createZone } from "../../src/commands/zones.ts";
import { Refusal } from "../../src/model/refusal.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody } from "../support/store-objects.ts";

const START = Date.parse("2026-03-01T12:00:00Z");

function caller(name: string, extra: Partial<Caller> = {}): Caller {
  const actor = { kind: "user", id: `usr_${name}`, name, role: "editor" } as const;
  return { actor, address: "192.0.2.7", requestId: "req_1", dryRun: false, ...extra };
}

const refusedAs = (code: string) => (thrown: unknown) => thrown instanceof Refusal && thrown.code === code;

async function exchange(left: NodeStore, right: NodeStore): Promise<void> {
  for (const [from, to] of [
    [left, right],
    [right, left],
    [left, right],
  ] as const) {
    assert.deepEqual(await to.applyRemote(from.rawItems({ limit: 10_000 }).items), []);
  }
}

/** Two nodes between which the edit of alice on the first loses to that of bob on the second. */
async function twoNodes() {
  let nowMs = START;
  const now = () => ++nowMs;
  const left = await temporaryStore({ nodeId: "n1", now });
  const right = await temporaryStore({ nodeId: "n2", now });
  const peers = { peersAlive: () => 0 };
  const zone = await createZone(left.context, caller("alice"), peers, { name: "corp." });
  const record = await createRecord(left.context, caller("alice"), zone.stored.body.id, {
    name: "www",
    type: "A",
    values: [{ value: "192.0.2.1" }],
    health_check_template: { protocol: "http", http_config: { headers: { authorization: "swordfish" } } },
  });
  await exchange(left.store, right.store);
  const { id } = record.stored.body;
  const edit = (context: CommandContext, who: string, value: string) =>
    updateRecord(context, caller(who), id, { values: [{ value }] });
  await edit(left.context, "alice", "192.0.2.2");
  await edit(right.context, "bob", "192.0.2.3");
  await exchange(left.store, right.store);
  return {
    left,
    right,
    id,
    zone: zone.stored.body,
    [Symbol.asyncDispose]: async () => {
      await left[Symbol.asyncDispose]();
      await right[Symbol.asyncDispose]();
    },
  };
}

function addressOf(store: NodeStore): string | undefined {
  return store.get("record", ["corp.", "www", "A"])?.body.values[0]?.value;
}

test("a lost edit is shown with who made it, when, both bodies and no secret", async () => {
  await using world = await twoNodes();
  const { items, next } = listConflicts(world.left.store, { limit: 10 });
  assert.equal(next, undefined);
  const [conflict] = items;
  assert.ok(conflict);
  assert.deepEqual([conflict.kind, conflict.key, conflict.reason], ["record", ["corp.", "www", "A"], "replaced"]);
  assert.deepEqual([conflict.node_id, conflict.user_name, conflict.source_address], ["n1", "alice", "192.0.2.7"]);
  assert.ok(Math.abs(Date.parse(conflict.edited_at) - START) < 1_000);
  assert.match(JSON.stringify(conflict.body), /192\.0\.2\.2/);
  assert.match(JSON.stringify(conflict.present), /192\.0\.2\.3/);
  assert.ok(!JSON.stringify(conflict).includes("swordfish"));
  assert.equal(conflict.reapplicable, true);
  assert.deepEqual(getConflict(world.left.store, conflict.id), conflict);
  for (const id of ["", "x", "AAAA", "?", "a".repeat(10_000)]) {
    assert.throws(() => getConflict(world.left.store, id), refusedAs("not_found"));
  }
});

test("a lost edit is put back by one call, secrets and all, as the caller's own edit", async () => {
  await using world = await twoNodes();
  const { store, context } = world.left;
  const [conflict] = listConflicts(store, { limit: 10 }).items;
  assert.ok(conflict);
  assert.equal(addressOf(store), "192.0.2.3");
  await reapplyConflict(context, caller("carol", { dryRun: true }), conflict.id);
  assert.equal(addressOf(store), "192.0.2.3");
  const { stored } = await reapplyConflict(context, caller("carol"), conflict.id);
  assert.equal(stored?.kind, "record");
  const record = store.get("record", ["corp.", "www", "A"]);
  assert.equal(record?.body.id, world.id);
  assert.equal(record?.body.health_check_template?.http_config?.headers?.authorization, "swordfish");
  const [entry] = store.auditPage({}, { limit: 1 }).entries;
  assert.deepEqual(
    [entry?.user_name, entry?.resource_id, entry?.detail],
    ["carol", world.id, `from the conflict ${conflict.id}`],
  );
  await exchange(store, world.right.store);
  for (const { store: each } of [world.left, world.right]) assert.equal(addressOf(each), "192.0.2.2");
});

test("what any edit would be refused for, putting back is refused for", async () => {
  await using world = await twoNodes();
  const { store, context } = world.left;
  const [conflict] = listConflicts(store, { limit: 10 }).items;
  assert.ok(conflict);
  const confined = caller("carol", {
    actor: { kind: "service-account", id: "sva_1", name: "t", role: "editor", zoneIds: [] },
  });
  await assert.rejects(reapplyConflict(context, confined, conflict.id), refusedAs("zone_not_permitted"));
  await updateRecord(context, caller("bob"), world.id, { protected: true });
  await assert.rejects(reapplyConflict(context, caller("carol"), conflict.id), refusedAs("record_protected"));
  await assert.rejects(reapplyConflict(context, caller("carol"), "nothing"), refusedAs("not_found"));
  await store.write((tx) => tx.deleteZone("corp."));
  await assert.rejects(reapplyConflict(context, caller("carol"), conflict.id), refusedAs("not_found"));
});

test("the journal is read by kind and by zone, a page at a time", async () => {
  await using world = await twoNodes();
  const [left, right] = [world.left.store, world.right.store];
  await left.write((tx) => {
    for (let index = 0; index < 5; index++) tx.put("record", recordBody("corp.", `host${index}`, { ttl: 1 }));
    tx.put("forwarder", { id: "fwd_1", domain: "partner.example.", upstreams: ["192.0.2.53"] });
    tx.put("user", { id: "usr_1", username: "dora", role: "editor", enabled: true, password_hash: "old" });
  });
  await right.write((tx) => {
    for (let index = 0; index < 5; index++) tx.put("record", recordBody("corp.", `host${index}`, { ttl: 2 }));
    tx.put("forwarder", { id: "fwd_2", domain: "partner.example.", upstreams: ["192.0.2.54"] });
    tx.put("user", { id: "usr_2", username: "dora", role: "editor", enabled: true, password_hash: "new" });
  });
  await exchange(left, right);
  const every = (options: { kind?: "record" | "zone" | "user"; zone?: string }) => {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = listConflicts(left, { ...options, limit: 2, ...(cursor !== undefined && { cursor }) });
      assert.ok(page.items.length <= 2);
      found.push(...page.items.map(({ kind, key }) => `${kind} ${key.at(-2) ?? key[0]}`));
      cursor = page.next;
    } while (cursor !== undefined);
    return found;
  };
  const records = ["record host0", "record host1", "record host2", "record host3", "record host4", "record www"];
  assert.deepEqual(every({}), [...records, "user dora", "forwarder partner.example."]);
  assert.deepEqual(every({ kind: "record" }), records);
  assert.deepEqual(every({ zone: "corp." }), records);
  assert.deepEqual(every({ zone: "orp." }), []);
  assert.deepEqual(every({ kind: "zone", zone: "corp." }), []);
  const [user] = listConflicts(left, { limit: 10, kind: "user" }).items;
  assert.ok(user !== undefined && !user.reapplicable);
  await assert.rejects(reapplyConflict(world.left.context, caller("carol"), user.id), refusedAs("conflict"));
});
