/** Nodes are restarted and killed one after another while clients ask: nobody gets a wrong answer, and nobody none. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { signIn } from "../scenarios/api-client.ts";
import { create } from "../scenarios/notify-world.ts";
import { requireProgram } from "../support/peers.ts";
import { type Child, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import {
  type Cluster,
  type ClusterNode,
  kill,
  startAgain,
  startCluster,
  statusesOf,
  untilAgreed,
  untilAnswers,
  untilReady,
} from "./cluster-world.ts";
import { type FailoverClient, startFailoverClient } from "./failover-client.ts";

const NAME = "www.corp.test";
/** An address that no other test has, so that nobody takes the port while a node is away. */
const LISTEN = `127.${randomInt(1, 255)}.${randomInt(255)}.${randomInt(1, 255)}:0`;

async function startLoad({ directory }: Cluster, nodes: readonly ClusterNode[]): Promise<readonly Child[]> {
  const queries = join(directory, "queries");
  await writeFile(queries, `${NAME} A\n`);
  return await Promise.all(
    nodes.map(async ({ dns: [server] }) => {
      assert.ok(server);
      const to = ["-s", server.address, "-p", String(server.port)];
      return await startChild("dnsperf", "dnsperf", [...to, "-d", queries, "-l", "600", "-Q", "500", "-t", "1"]);
    }),
  );
}

/** Clients go on asking for a while after whatever has happened. */
async function untilAsked(client: FailoverClient, queries = 100): Promise<void> {
  const before = client.answered();
  await waitFor("clients go on", 60_000, () => client.answered() >= before + queries);
}

test("a rolling restart under load, and a crash, lose no query and give no wrong answer", async (t) => {
  if (requireProgram(t, "dnsperf") === undefined) return;
  await using cluster = await startCluster(3, {}, { listen: LISTEN });
  const nodes = [...cluster.nodes];
  const [first] = nodes;
  assert.ok(first);
  let record = "";
  {
    await using api = await signIn(first.api);
    const zone = await create(api, "/zones", { name: "corp.test." });
    record = await create(api, `/zones/${zone}/records`, { name: "www", type: "A", values: [{ value: "192.0.2.1" }] });
  }
  for (const node of nodes) await untilAnswers(node, NAME, ["192.0.2.1"]);
  await using stack = new AsyncDisposableStack();
  for (const load of await startLoad(cluster, nodes)) stack.defer(async () => void (await load.stop()));
  const right = new Set(["192.0.2.1"]);
  const client = await startFailoverClient(nodes, NAME, ([address, ...others]) => {
    return others.length === 0 && address !== undefined && right.has(address);
  });
  stack.use(client);
  await untilAsked(client);

  for (const [how, indices] of [
    ["restart", [0, 1, 2]],
    ["crash", [1]],
  ] as const) {
    for (const index of indices) {
      const node = nodes[index];
      assert.ok(node);
      const others = nodes.filter((other) => other !== node);
      const [other] = others;
      assert.ok(other);
      if (how === "restart") assert.deepEqual(await node.child.stop(), { code: 0, signal: null });
      else await kill(node);
      await untilAsked(client);
      // A change while it is away: it answers what it had, and then this.
      const address = `192.0.2.${how === "restart" ? 10 + index : 20 + index}`;
      right.add(address);
      await using api = await signIn(other.api);
      const { status, body } = await api.ask("PUT", `/records/${record}`, { values: [{ value: address }] });
      assert.equal(status, 200, JSON.stringify(body));
      const again = stack.use(await startAgain(node, { join: others.map(({ peers }) => peers) }));
      nodes[index] = again;
      await untilReady(again);
      for (const one of nodes) await untilAnswers(one, NAME, [address]);
      await waitFor("all are alive", 20_000, async () => {
        return Object.values(await statusesOf(api)).every((one) => one === "alive");
      });
      await untilAsked(client);
      assert.deepEqual(client.faults, [], `${how} of ${node.id}`);
    }
  }
  for (const node of nodes) await untilAgreed(node);
  // Otherwise nothing was tried.
  assert.ok(client.failedOver() > 0);
});
