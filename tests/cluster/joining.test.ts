/** How clusters are formed: fresh nodes, nodes with data of their own, other keys, and ids and addresses that are taken. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { startNode } from "../scenarios/running-node.ts";
import { waitFor } from "../support/wait.ts";
import {
  type ClusterNode,
  type ClusterNodeSetup,
  startClusterNode,
  statusesOf,
  untilAgreed,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-joining-"));
after(() => rm(parent, { recursive: true, force: true }));
const at = (id: string) => join(parent, id);
const start = (setup: ClusterNodeSetup) => startClusterNode({ directory: at(setup.id), ...setup });
const www = (value: string) => ({ name: "www", type: "A", values: [{ value }] });
const UNREACHED = "127.0.0.1:9";

async function zoneWith(api: ApiClient, name: string, value: string): Promise<string> {
  const zone = await create(api, "/zones", { name });
  await create(api, `/zones/${zone}/records`, www(value));
  return zone;
}

async function untilStatuses(api: ApiClient, wanted: Readonly<Record<string, string>>): Promise<void> {
  const text = JSON.stringify(wanted);
  await waitFor(`nodes are ${text}`, 20_000, async () => JSON.stringify(await statusesOf(api)) === text);
}

/** Waits for a start that is refused, and gives what the process said. */
async function refused(setup: ClusterNodeSetup): Promise<string> {
  let said = "";
  await assert.rejects(start(setup), (error: Error) => {
    said = error.message;
    return true;
  });
  return said;
}

test("a node alone becomes the first of a cluster, and a fresh one takes its data and its admin", async () => {
  {
    await using alone = await startNode({ zones: [], directory: at("a") });
    await using api = await signIn(alone.api);
    await zoneWith(api, "old.test.", "192.0.2.1");
    const { status, body } = await api.ask("POST", "/cluster/join", { join: [UNREACHED] });
    assert.deepEqual([status, body.code], [409, "cluster_key_missing"]);
    await alone.child.stop();
  }
  await using a = await start({ id: "a" });
  await untilAnswers(a, "www.old.test", ["192.0.2.1"]);
  await using atA = await signIn(a.api);
  assert.deepEqual(await statusesOf(atA), { a: "alive" });
  assert.equal((await a.get("/readyz")).status, 200);

  await using b = await start({ id: "b", join: [a.peers] });
  assert.ok(!b.child.output().includes("admin password"), "it has no admin of its own");
  await untilReady(b);
  await untilAnswers(b, "www.old.test", ["192.0.2.1"]);
  {
    await using atB = await signIn(b.api);
    assert.deepEqual(await statusesOf(atB), { a: "alive", b: "alive" });
    const { body } = await atB.ask("GET", "/users");
    assert.deepEqual(
      body.items.map(({ username }: { username: string }) => username),
      ["admin"],
    );
  }
  await untilAgreed(b);

  // Another key than the one that its secrets are sealed by.
  await b.child.stop();
  const said = await refused({ id: "b", join: [a.peers], key: "another key than that of the cluster" });
  assert.match(said, /encrypt_key/);
  assert.ok(!said.includes("another key than that of the cluster"));

  // It changed nothing: with the right key the node is itself again, at another port.
  await using again = await start({ id: "b", join: [a.peers] });
  await untilReady(again);
  await untilStatuses(atA, { a: "alive", b: "alive" });
  await waitFor("its new address is known", 20_000, async () => {
    const { body } = await atA.ask("GET", "/nodes");
    return body.items[1].address === again.peers;
  });
  await untilAgreed(a);
});

test("nodes with data of their own are put together at runtime, where that is what is wanted", async () => {
  await using one = await start({ id: "one" });
  await using two = await start({ id: "two" });
  await using atOne = await signIn(one.api);
  await using atTwo = await signIn(two.api);
  // A node that holds nothing but the admin of its first start asks for no permission.
  await zoneWith(atOne, "one.test.", "192.0.2.1");
  await zoneWith(atTwo, "two.test.", "192.0.2.2");
  const alone = await atTwo.ask("POST", "/cluster/join", { join: [one.peers] });
  assert.deepEqual([alone.status, alone.body.code], [409, "merge_needed"]);
  assert.deepEqual(await statusesOf(atTwo), { two: "alive" });
  const joined = await atTwo.ask("POST", "/cluster/join", { join: [one.peers], merge: true });
  assert.deepEqual([joined.status, joined.body], [200, { joined: 1, failures: [] }]);
  for (const node of [one, two]) {
    await untilAnswers(node, "www.one.test", ["192.0.2.1"]);
    await untilAnswers(node, "www.two.test", ["192.0.2.2"]);
    await untilReady(node);
  }
  await untilAgreed(one);
  await using fresh = await start({ id: "three" });
  await using atFresh = await signIn(fresh.api);
  const simple = await atFresh.ask("POST", "/cluster/join", { join: [UNREACHED, one.peers] });
  assert.equal(simple.status, 200, JSON.stringify(simple.body));
  assert.equal(simple.body.joined, 1);
  assert.equal(simple.body.failures[0].address, UNREACHED);
  await untilReady(fresh);
  await untilAnswers(fresh, "www.two.test", ["192.0.2.2"]);
  for (const node of [one, two, fresh]) await untilAgreed(node);
});

const linesWith = ({ messages }: ClusterNode, words: string) => messages().filter((line) => line.includes(words));

test("with another key nodes never meet, and each says why", async () => {
  await using a = await start({ id: "left" });
  await using b = await start({ id: "right", key: "another key than that of the cluster", join: [a.peers] });
  await waitFor("the one that is dialled says so", 20_000, () => linesWith(a, "replication.encrypt_key").length > 0);
  await waitFor("so does the one that dials", 20_000, () => linesWith(b, "replication.encrypt_key").length > 0);
  const dropped = 'svc_cluster_messages_dropped_total{reason="sealed"}';
  // It is tried again and again, and said once.
  await waitFor("further attempts", 20_000, async () => (await figure(a, dropped)) >= 3, 50);
  for (const node of [a, b]) {
    assert.equal(linesWith(node, "replication.encrypt_key").length, 1, node.messages().join("\n"));
    assert.ok(!node.child.output().includes("key that all nodes"), "no key is in the log");
    assert.ok(!node.child.output().includes("another key than"));
  }
  assert.equal((await b.get("/readyz")).status, 503, "it waits for its first sync");
  await using atA = await signIn(a.api);
  assert.deepEqual(await statusesOf(atA), { left: "alive" });
  const { status, body } = await atA.ask("POST", "/cluster/join", { join: [b.peers] });
  assert.equal(status, 502, JSON.stringify(body));
  assert.match(JSON.stringify(body.failures), /replication\.encrypt_key/);
});

test("an id that is taken is refused; a node may have another id, and its former one is removed", async () => {
  await using a = await start({ id: "first" });
  await using b = await start({ id: "twin", join: [a.peers] });
  await untilReady(b);
  await using atA = await signIn(a.api);
  await untilStatuses(atA, { first: "alive", twin: "alive" });
  {
    await using twin = await startClusterNode({ id: "twin", directory: at("twin-2"), join: [a.peers] });
    for (const [node, words] of [
      [a, "twin is refused"],
      [twin, "the name of this node, twin, is also that of a member"],
    ] as const) {
      await waitFor(`${node.id} says that the id is taken`, 20_000, () => linesWith(node, words).length > 0);
    }
    assert.equal((await twin.get("/readyz")).status, 503);
    await untilStatuses(atA, { first: "alive", twin: "alive" });
    const { body } = await atA.ask("GET", "/nodes");
    assert.equal(body.items.find(({ id }: { id: string }) => id === "twin").address, b.peers);
  }
  await b.child.stop();
  await untilStatuses(atA, { first: "alive", twin: "left" });
  await using renamed = await startClusterNode({ id: "renamed", directory: b.directory, join: [a.peers] });
  await untilReady(renamed);
  await untilStatuses(atA, { first: "alive", renamed: "alive", twin: "left" });
  assert.equal((await atA.ask("DELETE", "/nodes/twin")).status, 200);
  for (const node of [a, renamed]) {
    await using api = await signIn(node.api);
    await untilStatuses(api, { first: "alive", renamed: "alive" });
  }
  await using atRenamed = await signIn(renamed.api);
  await zoneWith(atRenamed, "renamed.test.", "192.0.2.5");
  await untilAnswers(a, "www.renamed.test", ["192.0.2.5"]);
  await untilAgreed(a);
});
