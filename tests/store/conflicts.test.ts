import assert from "node:assert/strict";
import test from "node:test";
import { getConflict, listConflicts } from "../../src/commands/conflicts.ts";
import { type ReapplyContext, reapplyConflict } from "../../src/commands/reapply-conflict.ts";
import { createRecord, updateRecord } from "../../src/commands/records.ts";
import type { Caller, CommandContext } from "../../src/commands/run.ts";
import { createZone } from "../../src/commands/zones.ts";
import { EMPTY_BLOCKLIST } from "../../src/model/blocklist.ts";
import { type Bodies, type Kind, NATURAL_KEYS, type NaturalKey } from "../../src/model/objects.ts";
import { Refusal } from "../../src/model/refusal.ts";
import type { NodeStore } from "../../src/store/open-store.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

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

function reapplying(context: CommandContext): ReapplyContext {
  return { ...context, areScriptsEnabled: false, isOwnSocket: () => false, peers: { peersAlive: () => 0 } };
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
    left: { ...left, context: reapplying(left.context) },
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
  // However often it loses, it is one.
  await exchange(world.left.store, world.right.store);
  assert.deepEqual(world.left.store.journalTotals(), { replaced: 1, renamed: 0, "zone-deleted": 0, stale: 0 });
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

/** Each kind that people write, as two nodes wrote it without a sight of the other; the second one's stays. */
const EDITS: readonly { readonly kind: Kind; readonly lost: Bodies[Kind]; readonly won: Bodies[Kind] }[] = [
  {
    kind: "zone",
    lost: { ...zoneBody("lab."), default_ttl: 7 },
    won: { ...zoneBody("lab."), default_ttl: 8, lb_policy: { method: "round-robin" } },
  },
  {
    kind: "override",
    lost: override("ovr_1", "192.0.2.1"),
    won: override("ovr_2", "192.0.2.2"),
  },
  {
    kind: "subnet-mapping",
    lost: { id: "map_1", subnet: "192.0.2.0/24", region_id: "east", source: "manual" },
    won: { id: "map_2", subnet: "192.0.2.0/24", region_id: "west", source: "manual" },
  },
  {
    kind: "forwarder",
    lost: { id: "fwd_1", domain: "partner.", upstreams: ["192.0.2.53"] },
    won: { id: "fwd_2", domain: "partner.", upstreams: ["192.0.2.54"], comment: "theirs" },
  },
  {
    kind: "stub-zone",
    lost: { id: "stb_1", domain: "stub.", hints: ["192.0.2.53"], comment: "ours" },
    won: { id: "stb_2", domain: "stub.", hints: ["192.0.2.54"] },
  },
  {
    kind: "healthcheck",
    lost: check("chk_1", "a.example:80"),
    won: { ...check("chk_2", "b.example:80"), comment: "theirs" },
  },
  {
    kind: "config",
    lost: { name: "rate-limits", settings: { read: 100 } },
    won: { name: "rate-limits", settings: { write: 200 } },
  },
];

function override(id: string, value: string): Bodies["override"] {
  return { id, name: "www.x.", type: "A", ttl: 60, values: [{ value }], enabled: true };
}

function check(id: string, target: string): Bodies["healthcheck"] {
  return { id, name: "web", protocol: "tcp", target, interval_seconds: 5, timeout_seconds: 1, failure_threshold: 2 };
}

function keyOf(kind: Kind, body: Bodies[Kind]): NaturalKey {
  return (NATURAL_KEYS[kind] as (given: unknown) => NaturalKey)(body);
}

/** Without the id, which is the one that stands there. */
function shown(body: object | undefined): object {
  const { id: _, ...rest } = { id: "", ...body };
  return rest;
}

test("whatever people write comes back by one call, whole", async () => {
  await using world = await twoNodes();
  const { left, right } = world;
  const admin = caller("carol", { actor: { kind: "user", id: "usr_c", name: "carol", role: "admin" } });
  for (const { kind, lost } of EDITS) await left.store.write((tx) => tx.put(kind, lost));
  for (const { kind, won } of EDITS) await right.store.write((tx) => tx.put(kind, won));
  await exchange(left.store, right.store);
  for (const { kind, lost, won } of EDITS) {
    const [conflict] = listConflicts(left.store, { limit: 10, kind }).items.slice(-1);
    assert.ok(conflict?.reapplicable, kind);
    assert.deepEqual(shown(left.store.get(kind, conflict.key)?.body), shown(won), kind);
    await reapplyConflict(left.context, { ...admin, dryRun: true }, conflict.id);
    assert.deepEqual(shown(left.store.get(kind, conflict.key)?.body), shown(won), kind);
    await reapplyConflict(left.context, admin, conflict.id);
    assert.deepEqual(shown(left.store.get(kind, conflict.key)?.body), shown(lost), kind);
    const [entry] = left.store.auditPage({}, { limit: 1 }).entries;
    assert.equal(entry?.detail, `from the conflict ${conflict.id}`, kind);
  }
});

test("a lost deletion deletes what is there now, by the rules of any deletion", async () => {
  await using world = await twoNodes();
  const { left, right } = world;
  for (const { kind, lost } of EDITS) await left.store.write((tx) => tx.put(kind, lost));
  await exchange(left.store, right.store);
  const record = left.store.get("record", ["corp.", "www", "A"]);
  assert.ok(record);
  const deletable = EDITS.filter(({ kind }) => kind !== "config");
  await left.store.write((tx) => {
    for (const { kind, lost } of deletable) {
      if (kind === "zone") tx.deleteZone("lab.");
      else tx.delete(kind, keyOf(kind, lost));
    }
    tx.delete("record", record.key);
  });
  await right.store.write((tx) => {
    for (const { kind, won } of deletable) if (kind !== "zone") tx.put<Kind>(kind, won);
    tx.put("record", { ...record.body, ttl: 9, protected: true });
  });
  await exchange(left.store, right.store);
  const lost = listConflicts(left.store, { limit: 100 }).items.filter(({ body }) => body === undefined);
  assert.deepEqual(
    new Set(lost.map(({ kind }) => kind)),
    new Set(["record", ...deletable.map(({ kind }) => kind).filter((kind) => kind !== "zone")]),
  );
  for (const { id, kind, key, reapplicable } of lost) {
    assert.ok(reapplicable, kind);
    if (kind === "record") {
      await assert.rejects(reapplyConflict(left.context, caller("carol"), id), refusedAs("record_protected"));
      continue;
    }
    await reapplyConflict(left.context, caller("carol"), id);
    assert.equal(left.store.get(kind, key), undefined, kind);
    await assert.rejects(reapplyConflict(left.context, caller("carol"), id), refusedAs("not_found"));
  }
});

test("a blocklist comes back while its names are there", async () => {
  await using world = await twoNodes();
  const { left, right } = world;
  const { name, shards } = EMPTY_BLOCKLIST;
  const list = (hash: string) => ({ name, count: 1, shards: [hash, ...shards.slice(1)] });
  const key = "a".repeat(22);
  await left.store.write((tx) => {
    tx.put("blocklist-part", { hash: key, names: "x" });
    tx.put("blocklist", list(key));
  });
  await right.store.write((tx) => tx.put("blocklist", list("b".repeat(22))));
  await exchange(left.store, right.store);
  const [conflict] = listConflicts(left.store, { limit: 10, kind: "blocklist" }).items;
  assert.ok(conflict?.reapplicable);
  await reapplyConflict(left.context, caller("carol"), conflict.id);
  assert.deepEqual(left.store.get("blocklist", conflict.key)?.body, list(key));
  await left.store.write((tx) => {
    tx.put("blocklist", list("b".repeat(22)));
    tx.delete("blocklist-part", [key]);
  });
  await assert.rejects(reapplyConflict(left.context, caller("carol"), conflict.id), refusedAs("conflict"));
});
