/** What a partition and a death leave to do: until both sides are one again, and until a node that died is known to be dead. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterNode, startClusterNode, statusesOf, untilReady } from "../cluster/cluster-world.ts";
import { signIn } from "../scenarios/api-client.ts";
import { waitFor } from "../support/wait.ts";
import { agree, type BenchNode, ms, openBenchCluster, type Row, row, withPool } from "./cluster-lab.ts";

const DIFFERING = 10_000;
const HEALED_MAX_MS = 5_000;
const DETECTED_MAX_MS = 3_000;
const WAIT_MS = 120_000;

/** So many records by one import into a zone that is there; those of another `octet` are a change. */
async function writeMany({ pool }: BenchNode, zone: string, from: number, count: number): Promise<void> {
  const lines = [`$ORIGIN ${zone}`, "$TTL 300", "@ IN SOA ns1 hostmaster 1 7200 900 1209600 300"];
  for (let index = from; index < from + count; index++)
    lines.push(`host${index} IN A 10.1.${index >> 8}.${index & 255}`);
  const body = Buffer.from(`${lines.join("\n")}\n`);
  await pool.ask({ method: "POST", path: "/api/v1/zones/import", body, contentType: "text/dns" });
}

/**
 * Each of two nodes is alone while half of what will differ is written to it: nobody runs beside it. Then both run, and find
 * each other as those do whose network was cut.
 */
export async function measureHealing(directory: string): Promise<Row[]> {
  const home = await mkdtemp(join(directory, "heal-"));
  const folder = (id: string) => join(home, id);
  try {
    const begin = async () => {
      await using a = await startClusterNode({ id: "a", directory: folder("a") });
      await using b = await startClusterNode({ id: "b", directory: folder("b"), join: [a.peers] });
      await untilReady(b);
      const node = await withPool(a);
      await writeMany(node, "before.test.", 0, 5_000);
      await waitFor("both agree", WAIT_MS, () => agree(node), 100);
      await node.pool[Symbol.asyncDispose]();
    };
    await begin();
    for (const [at, id] of ["a", "b"].entries()) {
      await using alone = await startClusterNode({ id, directory: folder(id) });
      const node = await withPool(alone);
      await writeMany(node, "before.test.", (at + 1) * 10_000, DIFFERING / 2);
      await node.pool[Symbol.asyncDispose]();
    }
    await using a = await startClusterNode({ id: "a", directory: folder("a") });
    await using b = await startClusterNode({ id: "b", directory: folder("b"), join: [a.peers] });
    const began = performance.now();
    const node = await withPool(a);
    await waitFor("they see each other", WAIT_MS, () => seesAlive(a, b.id), 20);
    const metMs = performance.now() - began;
    await waitFor("both agree", WAIT_MS, () => agree(node), 50);
    const tookMs = performance.now() - began;
    await node.pool[Symbol.asyncDispose]();
    const what = `${DIFFERING.toLocaleString("en")} differing objects, two nodes: from both running to agreement`;
    const measured = `${ms(tookMs)} ms, of which ${ms(metMs)} until they are members again`;
    return [row(what, `under ${HEALED_MAX_MS} ms`, measured, tookMs < HEALED_MAX_MS)];
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function seesAlive(node: ClusterNode, id: string): Promise<boolean> {
  await using api = await signIn(node.api);
  return (await statusesOf(api))[id] === "alive";
}

/** A node of three is killed; the others say so by themselves. */
export async function measureFailure(rounds: number): Promise<Row[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await using cluster = await openBenchCluster(3);
    const [a, b, c] = cluster.nodes;
    assert.ok(a && b && c);
    // The timers of suspicion and of probes are in their steady state.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    process.kill(c.child.pid, "SIGKILL");
    const began = performance.now();
    for (const { pool } of [a, b]) {
      await waitFor("it is dead", WAIT_MS, async () => {
        const { items } = JSON.parse(await pool.ask({ method: "GET", path: "/api/v1/nodes" }));
        return items.some(({ id, status }: { id: string; status: string }) => id === "c" && status === "dead");
      });
    }
    times.push(performance.now() - began);
    await c.child.exited;
  }
  const longest = Math.max(...times);
  const measured = `${times.map(ms).join(", ")} ms until both others know`;
  return [row("a node of three is killed", `under ${DETECTED_MAX_MS} ms`, measured, longest < DETECTED_MAX_MS)];
}
