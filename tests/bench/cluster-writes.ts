/** Promise 5 in a cluster of three: from the 2xx of a write to the new answer on the wire, of every node. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { figuresOf } from "./api-load.ts";
import { type BenchNode, dnsPortOf, makeZone, ms, openBenchCluster, type Row, row, zoneFileOf } from "./cluster-lab.ts";

const WARM_UP_WRITES = 100;
const WRITES = 1_000;
const OWN_P99_MAX_MS = 10;
const OTHERS_P99_MAX_MS = 100;
const ANSWER_WAIT_MS = 30_000;
const TYPE_A = 1;

/** Milliseconds until the answer of the query is that address, asked about every millisecond. */
async function untilAnswered(dns: DnsClient, query: Uint8Array, rdata: string): Promise<number> {
  const began = performance.now();
  for (;;) {
    const response = await dns.ask(query, ANSWER_WAIT_MS);
    const passed = performance.now() - began;
    if (response !== undefined && decodeMessage(response).answer[0]?.rdata === rdata) return passed;
    if (passed > ANSWER_WAIT_MS) throw new Error("a write is not answered");
    await setTimeout(1);
  }
}

/** Times of each node, in the order of the nodes. */
type Seen = readonly number[][];

/** Writes one after the other at the first node, creates and changes in turn, until enough or over. */
async function write(
  nodes: readonly BenchNode[],
  zone: { readonly id: string; readonly name: string },
  prefix: string,
  isOver: (writes: number) => boolean,
): Promise<Seen> {
  const [writer] = nodes;
  assert.ok(writer);
  const clients = await Promise.all(nodes.map((node) => openUdpClient({ port: dnsPortOf(node) })));
  const seen: Seen = nodes.map(() => []);
  const look = async (name: string, address: string) => {
    const query = encodeQuery({ name: `${name}.${zone.name.slice(0, -1)}`, type: TYPE_A });
    const rdata = Buffer.from(address.split(".").map(Number)).toString("hex");
    await Promise.all(clients.map(async (dns, at) => seen[at]?.push(await untilAnswered(dns, query, rdata))));
  };
  for (let index = 0; !isOver(seen[0]?.length ?? 0); index++) {
    const name = `${prefix}${index}`;
    const record = { name, type: "A", ttl: 60, values: [{ value: "192.0.2.1" }] };
    const path = `/api/v1/zones/${zone.id}/records`;
    const made = await writer.pool.ask({ method: "POST", path, body: JSON.stringify(record) });
    await look(name, "192.0.2.1");
    const body = JSON.stringify({ values: [{ value: "192.0.2.2" }] });
    await writer.pool.ask({ method: "PUT", path: `/api/v1/records/${JSON.parse(made).id}`, body });
    await look(name, "192.0.2.2");
  }
  for (const client of clients) client.close();
  return seen;
}

function rows(title: string, seen: Seen, others: readonly string[]): Row[] {
  return seen.map((times, at) => {
    const promisedMs = at === 0 ? OWN_P99_MAX_MS : OTHERS_P99_MAX_MS;
    const { requests, p50Ms, p99Ms, maxMs } = figuresOf(times, 1_000);
    const measured = `p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}, longest ${ms(maxMs)} ms of ${requests}`;
    const who = at === 0 ? "the node that took it" : others[at - 1];
    return row(`${title}: 2xx to the answer of ${who}`, `p99 under ${promisedMs} ms`, measured, p99Ms < promisedMs);
  });
}

export async function measureClusterWrites(): Promise<Row[]> {
  await using cluster = await openBenchCluster(3);
  const { nodes } = cluster;
  const name = "writes.test.";
  const zone = { id: await makeZone(nodes, name), name };
  await write(nodes, zone, "warm", (writes) => writes >= WARM_UP_WRITES);
  const quiet = rows("single writes", await write(nodes, zone, "quiet", (writes) => writes >= WRITES), [
    "another",
    "the third",
  ]);
  let isOver = false;
  const importing = importAt(nodes[1], () => {
    isOver = true;
  });
  const busy = await write(nodes, zone, "busy", () => isOver);
  return [...quiet, ...(await importing), ...rows("meanwhile", busy, ["the node that imports", "the third"])];
}

async function importAt(node: BenchNode | undefined, onOver: () => void): Promise<Row[]> {
  assert.ok(node);
  try {
    const path = "/api/v1/zones/import";
    const began = performance.now();
    for (const octet of [1, 2]) {
      const body = zoneFileOf("meanwhile.test.", octet);
      await node.pool.ask({ method: "POST", path, body, contentType: "text/dns" });
    }
    return [
      row(
        "two imports of 50,000 at another node while single writes go on",
        "-",
        `${ms(performance.now() - began)} ms`,
      ),
    ];
  } finally {
    onOver();
  }
}
