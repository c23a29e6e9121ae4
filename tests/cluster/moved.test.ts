/** Nodes that start again elsewhere, with the data that they had: they are the nodes that they were. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { waitFor } from "../support/wait.ts";
import {
  type ClusterNode,
  type ClusterNodeSetup,
  kill,
  startAgain,
  startCluster,
  statusesOf,
  threeOf,
  untilAgreed,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";

const address = (name: string, value: string) => ({ name, type: "A", ttl: 60, values: [{ value }] });
const ALIVE = { a: "alive", b: "alive", c: "alive" };

/** Addresses that no other test has, so that nobody takes a port while a node is away. */
const NETWORK = `127.${randomInt(1, 255)}.${randomInt(255)}`;
const FIRST = `${NETWORK}.1:0`;

/** Rounds of probes in which nobody is suspected any more. */
const PROBES = 5;

type Row = { readonly id: string; readonly address: string; readonly status: string };

async function untilKnownAt(api: ApiClient, { id, peers }: ClusterNode): Promise<void> {
  let rows: readonly Row[] = [];
  const isThere = async () => {
    rows = (await api.ask("GET", "/nodes")).body.items;
    const [row, ...others] = rows.filter((one) => one.id === id);
    return others.length === 0 && row?.address === peers && row.status === "alive";
  };
  await waitFor(`${id} is at ${peers}`, 60_000, isThere, 50).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${JSON.stringify(rows)}`);
  });
}

const suspicionsOf = async (nodes: readonly ClusterNode[]) =>
  (await Promise.all(nodes.map((node) => figure(node, "svc_cluster_suspicions_total")))).join(" ");

async function untilProbed(nodes: readonly ClusterNode[]): Promise<void> {
  for (const node of nodes) {
    const wanted = (await figure(node, "svc_cluster_probes_total")) + PROBES;
    await waitFor("probes", 60_000, async () => (await figure(node, "svc_cluster_probes_total")) >= wanted, 50);
  }
}

/** A machine with other work holds up a process now and then: among some rounds one is quiet. */
async function untilQuiet(nodes: readonly ClusterNode[]): Promise<void> {
  await waitFor("nobody is suspected", 60_000, async () => {
    const before = await suspicionsOf(nodes);
    await untilProbed(nodes);
    return (await suspicionsOf(nodes)) === before;
  });
}

/** Elsewhere for peers and for DNS, and told of nobody: it knows whom it knew. */
function startElsewhere(node: ClusterNode, host: string): Promise<ClusterNode> {
  const setup: Partial<ClusterNodeSetup> = { listen: `${host}:0`, env: { SVC_REPLICATION_LISTEN: `${host}:0` } };
  return startAgain(node, setup);
}

test("a node that starts again at other addresses is the one that it was, whether it had said good-bye or not", async () => {
  await using cluster = await startCluster(3, { SVC_REPLICATION_LISTEN: FIRST }, { listen: FIRST });
  const [a, b, c] = threeOf(cluster);
  await using atA = await signIn(a.api);
  const zone = await create(atA, "/zones", { name: "corp.test." });
  await create(atA, `/zones/${zone}/records`, address("before", "192.0.2.1"));
  for (const node of cluster.nodes) await untilAnswers(node, "before.corp.test", ["192.0.2.1"]);

  let last = c;
  await using stack = new AsyncDisposableStack();
  for (const [how, host] of [
    ["stopped", `${NETWORK}.2`],
    ["killed", `${NETWORK}.3`],
  ] as const) {
    if (how === "stopped") assert.deepEqual(await last.child.stop(), { code: 0, signal: null });
    else await kill(last);
    await create(atA, `/zones/${zone}/records`, address(`away-${host.at(-1)}`, "192.0.2.2"));
    const again = stack.use(await startElsewhere(last, host));
    assert.notEqual(again.peers, last.peers);
    await untilReady(again);
    last = again;
    const nodes = [a, b, again];
    for (const node of nodes) {
      await using api = await signIn(node.api);
      await untilKnownAt(api, again);
      assert.deepEqual(await statusesOf(api), ALIVE);
    }
    // What it missed has come, what it writes arrives, and so does what is written to it.
    await untilAnswers(again, `away-${host.at(-1)}.corp.test`, ["192.0.2.2"]);
    await using atAgain = await signIn(again.api);
    await create(atAgain, `/zones/${zone}/records`, address(`from-${host.at(-1)}`, "192.0.2.3"));
    await create(atA, `/zones/${zone}/records`, address(`to-${host.at(-1)}`, "192.0.2.4"));
    for (const node of nodes) {
      await untilAnswers(node, `from-${host.at(-1)}.corp.test`, ["192.0.2.3"]);
      await untilAnswers(node, `to-${host.at(-1)}.corp.test`, ["192.0.2.4"]);
    }
    await untilQuiet(nodes);
    for (const node of nodes) await untilAgreed(node);
    assert.equal(await figure(a, 'svc_cluster_members{state="alive"}'), 3);
  }

  // Each where the other one was, as where a machine's address is given to the next one.
  await Promise.all([b, last].map(kill));
  const atAddressesOf = (node: ClusterNode, { dns: [dns], peers }: ClusterNode) => {
    assert.ok(dns);
    return startAgain(node, { listen: `${dns.address}:${dns.port}`, env: { SVC_REPLICATION_LISTEN: peers } });
  };
  const swapped = [stack.use(await atAddressesOf(b, last)), stack.use(await atAddressesOf(last, b))];
  for (const node of [a, ...swapped]) {
    await untilReady(node);
    await using api = await signIn(node.api);
    for (const other of swapped) await untilKnownAt(api, other);
    await create(api, `/zones/${zone}/records`, address(`swapped-${node.id}`, "192.0.2.5"));
  }
  for (const node of [a, ...swapped]) {
    for (const { id } of [a, ...swapped]) await untilAnswers(node, `swapped-${id}.corp.test`, ["192.0.2.5"]);
    await untilAgreed(node);
  }
});
