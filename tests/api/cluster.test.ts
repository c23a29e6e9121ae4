/** /nodes and /cluster over a node layer that a test tells what to say. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterRoutes } from "../../src/api/routes/cluster.ts";
import { conflictRoutes } from "../../src/api/routes/conflicts.ts";
import { nodeRoutes } from "../../src/api/routes/nodes.ts";
import { recordRoutes } from "../../src/api/routes/records.ts";
import { statsRoutes } from "../../src/api/routes/stats.ts";
import { zoneRoutes } from "../../src/api/routes/zones.ts";
import { loneCluster } from "../../src/commands/cluster.ts";
import type { ClusterView } from "../../src/commands/cluster-view.ts";
import { followRemovedNodes, knownPeers } from "../../src/commands/nodes.ts";
import { createRecord } from "../../src/commands/records.ts";
import type { NodeBody } from "../../src/model/objects.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { auditOf, testCaller } from "../support/commands.ts";
import { createFakeCluster, type FakeCluster, memberOf, TEST_LISTENERS } from "../support/fake-cluster.ts";
import { temporaryStore } from "../support/store.ts";

function start(cluster: ClusterView): Promise<TestApi> {
  return startApi((context) => [
    ...nodeRoutes(context, cluster, () => TEST_LISTENERS),
    ...clusterRoutes(context, cluster),
    ...statsRoutes(context, cluster),
    ...zoneRoutes(context, cluster),
  ]);
}

async function write({ store }: TestApi, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const body: NodeBody = { id, region: "stored", address: `${id}.stored:7946`, version: "0" };
    await store.write((tx) => void tx.put("node", body));
  }
}

test("nodes are those that have written themselves, joined with what is live of them", async () => {
  const cluster = createFakeCluster();
  cluster.members.push(
    memberOf("b", { queuedChanges: 3, lagMs: 39.6, skewMs: -7.2 }),
    memberOf("c", { state: "dead", region: "" }),
    memberOf("removed", { state: "left" }),
    memberOf("new", { state: "suspect" }),
  );
  await using api = await start(cluster);
  await write(api, "b", "c", "long-gone");
  const { items, next_cursor } = (await api.ask("GET", "/nodes", { as: "readonly" })).body;
  assert.equal(next_cursor, null);
  assert.deepEqual(
    items.map((node: Record<string, unknown>) => [node.id, node.status, node.self, node.region, node.address]),
    [
      ["b", "alive", false, "eu-west", "b.example:7946"],
      ["c", "dead", false, "stored", "c.stored:7946"],
      ["long-gone", "dead", false, "stored", "long-gone.stored:7946"],
      ["new", "suspect", false, "eu-west", "new.example:7946"],
      ["test-node", "alive", true, "eu-west", "test-node.example:7946"],
    ],
  );
  const [b, , gone] = items;
  assert.deepEqual([b.queued_changes, b.lag_ms, b.skew_ms, b.since], [3, 40, -7, "2026-01-31T12:00:00.000Z"]);
  assert.deepEqual([gone.since, gone.queued_changes, gone.last_agreement], [null, null, null]);
  assert.equal((await api.ask("GET", "/stats")).body.nodes, 5);
  const first = (await api.ask("GET", "/nodes?limit=3")).body;
  const rest = (await api.ask("GET", `/nodes?limit=3&cursor=${first.next_cursor}`)).body;
  assert.deepEqual([...first.items, ...rest.items], items);
  assert.equal(rest.next_cursor, null);
});

test("a node says of itself where it listens, and without a cluster it is the only one", async () => {
  await using alone = await start(loneCluster({ id: "test-node", region: "eu", version: "1.2.3" }));
  const { body } = await alone.ask("GET", "/nodes/self", { as: "readonly" });
  assert.deepEqual(
    [body.id, body.status, body.self, body.region, body.version],
    ["test-node", "alive", true, "eu", "1.2.3"],
  );
  assert.deepEqual([body.clustered, body.peers_alive, body.address], [false, 0, ""]);
  assert.deepEqual(body.listeners, TEST_LISTENERS);
  assert.equal(body.instance_id, alone.store.instanceId);
  assert.equal((await alone.ask("GET", "/nodes")).body.items.length, 1);
  assert.equal((await alone.ask("GET", "/stats")).body.nodes, 1);
  await alone.ask("POST", "/zones", { json: { name: "corp.example." } });
  const { agrees, items } = (await alone.ask("GET", "/cluster/consistency")).body;
  const [{ zone, nodes }] = items;
  assert.deepEqual([agrees, zone, nodes[0].records, nodes[0].digest], [true, "corp.example.", 0, null]);
});

test("a node is removed once it has stopped, and all others hear of it", async () => {
  const cluster = createFakeCluster();
  cluster.members.push(memberOf("up"), memberOf("shaky", { state: "suspect" }), memberOf("down", { state: "dead" }));
  await using api = await start(cluster);
  await write(api, "test-node", "up", "shaky", "down", "unheard-of");
  const heard: string[] = [];
  const end = followRemovedNodes(
    api.store,
    (id) => heard.push(id),
    () => heard.push("self"),
  );
  for (const id of ["test-node", "up", "shaky"]) {
    const { status, body } = await api.ask("DELETE", `/nodes/${id}`);
    assert.deepEqual([status, body.code, body.node_id], [409, "node_alive", id]);
  }
  assert.equal((await api.ask("DELETE", "/nodes/nobody")).status, 404);
  assert.equal((await api.ask("DELETE", "/nodes/down?dry_run=true")).status, 200);
  assert.deepEqual([api.store.count("node"), cluster.forgotten], [5, []]);
  for (const id of ["down", "unheard-of"]) {
    assert.deepEqual((await api.ask("DELETE", `/nodes/${id}`)).body, { deleted: true, id });
    assert.equal((await api.ask("DELETE", `/nodes/${id}`)).status, 404);
  }
  assert.deepEqual(knownPeers(api.store), ["shaky.stored:7946", "up.stored:7946"]);
  assert.deepEqual(cluster.forgotten, ["down", "unheard-of"]);
  assert.deepEqual(heard, ["down", "unheard-of"]);
  // What another node wrote while this one was away.
  await api.store.write((tx) => void tx.delete("node", ["test-node"]));
  assert.deepEqual(heard, ["down", "unheard-of", "self"]);
  end();
  const [entry] = auditOf(api.store, { resource: "node", resource_id: "down" });
  assert.deepEqual([entry?.action, entry?.user_name], ["delete", "admin"]);
});

test("joining needs a key, addresses, and a word where data would be mixed", async () => {
  const cluster: FakeCluster = createFakeCluster();
  await using api = await start(cluster);
  const join = (json: object, path = "/cluster/join") => api.ask("POST", path, { json });
  cluster.isEnabled = false;
  const keyless = await join({ join: ["192.0.2.1:7946"] });
  assert.deepEqual([keyless.status, keyless.body.code], [409, "cluster_key_missing"]);
  cluster.isEnabled = true;
  for (const [wrong, pointer] of [
    [{}, "/join"],
    [{ join: [] }, "/join"],
    [{ join: ["192.0.2.1"] }, "/join/0"],
    [{ join: ["192.0.2.1:7946", "192.0.2.1:0"] }, "/join/1"],
    [{ join: ["192.0.2.300:7946"] }, "/join/0"],
    [{ join: ["node.example:7946"], merge: 1 }, "/merge"],
  ] as const) {
    const { status, body } = await join(wrong);
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer]);
  }
  assert.deepEqual(cluster.joined, []);
  const fresh = await join({ join: ["192.0.2.1:7946", "[2001:db8::1]:7946", "192.0.2.1:7946"] });
  assert.deepEqual([fresh.status, fresh.body], [200, { joined: 1, failures: [] }]);
  assert.deepEqual(cluster.joined, [["192.0.2.1:7946", "[2001:db8::1]:7946"]]);
  const [entry] = auditOf(api.store, { resource: "cluster" });
  assert.deepEqual([entry?.action, entry?.resource_name], ["join", "192.0.2.1:7946, [2001:db8::1]:7946"]);

  await api.ask("POST", "/zones", { json: { name: "corp.example." } });
  const held = await join({ join: ["192.0.2.1:7946"] });
  assert.deepEqual([held.status, held.body.code, held.body.holds], [409, "merge_needed", { zone: 1 }]);
  assert.match(held.body.detail, /holds 1 zone;/);
  assert.equal((await join({ join: ["192.0.2.1:7946"], merge: false })).status, 409);
  assert.equal((await join({ join: ["192.0.2.1:7946"], merge: true }, "/cluster/join?dry_run=true")).status, 200);
  assert.equal(cluster.joined.length, 1);
  assert.equal((await join({ join: ["192.0.2.1:7946"], merge: true })).status, 200);
  // Whose address it knows is of its own cluster already.
  cluster.members.push(memberOf("b", { state: "dead" }));
  await write(api, "b");
  assert.equal((await join({ join: ["b.stored:7946"] })).status, 200);

  cluster.joining = { joined: 0, failures: [{ address: "192.0.2.9:7946", detail: "connection refused" }] };
  const nobody = await join({ join: ["192.0.2.9:7946"], merge: true });
  assert.deepEqual(
    [nobody.status, nobody.body.code, nobody.body.failures],
    [502, "upstream_failed", cluster.joining.failures],
  );
  assert.equal(auditOf(api.store, { resource: "cluster" })[0]?.result, "failure");
});

test("consistency compares every node and zone, and tells who lags and who is silent", async () => {
  const cluster = createFakeCluster();
  await using api = await start(cluster);
  for (const name of ["a.example.", "b.example.", "c.example."]) await api.ask("POST", "/zones", { json: { name } });
  cluster.members.push(memberOf("two"), memberOf("off", { state: "dead" }), memberOf("mute", { lagMs: 900 }));
  await write(api, "off");
  const zone = (serial: number, digest: string) => ({ serial, digest, records: 2 });
  const zones = { "a.example.": zone(7, "aa"), "b.example.": zone(8, "bb") };
  const live = { lagMs: 4.9, skewMs: 2 };
  cluster.told = [
    {
      id: "test-node",
      digest: "root",
      zones: { ...zones, "c.example.": zone(9, "cc") },
      lagMs: undefined,
      skewMs: undefined,
    },
    { id: "two", digest: "other", zones: { ...zones, "b.example.": zone(8, "b2") }, ...live },
    { id: "mute", digest: undefined, zones: undefined, lagMs: undefined, skewMs: undefined },
  ];
  const { body } = await api.ask("GET", "/cluster/consistency", { as: "readonly" });
  assert.deepEqual(
    body.nodes.map((node: Record<string, unknown>) => [node.id, node.status, node.answered, node.agrees, node.lag_ms]),
    [
      ["mute", "alive", false, false, 900],
      ["off", "dead", false, false, 0],
      ["test-node", "alive", true, true, null],
      ["two", "alive", true, false, 5],
    ],
  );
  assert.deepEqual(
    [body.agrees, body.items.map((item: Record<string, unknown>) => item.agrees)],
    [false, [true, false, false]],
  );
  assert.deepEqual(body.items[2].nodes, [
    { id: "test-node", serial: 9, digest: "cc", records: 2 },
    { id: "two", serial: null, digest: null, records: null },
  ]);
  cluster.told = cluster.told.map((told) => ({ ...told, digest: "root", zones: {} }));
  assert.equal((await api.ask("GET", "/cluster/consistency")).body.agrees, true);
  const first = (await api.ask("GET", "/cluster/consistency?limit=2")).body;
  const rest = (await api.ask("GET", `/cluster/consistency?limit=2&cursor=${first.next_cursor}`)).body;
  assert.deepEqual(
    [...first.items, ...rest.items].map((item) => item.zone),
    ["a.example.", "b.example.", "c.example."],
  );
  assert.equal(rest.next_cursor, null);
  const one = (await api.ask("GET", "/cluster/consistency?zone=B.example")).body;
  assert.deepEqual([one.items.length, one.items[0].zone], [1, "b.example."]);
  assert.equal((await api.ask("GET", "/cluster/consistency?zone=a..b")).status, 400);
});

test("changes that are under way are no disagreement: what differs is asked for again, and what outlasts them counts", async () => {
  const cluster = createFakeCluster();
  await using api = await start(cluster);
  for (const name of ["busy.example.", "calm.example."]) await api.ask("POST", "/zones", { json: { name } });
  cluster.members.push(memberOf("two"));
  let asked = 0;
  /** Neither is ever found as the other is: the other has the busy zone as it was a moment before. */
  const standingOf = (id: string, behind: number, calm: string) => ({
    ...{ id, digest: `root ${asked - behind}`, lagMs: 0, skewMs: 0 },
    zones: {
      "busy.example.": { serial: asked - behind, digest: `${asked - behind}`, records: 1 },
      "calm.example.": { serial: 1, digest: calm, records: 1 },
    },
  });
  let calmOfTwo = "calm";
  const moving: FakeCluster = Object.assign(cluster, {
    standings: async () => {
      asked++;
      return [standingOf("test-node", 0, "calm"), standingOf("two", 1, calmOfTwo)];
    },
  });
  const ask = async () => {
    asked = 0;
    const { agrees, nodes, items } = (await api.ask("GET", "/cluster/consistency")).body;
    return [agrees, ...[...nodes, ...items].map((each) => each.agrees)];
  };
  moving.settled.add("two");
  assert.deepEqual(await ask(), [true, true, true, true, true]);
  assert.ok(asked > 1);
  calmOfTwo = "not the same";
  assert.deepEqual(await ask(), [true, true, true, true, false]);
  moving.settled.clear();
  assert.deepEqual(await ask(), [false, true, false, true, false]);
});

test("with another node alive a zone is pending, and a PUT that changes nothing announces it again", async () => {
  const cluster = createFakeCluster();
  cluster.members.push(memberOf("two"));
  await using api = await start(cluster);
  const { body } = await api.ask("POST", "/zones", { json: { name: "corp.example." } });
  assert.equal(body.status, "pending");
  const put = (json: object, query = "") => api.ask("PUT", `/zones/${body.id}${query}`, { json });
  assert.equal((await put({ default_ttl: 60 })).body.status, "pending");
  assert.equal((await put({}, "?dry_run=true")).status, 200);
  assert.deepEqual(cluster.announced, []);
  assert.equal((await put({ default_ttl: 60 })).body.status, "pending");
  assert.deepEqual(cluster.announced, ["corp.example."]);
  await api.store.write((tx) => tx.setState("corp.example.", "active"));
  assert.equal((await put({})).body.status, "active");
  assert.equal(cluster.announced.length, 1);
});

test("a record that lost its name to another node's says which one hides it, and is back when that goes", async () => {
  await using api = await startApi((context) => [
    ...zoneRoutes(context, createFakeCluster()),
    ...recordRoutes(context),
  ]);
  await using other = await temporaryStore({ nodeId: "other" });
  const zone = (await api.ask("POST", "/zones", { json: { name: "corp.example." } })).body.id;
  const exchange = async () => {
    const mine = api.nodeStore.rawItems({ limit: 100 }).items;
    await api.nodeStore.applyRemote(other.store.rawItems({ limit: 100 }).items);
    await other.store.applyRemote(mine);
  };
  await exchange();
  const address = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
  const alias = { name: "www", type: "CNAME" as const, values: [{ value: "elsewhere.example." }] };
  const { id } = (await api.ask("POST", `/zones/${zone}/records`, { json: address })).body;
  const rival = (await createRecord(other.context, testCaller(), zone, alias)).stored.body.id;
  await exchange();
  const shownOf = async (path: string) => (await api.ask("GET", path, { as: "readonly" })).body;
  const both = [await shownOf(`/records/${id}`), await shownOf(`/records/${rival}`)];
  const [hidden, inEffect] = both.sort((one) => (one.shadowed_by === undefined ? 1 : -1));
  assert.deepEqual([hidden.shadowed_by, inEffect.shadowed_by], [inEffect.id, undefined]);
  const { items } = await shownOf(`/zones/${zone}/records`);
  assert.deepEqual(items.map((item: Record<string, unknown>) => item.shadowed_by).filter(Boolean), [inEffect.id]);
  // What was read goes back as it was.
  assert.equal(
    (await api.ask("PUT", `/records/${hidden.id}`, { json: { ...hidden, shadowed_by: "rec_x" } })).status,
    400,
  );
  assert.equal((await api.ask("DELETE", `/records/${inEffect.id}`)).status, 200);
  assert.equal((await shownOf(`/records/${hidden.id}`)).shadowed_by, undefined);
});

test("edits that lost unseen are listed with both bodies and who made them, and put back by one call", async () => {
  const clock = { aheadMs: 0 };
  await using api = await startApi((context) => [
    ...zoneRoutes(context, createFakeCluster()),
    ...recordRoutes(context),
    ...conflictRoutes({
      ...context,
      areScriptsEnabled: false,
      isOwnSocket: () => false,
      peers: createFakeCluster(),
    }),
  ]);
  await using other = await temporaryStore({ nodeId: "other", now: () => Date.now() + clock.aheadMs });
  const zone = (await api.ask("POST", "/zones", { json: { name: "corp.example." } })).body.id;
  const named = (name: string, value: string) => ({ name, type: "A" as const, values: [{ value }] });
  const create = (json: object) => api.ask("POST", `/zones/${zone}/records`, { as: "editor", json });
  await other.store.applyRemote(api.nodeStore.rawItems({ limit: 100 }).items);
  for (const name of ["www", "db", "mail"]) await create(named(name, "192.0.2.1"));
  // Made later and without a sight of the others.
  clock.aheadMs = 2_000;
  for (const name of ["www", "db", "mail"]) {
    await createRecord(other.context, testCaller(), zone, named(name, "192.0.2.2"));
  }
  await api.nodeStore.applyRemote(other.store.rawItems({ limit: 100 }).items);
  const list = async (query = "") => (await api.ask("GET", `/conflicts${query}`, { as: "editor" })).body;
  const { items, next_cursor } = await list();
  assert.deepEqual([items.length, next_cursor], [3, null]);
  assert.deepEqual(
    items.map((item: Record<string, unknown>) => [item.kind, Object(item.key)[1], item.reason, item.node_id]),
    ["db", "mail", "www"].map((name) => ["record", name, "replaced", "test-node"]),
  );
  const [, mail, www] = items;
  assert.deepEqual([www.user_name, www.reapplicable, www.body.values], ["editor", true, [{ value: "192.0.2.1" }]]);
  assert.deepEqual(www.present.values, [{ value: "192.0.2.2" }]);

  assert.deepEqual((await list("?kind=zone")).items, []);
  assert.deepEqual((await list("?zone=elsewhere.example")).items, []);
  assert.equal((await list("?zone=corp.example&kind=record")).items.length, 3);
  assert.equal((await api.ask("GET", "/conflicts?kind=city")).status, 400);
  assert.equal((await api.ask("GET", "/conflicts?cursor=%2B%2B")).status, 400);
  const first = await list("?limit=2");
  const rest = await list(`?limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual([...first.items, ...rest.items], items);
  assert.equal(rest.next_cursor, null);

  const path = `/conflicts/${www.id}`;
  assert.deepEqual((await api.ask("GET", path, { as: "editor" })).body, www);
  assert.equal((await api.ask("GET", path, { as: "readonly" })).status, 403);
  assert.equal((await api.ask("GET", "/conflicts/AAAA")).status, 404);
  const value = async () => (await api.ask("GET", `/zones/${zone}/records?name=www`)).body.items[0].values[0].value;
  assert.equal((await api.ask("POST", `${path}/reapply?dry_run=true`)).status, 200);
  assert.equal(await value(), "192.0.2.2");
  const again = await api.ask("POST", `${path}/reapply`, { as: "editor" });
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(again.body.present.values, [{ value: "192.0.2.1" }]);
  assert.equal(await value(), "192.0.2.1");
  assert.match(auditOf(api.store, { resource: "record" })[0]?.detail ?? "", /from the conflict/);
  // The rules of what it writes hold: a record that was protected meanwhile stays.
  const kept = (await api.ask("GET", `/zones/${zone}/records?name=mail`)).body.items[0];
  await api.ask("PUT", `/records/${kept.id}`, { json: { protected: true } });
  const refused = await api.ask("POST", `/conflicts/${mail.id}/reapply`);
  assert.deepEqual([refused.status, refused.body.code], [409, "record_protected"]);
});
