/** A new zone where a node that is alive does not acknowledge it: its TCP is cut, and the datagrams of the membership pass. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type ClusterNode, statusesOf, untilAgreed } from "./cluster-world.ts";
import { openSplitNetwork, type SplitNetwork } from "./split-network.ts";

const isLong = (process.env.SIGNPOST_LONG ?? "") !== "";
const ALIVE = { a: "alive", b: "alive", c: "alive" };
const SOA = 6;
const NOERROR = 0;
const REFUSED = 5;
/** What a zone waits at most, less what its own create takes. */
const WAITS_MS = 59_000;

type World = {
  readonly network: SplitNetwork;
  readonly nodes: readonly [ClusterNode, ClusterNode, ClusterNode];
  readonly atA: ApiClient;
  readonly atB: ApiClient;
};

async function rcodesOf(nodes: readonly ClusterNode[], name: string): Promise<readonly (number | undefined)[]> {
  return await Promise.all(
    nodes.map(async ({ dns: [server] }) => {
      assert.ok(server);
      const response = await exchangeUdp(server, encodeQuery({ name, type: SOA }), 5_000);
      return response && decodeMessage(response).rcode;
    }),
  );
}

const statusOf = async (api: ApiClient, zone: string) => (await api.ask("GET", `/zones/${zone}`)).body.status;
const received = (node: ClusterNode) => figure(node, "svc_replication_items_received_total");

/** Made at a while nothing reaches c over TCP; b has it then. */
async function makeUnacknowledged({ network, nodes: [, b], atA, atB }: World, name: string): Promise<string> {
  await network.loseTcp(2);
  const zone = await create(atA, "/zones", { name: `${name}.` });
  await waitFor("b has it", 30_000, async () => (await statusOf(atB, zone)) !== undefined);
  assert.deepEqual(await statusesOf(atA), ALIVE, b.child.output());
  return zone;
}

async function assertPending({ nodes, atA, atB }: World, zone: string, name: string): Promise<void> {
  assert.deepEqual([await statusOf(atA, zone), await statusOf(atB, zone)], ["pending", "pending"]);
  assert.deepEqual(await rcodesOf(nodes, name), [REFUSED, REFUSED, REFUSED], "to DNS it does not exist");
}

async function untilActive({ nodes, atA }: World, zone: string, name: string): Promise<void> {
  await waitFor("it is active", 90_000, async () => (await statusOf(atA, zone)) === "active");
  await waitFor(
    "all answer",
    60_000,
    async () => (await rcodesOf(nodes, name)).every((rcode) => rcode === NOERROR),
    50,
  );
}

/** Whichever node did it: two may do so at once. */
async function reasonOf(api: ApiClient, zone: string): Promise<string> {
  return await waitFor("the audit log says why", 30_000, async () => {
    const { body } = await api.ask("GET", "/audit?resource=zone&action=activate");
    return body.items.find(({ resource_id }: { resource_id: string }) => resource_id === zone)?.detail;
  });
}

const warnings = ({ messages }: ClusterNode, name: string) =>
  messages().filter((line) => line.startsWith(`the zone ${name}. is active though`));

async function acknowledgedLater(world: World): Promise<void> {
  const { network, nodes, atA, atB } = world;
  const [a, b] = nodes;
  const zone = await makeUnacknowledged(world, "later.test");
  await assertPending(world, zone, "later.test");
  assert.equal(await figure(a, "svc_cluster_zones_pending"), 1);

  // A PUT that changes nothing tells the others again, whichever node takes it, and is no change.
  const { body } = await atA.ask("GET", `/zones/${zone}`);
  for (const [from, to] of [
    [atA, b],
    [atB, a],
  ] as const) {
    const before = await received(to);
    const put = await from.ask("PUT", `/zones/${zone}`, { default_ttl: body.default_ttl });
    assert.deepEqual([put.status, put.body], [200, { ...body, warnings: put.body.warnings }]);
    await waitFor("it is told again", 30_000, async () => (await received(to)) > before, 50);
  }
  await assertPending(world, zone, "later.test");

  await network.heal();
  await untilActive(world, zone, "later.test");
  assert.equal(await reasonOf(atA, zone), "acknowledged by all nodes that are alive");
  assert.deepEqual(
    nodes.flatMap((node) => warnings(node, "later.test")),
    [],
  );
  await untilAgreed(a);
}

async function neverAcknowledged(world: World): Promise<void> {
  const { network, nodes, atA } = world;
  const [a, b, c] = nodes;
  const sinceMs = performance.now();
  const zone = await makeUnacknowledged(world, "never.test");
  await assertPending(world, zone, "never.test");
  await waitFor("it is active", 90_000, async () => (await statusOf(atA, zone)) === "active", 100);
  assert.ok(performance.now() - sinceMs >= WAITS_MS);
  assert.deepEqual(await statusesOf(atA), ALIVE);
  await waitFor("both answer", 30_000, async () => {
    return (await rcodesOf([a, b], "never.test")).every((rcode) => rcode === NOERROR);
  });
  assert.deepEqual(await rcodesOf([c], "never.test"), [REFUSED]);
  assert.deepEqual(
    [a, b].map((node) => warnings(node, "never.test").length),
    [1, 0],
  );
  assert.equal(await reasonOf(atA, zone), "not acknowledged by all nodes that are alive in time");
  await network.heal();
  await untilActive(world, zone, "never.test");
  await untilAgreed(c);
}

test("a zone that a node which is alive does not acknowledge waits for it, for a minute at most", async (t) => {
  await using network = await openSplitNetwork(t, 3);
  if (network === undefined) return;
  const [a, b, c] = network.nodes;
  assert.ok(a && b && c);
  await using atA = await signIn(a.api);
  await using atB = await signIn(b.api);
  const world: World = { network, nodes: [a, b, c], atA, atB };
  await t.test("it is pending and unknown to DNS, also after a PUT, and active once all have it", () =>
    acknowledgedLater(world),
  );
  // It takes the minute.
  if (isLong) await t.test("after a minute it is active without, with a warning", () => neverAcknowledged(world));
});
