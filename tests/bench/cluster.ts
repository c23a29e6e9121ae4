/**
 * A cluster of whole nodes, each a process, on loopback: how soon a write is everywhere, what an import costs, a first sync of
 * `records`, what a partition leaves to do, how soon a node that died is known to be dead, and what nodes at rest need.
 */
import { measureFailure, measureHealing } from "./cluster-heal.ts";
import { measureIdle } from "./cluster-idle.ts";
import { measureClusterImport } from "./cluster-import.ts";
import type { Row } from "./cluster-lab.ts";
import { measureClusterSync } from "./cluster-sync.ts";
import { measureClusterWrites } from "./cluster-writes.ts";
import { markdown } from "./table.ts";

export type ClusterOptions = {
  readonly rounds: number;
  readonly seconds: number;
  readonly records: number;
  readonly only: readonly string[] | undefined;
};

type Measure = (directory: string, options: ClusterOptions) => Promise<readonly Row[]>;

const MEASURES: Readonly<Record<string, Measure>> = {
  "cluster-writes": () => measureClusterWrites(),
  "cluster-import": (_, { rounds }) => measureClusterImport(rounds),
  "cluster-sync": (directory, { records }) => measureClusterSync(directory, records),
  "cluster-heal": (directory) => measureHealing(directory),
  "cluster-failure": (_, { rounds }) => measureFailure(rounds),
  "cluster-idle": (_, { seconds }) => measureIdle(IDLE_NODES, Math.max(seconds, IDLE_SECONDS)),
};

/** So many processes of some fifteen threads each are started on one machine. */
const IDLE_NODES = 30;
const IDLE_SECONDS = 60;

/** All of them are "cluster". */
export const CLUSTER_WORKLOADS: readonly string[] = ["cluster", ...Object.keys(MEASURES)];

/** A Markdown table, a row a figure; undefined where none was asked for. */
export async function measureCluster(directory: string, options: ClusterOptions): Promise<string | undefined> {
  const { only } = options;
  const chosen = Object.entries(MEASURES).filter(
    ([name]) => only === undefined || only.includes("cluster") || only.includes(name),
  );
  const rows: Row[] = [];
  for (const [name, measure] of chosen) {
    console.error(`${name}:`);
    rows.push(...(await measure(directory, options)));
  }
  if (rows.length === 0) return undefined;
  return markdown(
    ["figure", "promised", "measured", ""],
    rows.map(({ figure, promised, measured, holds }) => {
      return [figure, promised, measured, holds === undefined ? "" : holds ? "holds" : "MISSED"];
    }),
  );
}
