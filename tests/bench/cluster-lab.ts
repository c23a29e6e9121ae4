/** Nodes of a cluster as the benchmarks have them: processes on loopback, clients that watch them, stores that are filled. */
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openDataDirectory } from "../../src/node/data-directory.ts";
import { nodeKeys } from "../../src/node/keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import { CLUSTER_KEY, type ClusterNode, startCluster } from "../cluster/cluster-world.ts";
import { startChild } from "../support/process.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiPool, openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";
import type { ClientSeen, Times } from "./cluster-client.ts";
import type { TurnSeen } from "./turn-watch.ts";

export const IMPORT_RECORDS = 50_000;

/** One line of the report. */
export type Row = {
  readonly figure: string;
  readonly promised: string;
  readonly measured: string;
  readonly holds?: boolean;
};

/** A row as soon as it is known, for whoever waits. */
export function row(figure: string, promised: string, measured: string, holds?: boolean): Row {
  const verdict = holds === undefined ? "" : holds ? ": holds" : ": MISSED";
  console.error(`${figure}: ${measured} (promised: ${promised})${verdict}; load average ${loadavg()[0]?.toFixed(1)}`);
  return { figure, promised, measured, ...(holds !== undefined && { holds }) };
}

export function ms(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}

export function timesText([p50, p99, max]: Times): string {
  return `${ms(p50)} / ${ms(p99)} / ${ms(max)} ms`;
}

export type BenchNode = ClusterNode & { readonly pool: ApiPool };
export type BenchCluster = AsyncDisposable & { readonly nodes: readonly BenchNode[] };

/** Every node with a session of the admin's, who may ask as often as he likes. */
export async function openBenchCluster(count: number): Promise<BenchCluster> {
  const cluster = await startCluster(count);
  const nodes: BenchNode[] = [];
  for (const node of cluster.nodes) nodes.push(await withPool(node));
  return {
    nodes,
    [Symbol.asyncDispose]: async () => {
      for (const { pool } of nodes) await pool[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

export async function withPool(node: ClusterNode): Promise<BenchNode> {
  return { ...node, pool: openPool(await signInTo(node.api, 1), 4) };
}

export function dnsPortOf({ dns }: ClusterNode): number {
  const [endpoint] = dns;
  assert.ok(endpoint, "the node serves no DNS");
  return endpoint.port;
}

/** "http://127.0.0.1:49152" */
function managementOf(node: ClusterNode): string {
  return node.messages().flatMap((line) => /^health and metrics on (.*)$/.exec(line)?.[1] ?? [])[0] ?? "";
}

export async function figureOf(node: ClusterNode, series: string): Promise<number> {
  const text = await (await node.get("/metrics")).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? Number.NaN);
}

/** The id of a new zone, which all nodes have and answer for. */
export async function makeZone(nodes: readonly BenchNode[], name: string): Promise<string> {
  const [first] = nodes;
  assert.ok(first);
  const made = await first.pool.ask({ method: "POST", path: "/api/v1/zones", body: JSON.stringify({ name }) });
  const { id } = JSON.parse(made);
  for (const { pool } of nodes) {
    await waitFor(`${name} is active`, 60_000, async () => {
      const found = await pool.ask({ method: "GET", path: `/api/v1/zones/${id}` }).catch(() => "{}");
      return JSON.parse(found).status === "active";
    });
  }
  return id;
}

/** Whether all nodes that are there say the same of everything. */
export async function agree({ pool }: BenchNode): Promise<boolean> {
  return JSON.parse(await pool.ask({ method: "GET", path: "/api/v1/cluster/consistency" })).agrees === true;
}

/** Changes of this node that others have not acknowledged. */
export async function unacknowledged({ pool }: BenchNode): Promise<number> {
  const { items } = JSON.parse(await pool.ask({ method: "GET", path: "/api/v1/nodes" }));
  const rows: readonly { readonly queued_changes: number | null }[] = items;
  return rows.reduce((sum, { queued_changes }) => sum + (queued_changes ?? 0), 0);
}

const CLIENT = fileURLToPath(new URL("./cluster-client.ts", import.meta.url));

/** Asks each of the nodes a thousand times a second for its name, until it is ended; then gives what it saw. */
export async function watchNodes(
  targets: readonly { readonly node: ClusterNode; readonly name: string }[],
): Promise<() => Promise<readonly ClientSeen[]>> {
  const args = targets.map(({ node, name }) => `${dnsPortOf(node)},${managementOf(node)},${name}`);
  const client = await startChild("client", process.execPath, [CLIENT, ...args]);
  await waitFor("the client asks", 20_000, () => client.output().startsWith("watching"));
  return async () => {
    await client.stop(20_000);
    return JSON.parse(client.output().slice("watching\n".length));
  };
}

const TURN_WATCH = new URL("./turn-watch.ts", import.meta.url).href;

export type TurnWatch = {
  /** Of the node that is watched; one node a watch. */
  readonly env: Readonly<Record<string, string>>;
  /** The longest stretch since `sinceMs` of the system's clock for which its control thread ran, by its own processor time. */
  readonly longestMs: (sinceMs: number) => Promise<number>;
};

export function turnWatch(directory: string, id: string): TurnWatch {
  const file = join(directory, `turns-${id}`);
  return {
    env: { NODE_OPTIONS: `--import ${TURN_WATCH}`, TURN_WATCH: file },
    longestMs: async (sinceMs) => {
      const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
      const turns = lines.map((line): TurnSeen => JSON.parse(line)).filter(({ atMs }) => atMs > sinceMs);
      return Math.max(0, ...turns.map(({ longestMs }) => longestMs));
    },
  };
}

const ZONE_RECORDS = 50_000;
const SLICE = 5_000;

/** Half of the records are in one zone, the others in many. */
export function zoneAt(index: number, records: number): string {
  return index < records / 2 ? "large.test." : `zone${Math.floor(index / ZONE_RECORDS)}.test.`;
}

/** Records straight into the store of a node of that id that does not run. */
export async function fillClusterStore(directory: string, nodeId: string, records: number): Promise<void> {
  const data = join(directory, "data");
  await mkdir(data, { recursive: true, mode: 0o700 });
  const { key, release } = openDataDirectory(data, undefined);
  const keys = nodeKeys(key, CLUSTER_KEY);
  const store = await openStore({ directory: data, nodeId, secretKey: keys.store });
  for (let first = 0; first < records; first += SLICE) {
    await store.write((tx) => {
      for (let index = first; index < Math.min(first + SLICE, records); index++) {
        const zone = zoneAt(index, records);
        if (tx.get("zone", [zone]) === undefined) {
          tx.put("zone", zoneBody(zone, { id: `zon_${zone.slice(0, -1)}` }));
          tx.setState(zone, "active");
        }
        const value = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
        tx.put("record", recordBody(zone, `host${index}`, { id: `rec_${index}`, ttl: 300, values: [{ value }] }));
      }
    });
  }
  await store[Symbol.asyncDispose]();
  release();
}

/** The zone file that an import is made of. */
export function zoneFileOf(zone: string, octet: number): Buffer {
  const lines = [`$ORIGIN ${zone}`, "$TTL 300", "@ IN SOA ns1 hostmaster 1 7200 900 1209600 300"];
  for (let index = 0; index < IMPORT_RECORDS; index++) {
    lines.push(`host${index} IN A 10.${octet}.${index >> 8}.${index & 255}`);
  }
  return Buffer.from(`${lines.join("\n")}\n`);
}
