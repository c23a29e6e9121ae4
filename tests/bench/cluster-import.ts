/** An import of 50,000 records into one node of three, beside the same into a lone node. */
import assert from "node:assert/strict";
import { waitFor } from "../support/wait.ts";
import type { ClientSeen } from "./cluster-client.ts";
import {
  agree,
  type BenchNode,
  figureOf,
  IMPORT_RECORDS,
  makeZone,
  ms,
  openBenchCluster,
  type Row,
  row,
  timesText,
  unacknowledged,
  watchNodes,
  zoneFileOf,
} from "./cluster-lab.ts";
import { median } from "./table.ts";

const IMPORT_MAX_MS = 3_000;
const DNS_MAX_MS = 20;

type Imports = {
  /** Of each round, milliseconds. */
  readonly tookMs: number[];
  readonly agreedMs: number[];
  readonly cpuMs: number[];
  readonly seen: readonly ClientSeen[];
};

async function importInto(nodes: readonly BenchNode[], rounds: number): Promise<Imports> {
  const [first] = nodes;
  assert.ok(first);
  const zone = await makeZone(nodes, "steady.test.");
  const record = { name: "www", type: "A", ttl: 60, values: [{ value: "192.0.2.1" }] };
  await first.pool.ask({ method: "POST", path: `/api/v1/zones/${zone}/records`, body: JSON.stringify(record) });
  const used = () => nodes.reduce((sum, { child }) => sum + child.cpu().userMs + child.cpu().systemMs, 0);
  const all: Imports & { seen: readonly ClientSeen[] } = { tookMs: [], agreedMs: [], cpuMs: [], seen: [] };
  // The first round compiles what all others run.
  await importOnce(nodes, 0);
  const end = await watchNodes(nodes.map((node) => ({ node, name: "www.steady.test" })));
  for (let round = 1; round <= rounds; round++) {
    const before = used();
    const { tookMs, agreedMs } = await importOnce(nodes, round);
    all.tookMs.push(tookMs);
    all.agreedMs.push(agreedMs);
    all.cpuMs.push(used() - before);
  }
  all.seen = await end();
  return all;
}

async function importOnce(nodes: readonly BenchNode[], round: number): Promise<{ tookMs: number; agreedMs: number }> {
  const [first] = nodes;
  assert.ok(first);
  const body = zoneFileOf(`import${round}.test.`, round);
  const began = performance.now();
  await first.pool.ask({ method: "POST", path: "/api/v1/zones/import", body, contentType: "text/dns" });
  const tookMs = performance.now() - began;
  await waitFor("the others have it", 60_000, async () => (await unacknowledged(first)) === 0, 50);
  const agreedMs = performance.now() - began;
  if (nodes.length > 1) await waitFor("all agree", 60_000, () => agree(first), 50);
  return { tookMs, agreedMs };
}

async function measured(count: number, rounds: number): Promise<{ imports: Imports; suspicions: number }> {
  await using cluster = await openBenchCluster(count);
  const imports = await importInto(cluster.nodes, rounds);
  const told = await Promise.all(cluster.nodes.map((node) => figureOf(node, "svc_cluster_suspicions_total")));
  return { imports, suspicions: told.reduce((sum, each) => sum + each, 0) };
}

export async function measureClusterImport(rounds: number): Promise<Row[]> {
  const { imports: lone } = await measured(1, rounds);
  const { imports: three, suspicions } = await measured(3, rounds);
  const took = median(three.tookMs);
  const ratio = took / median(lone.tookMs);
  const what = `import of ${IMPORT_RECORDS.toLocaleString("en")} records`;
  const list = (times: readonly number[]) => times.map(ms).join(", ");
  const longest = Math.max(...three.seen.map(({ dnsMs }) => dnsMs[2]));
  const lost = three.seen.reduce((sum, each) => sum + each.lost, 0);
  return [
    row(`${what}, a lone node`, "under 3,000 ms", `${list(lone.tookMs)} ms, ${list(lone.cpuMs)} ms of processor`),
    row(
      `${what}, one node of three`,
      "under 3,000 ms",
      `${list(three.tookMs)} ms, ${ratio.toFixed(2)} times the lone node's`,
      took < IMPORT_MAX_MS,
    ),
    row(
      "until the others have acknowledged it",
      "-",
      `${list(three.agreedMs)} ms, ${list(three.cpuMs)} ms of processor`,
    ),
    ...three.seen.map((seen, at) => {
      const title = `DNS of ${at === 0 ? "the node that imports" : "another"} meanwhile, p50 / p99 / longest`;
      return row(title, "-", timesText(seen.dnsMs));
    }),
    row("longest DNS query", `at most ${DNS_MAX_MS} ms`, `${ms(longest)} ms, ${lost} lost`, longest <= DNS_MAX_MS),
    row("suspicions of any node meanwhile", "none", String(suspicions), suspicions === 0),
  ];
}
