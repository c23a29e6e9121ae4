/** Nodes of one cluster, each a process of its own with an address of its own, as an operator starts them. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiAnswer, type ApiClient, signIn } from "../scenarios/api-client.ts";
import { type NodeSetup, type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";

export const CLUSTER_KEY = "the key that all nodes of the cluster have";

export type ClusterNode = ScenarioNode & {
  readonly id: string;
  /** Where peers reach it. */
  readonly peers: string;
};

export type ClusterNodeSetup = NodeSetup & {
  readonly id: string;
  readonly join?: readonly string[];
  /** Another than CLUSTER_KEY. */
  readonly key?: string;
};

/** Starts a node and waits until it serves; `untilReady` waits for its first sync. */
export async function startClusterNode({
  id,
  join: others = [],
  key,
  env,
  ...setup
}: ClusterNodeSetup): Promise<ClusterNode> {
  const node = await startNode({
    zones: [],
    // Who joins has the admin from the others.
    ...(others.length > 0 && { adminPassword: null }),
    ...setup,
    env: {
      SVC_NODE_ID: id,
      SVC_REPLICATION_LISTEN: "127.0.0.1:0",
      SVC_REPLICATION_ENCRYPT_KEY: key ?? CLUSTER_KEY,
      ...(others.length > 0 && { SVC_REPLICATION_JOIN: others.join(",") }),
      ...env,
    },
  });
  const peers = node.messages().flatMap((line) => /^cluster on (.*), UDP and TCP$/.exec(line)?.[1] ?? [])[0];
  assert.ok(peers, "the node says where its peers reach it");
  return { ...node, id, peers };
}

export async function isReady(node: ScenarioNode): Promise<boolean> {
  return (await node.get("/readyz")).status === 200;
}

export async function untilReady(node: ScenarioNode): Promise<void> {
  let last = "";
  const isThere = async () => {
    const answer = await node.get("/readyz").catch(() => undefined);
    last = (await answer?.text()) ?? "no answer";
    return answer?.status === 200;
  };
  await explained(
    () => waitFor("the node is ready", 60_000, isThere),
    () => `${last}\n${node.child.output()}`,
  );
}

/** As `wait`; where that fails, with what explains it. */
async function explained(wait: () => Promise<unknown>, why: () => string): Promise<void> {
  try {
    await wait();
  } catch (error) {
    throw new Error(`${String(error)}\n${why()}`);
  }
}

export type Cluster = AsyncDisposable & {
  readonly nodes: readonly [ClusterNode, ...ClusterNode[]];
  readonly directory: string;
};

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** A start takes seconds of processor time. */
const STARTED_AT_ONCE = 4;

/** So many nodes, named a, b, c, ..., all ready. Their data lies in folders of `directory`, by their ids. */
export async function startCluster(
  count: number,
  env: Readonly<Record<string, string>> = {},
  setup: Omit<NodeSetup, "env" | "directory"> = {},
): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-cluster-test-"));
  const nodes: ClusterNode[] = [];
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    await rm(directory, { recursive: true, force: true });
  };
  const start = async (index: number, others: readonly string[]) => {
    const id = index < LETTERS.length ? LETTERS.charAt(index) : `n${index}`;
    const node = await startClusterNode({ ...setup, id, env, directory: join(directory, id), join: others });
    nodes.push(node);
    await untilReady(node);
    return node;
  };
  try {
    const first = await start(0, []);
    const others: ClusterNode[] = [];
    while (others.length + 1 < count) {
      const next = Array.from({ length: Math.min(STARTED_AT_ONCE, count - 1 - others.length) }, (_, index) => {
        return start(others.length + 1 + index, [first.peers]);
      });
      for (const one of await Promise.allSettled(next)) {
        if (one.status === "rejected") throw one.reason;
        others.push(one.value);
      }
    }
    return {
      nodes: [first, ...others],
      directory,
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** The nodes of a cluster of three. */
export function threeOf({
  nodes: [a, b, c],
}: Pick<Cluster, "nodes">): readonly [ClusterNode, ClusterNode, ClusterNode] {
  assert.ok(b && c);
  return [a, b, c];
}

/** Starts a node that has ended, at another port for its peers and with the DNS address that it had. */
export async function startAgain(node: ClusterNode, setup: Partial<ClusterNodeSetup> = {}): Promise<ClusterNode> {
  const [{ address, port } = { address: "127.0.0.1", port: 0 }] = node.dns;
  return await startClusterNode({
    ...{ id: node.id, directory: node.directory, listen: `${address}:${port}` },
    ...setup,
  });
}

/** The kernel takes it away as if the machine had lost its power. */
export async function kill({ child }: ClusterNode): Promise<void> {
  process.kill(child.pid, "SIGKILL");
  await child.exited;
}

export type NodeRow = { readonly id: string; readonly status: string; readonly queued_changes: number | null };

/** Ids of the nodes by what this one says of them. */
export async function statusesOf(api: ApiClient): Promise<Readonly<Record<string, string>>> {
  const { body } = await api.ask("GET", "/nodes");
  return Object.fromEntries((body.items as NodeRow[]).map(({ id, status }) => [id, status]));
}

/** Waits until all nodes say the same digest of everything. */
export async function untilAgreed(node: ClusterNode): Promise<void> {
  await using api = await signIn(node.api);
  let last: ApiAnswer["body"];
  const isAgreed = async () => {
    last = (await api.ask("GET", "/cluster/consistency")).body;
    return last.agrees === true;
  };
  await explained(
    () => waitFor("all nodes agree", 240_000, isAgreed, 50),
    () => `${JSON.stringify(last)}\n${node.child.output()}`,
  );
}

/** The addresses that a node answers for a name, in order; undefined where it answers otherwise than NOERROR. */
export async function addressesOf(node: ScenarioNode, name: string): Promise<readonly string[] | undefined> {
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const response = await exchangeUdp(endpoint, encodeQuery({ name, type: 1 }), 5_000);
  if (response === undefined) return undefined;
  const { rcode, answer } = decodeMessage(response);
  if (rcode !== 0) return undefined;
  return answer.flatMap(({ type, rdata }) => (type === 1 ? [[...Buffer.from(rdata, "hex")].join(".")] : [])).sort();
}

/** Waits until a node answers just these addresses. */
export async function untilAnswers(node: ScenarioNode, name: string, addresses: readonly string[]): Promise<void> {
  const wanted = JSON.stringify(addresses);
  await waitFor(
    `${name} is ${wanted}`,
    30_000,
    async () => JSON.stringify(await addressesOf(node, name)) === wanted,
    2,
  );
}
