/** What a cluster is while its network loses datagrams, loses everything now and then, or is cut in two, and afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { waitFor } from "../support/wait.ts";
import { addressesOf, type ClusterNode, isReady, statusesOf, untilAgreed, untilAnswers } from "./cluster-world.ts";
import { openSplitNetwork, type SplitNetwork } from "./split-network.ts";

const record = (name: string, value: string) => ({ name, type: "A", ttl: 60, values: [{ value }] });
const ALIVE = { a: "alive", b: "alive", c: "alive" };

type World = {
  readonly network: SplitNetwork;
  readonly a: ClusterNode;
  readonly b: ClusterNode;
  readonly c: ClusterNode;
  readonly atA: ApiClient;
  readonly atB: ApiClient;
  readonly atC: ApiClient;
  readonly zone: string;
};

async function untilStatuses(api: ApiClient, wanted: Readonly<Record<string, string>>): Promise<void> {
  const text = JSON.stringify(wanted);
  await waitFor(`nodes are ${text}`, 30_000, async () => JSON.stringify(await statusesOf(api)) === text);
}

/** Time as the membership has it: each node has probed the others so often. */
async function untilProbed(nodes: readonly ClusterNode[], times: number): Promise<void> {
  const series = "svc_cluster_probes_total";
  const before = await Promise.all(nodes.map((node) => figure(node, series)));
  for (const [index, node] of nodes.entries()) {
    const wanted = (before[index] ?? 0) + times;
    await waitFor(`${times} probes`, 30_000, async () => (await figure(node, series)) >= wanted, 50);
  }
}

const deaths = (nodes: readonly ClusterNode[]) =>
  nodes.flatMap((node) => node.messages().filter((line) => line.endsWith(" is unreachable")));

async function change(api: ApiClient, id: string, value: string): Promise<void> {
  const { status, body } = await api.ask("PUT", `/records/${id}`, { values: [{ value }] });
  assert.equal(status, 200, JSON.stringify(body));
}

async function withoutDatagrams({ network, a, b, c, atA, zone }: World): Promise<void> {
  await network.loseUdp();
  await untilProbed([a, b, c], 10);
  await create(atA, `/zones/${zone}/records`, record("tcp", "192.0.2.1"));
  for (const node of network.nodes) await untilAnswers(node, "tcp.corp.test", ["192.0.2.1"]);
  assert.deepEqual(deaths(network.nodes), []);
  assert.deepEqual(await statusesOf(atA), ALIVE);
}

async function withLoss({ network, atA, atB, atC, zone, a }: World): Promise<void> {
  await network.lose(0.3);
  const names = Array.from({ length: 12 }, (_, index) => `lossy${index}`);
  for (const [index, name] of names.entries()) {
    await create([atA, atB, atC][index % 3] ?? atA, `/zones/${zone}/records`, record(name, "192.0.2.30"));
  }
  for (const name of names) {
    for (const node of network.nodes) await untilAnswers(node, `${name}.corp.test`, ["192.0.2.30"]);
  }
  await untilStatuses(atA, ALIVE);
  const { passed, lost } = network.figures();
  assert.ok(lost > 0 && passed > lost, `${passed} packets passed, ${lost} were lost`);
  await network.heal();
  await untilAgreed(a);
}

async function conflictOf(api: ApiClient, name: string) {
  const { body } = await api.ask("GET", "/conflicts?kind=record");
  return body.items.find((item: { key: readonly string[] }) => item.key[1] === name);
}

async function splitAndHealed({ network, a, b, c, atA, atB, atC, zone }: World): Promise<void> {
  const shared = await create(atA, `/zones/${zone}/records`, record("shared", "192.0.2.1"));
  const doomed = await create(atA, "/zones", { name: "doomed.test." });
  const inDoomed = await create(atA, `/zones/${doomed}/records`, record("www", "192.0.2.1"));
  for (const node of network.nodes) {
    for (const name of ["shared.corp.test", "www.doomed.test"]) await untilAnswers(node, name, ["192.0.2.1"]);
  }
  await network.split([[0, 1], [2]]);
  await untilStatuses(atA, { a: "alive", b: "alive", c: "dead" });
  await untilStatuses(atC, { a: "dead", b: "dead", c: "alive" });

  // Who is alone goes on: it answers, it is ready, it takes writes, and what it makes is active at once.
  assert.deepEqual(await addressesOf(c, "shared.corp.test"), ["192.0.2.1"]);
  assert.ok(await isReady(c));
  const island = await create(atC, "/zones", { name: "island.test." });
  assert.equal((await atC.ask("GET", `/zones/${island}`)).body.status, "active");

  await change(atA, shared, "192.0.2.10");
  await create(atA, `/zones/${zone}/records`, record("both", "192.0.2.11"));
  assert.equal((await atB.ask("DELETE", `/zones/${doomed}`)).status, 200);
  await untilAnswers(b, "shared.corp.test", ["192.0.2.10"]);
  // The later edits, by the clock, which is one.
  await change(atC, shared, "192.0.2.20");
  await create(atC, `/zones/${zone}/records`, record("both", "192.0.2.21"));
  await change(atC, inDoomed, "192.0.2.22");
  assert.deepEqual(await addressesOf(a, "shared.corp.test"), ["192.0.2.10"]);

  await network.heal();
  await untilStatuses(atA, ALIVE);
  await untilStatuses(atC, ALIVE);
  for (const node of network.nodes) {
    await untilAnswers(node, "shared.corp.test", ["192.0.2.20"]);
    await untilAnswers(node, "both.corp.test", ["192.0.2.21"]);
    await waitFor("a zone deleted on one side is gone", 10_000, async () => {
      return (await addressesOf(node, "www.doomed.test")) === undefined;
    });
  }
  for (const node of network.nodes) await untilAgreed(node);

  // Losers are where they were seen to lose, and one call makes one the latest everywhere.
  const lost = await waitFor("the edit that lost is in the journal", 10_000, () => conflictOf(atA, "shared"));
  assert.equal(lost.node_id, "a");
  assert.equal(lost.user_name, "admin");
  assert.deepEqual(lost.body.values, [{ value: "192.0.2.10" }]);
  assert.deepEqual(lost.present.values, [{ value: "192.0.2.20" }]);
  assert.deepEqual((await waitFor("so is the create", 10_000, () => conflictOf(atA, "both"))).body.values, [
    { value: "192.0.2.11" },
  ]);
  assert.equal((await waitFor("and the edit", 10_000, () => conflictOf(atC, "www"))).reason, "zone-deleted");
  const { status, body } = await atA.ask("POST", `/conflicts/${lost.id}/reapply`);
  assert.equal(status, 200, JSON.stringify(body));
  for (const node of network.nodes) await untilAnswers(node, "shared.corp.test", ["192.0.2.10"]);
  for (const node of network.nodes) await untilAgreed(node);
}

test("a network that loses datagrams, that loses packets, and that is cut in two", async (t) => {
  await using network = await openSplitNetwork(t, 3);
  if (network === undefined) return;
  const [a, b, c] = network.nodes;
  assert.ok(a && b && c);
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  await using atC = await signIn(c.api);
  const zone = await create(atA, "/zones", { name: "corp.test." });
  const world: World = { network, a, b, c, atA, atB, atC, zone };
  await t.test("without UDP nobody dies, and what is written arrives", () => withoutDatagrams(world));
  await t.test("with 30 % of all packets lost everything arrives", () => withLoss(world));
  await t.test("both sides of a split take writes, and are one again when it heals", () => splitAndHealed(world));
});
