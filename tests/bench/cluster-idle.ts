/** What whole nodes of a cluster need while nothing happens. */
import { loadavg } from "node:os";
import { figureOf, openBenchCluster, type Row, row } from "./cluster-lab.ts";

const CORE_MAX_PERCENT = 3;
/** The first comparisons come close together. */
const SETTLING_MS = 40_000;
const MIB = 2 ** 20;

export async function measureIdle(count: number, seconds: number): Promise<Row[]> {
  await using cluster = await openBenchCluster(count);
  const { nodes } = cluster;
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const used = () => nodes.map(({ child }) => child.cpu().userMs + child.cpu().systemMs);
  await pause(SETTLING_MS);
  const before = used();
  const startMs = performance.now();
  await pause(seconds * 1_000);
  const passedMs = performance.now() - startMs;
  const shares = used().map((ms, at) => (100 * (ms - (before[at] ?? 0))) / passedMs);
  const mean = shares.reduce((sum, share) => sum + share, 0) / count;
  const most = Math.max(...shares);
  const mib = nodes.map(({ child }) => child.residentBytes() / MIB).reduce((sum, each) => sum + each, 0) / count;
  const suspicions = await Promise.all(nodes.map((node) => figureOf(node, "svc_cluster_suspicions_total")));
  const suspected = suspicions.reduce((sum, each) => sum + each, 0);
  const load = `load average ${loadavg()[0]?.toFixed(1)}`;
  return [
    row(
      `${count} whole nodes at rest on one machine for ${seconds} s, of a core each`,
      `under ${CORE_MAX_PERCENT} %`,
      `mean ${mean.toFixed(2)} %, most ${most.toFixed(2)} %, ${mib.toFixed(0)} MiB each; ${load}`,
      mean < CORE_MAX_PERCENT,
    ),
    row("suspicions among them", "none", String(suspected), suspected === 0),
  ];
}
