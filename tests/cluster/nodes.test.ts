/** A cluster as its users see it: written here, answered there, and what becomes of nodes that come, go and die. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { signIn } from "../scenarios/api-client.ts";
import { create } from "../scenarios/notify-world.ts";
import { waitFor } from "../support/wait.ts";
import {
  addressesOf,
  startCluster,
  startClusterNode,
  statusesOf,
  untilAgreed,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";

const address = (value: string) => ({ name: "www", type: "A", ttl: 60, values: [{ value }] });

test("what is written at one node is answered by all, in both directions, and all agree", async () => {
  await using cluster = await startCluster(3);
  const [a, b, c] = cluster.nodes;
  assert.ok(b && c);
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  await using atC = await signIn(c.api);
  const zone = await create(atA, "/zones", { name: "corp.test." });
  await waitFor(
    "the zone is active",
    10_000,
    async () => (await atC.ask("GET", `/zones/${zone}`)).body.status === "active",
  );
  const record = await create(atB, `/zones/${zone}/records`, address("192.0.2.1"));
  for (const node of cluster.nodes) await untilAnswers(node, "www.corp.test", ["192.0.2.1"]);
  const changed = await atC.ask("PUT", `/records/${record}`, { values: [{ value: "192.0.2.2" }] });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  for (const node of cluster.nodes) await untilAnswers(node, "www.corp.test", ["192.0.2.2"]);
  assert.equal((await atA.ask("DELETE", `/records/${record}`)).status, 200);
  for (const node of cluster.nodes) {
    await waitFor("NXDOMAIN", 10_000, async () => (await addressesOf(node, "www.corp.test")) === undefined);
  }
  await untilAgreed(a);
  // A session that began at one node holds at the others, and every node shows what was done at any.
  const done = async () => {
    const { body } = await atB.ask("GET", "/audit?resource=record&limit=10");
    return body.items.map(({ action, node_id }: { action: string; node_id: string }) => `${action} ${node_id}`);
  };
  const wanted = ["delete a", "update c", "create b"];
  await waitFor("the audit log of all", 30_000, async () => JSON.stringify(await done()) === JSON.stringify(wanted));
});

test("a node that is killed is dead to the others within seconds, and is itself again after a restart", async () => {
  await using cluster = await startCluster(3);
  const [a, b, c] = cluster.nodes;
  assert.ok(b && c);
  await using api = await signIn(a.api);
  const zone = await create(api, "/zones", { name: "corp.test." });
  process.kill(c.child.pid, "SIGKILL");
  await c.child.exited;
  await waitFor("it is dead", 20_000, async () => (await statusesOf(api)).c === "dead");
  await create(api, `/zones/${zone}/records`, address("192.0.2.9"));
  await using again = await startClusterNode({ id: "c", join: [a.peers], directory: c.directory });
  await untilReady(again);
  await untilAnswers(again, "www.corp.test", ["192.0.2.9"]);
  await waitFor("it is alive", 20_000, async () => (await statusesOf(api)).c === "alive");
  await untilAgreed(b);
});

test("a node that stops has left; it can be removed then, and not before", async () => {
  await using cluster = await startCluster(2);
  const [a, b] = cluster.nodes;
  assert.ok(b);
  await using api = await signIn(a.api);
  assert.equal((await api.ask("DELETE", "/nodes/b")).status, 409);
  assert.equal((await api.ask("DELETE", "/nodes/a")).status, 409);
  await b.child.stop();
  await waitFor("it has left", 20_000, async () => (await statusesOf(api)).b === "left");
  assert.equal((await api.ask("DELETE", "/nodes/b")).status, 200);
  assert.deepEqual(await statusesOf(api), { a: "alive" });
  await using again = await startClusterNode({ id: "b", join: [a.peers], directory: b.directory });
  await untilReady(again);
  assert.deepEqual(await statusesOf(api), { a: "alive", b: "alive" });
});
