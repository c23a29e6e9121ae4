import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { runToEnd } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { FAULTY_MAIN, startNode } from "./running-node.ts";

/** STEADY_HEAP_QUERIES=10000000 makes it the long proof. */
const QUERIES = Number(process.env.STEADY_HEAP_QUERIES ?? 400_000);
const WARM_UP = 300_000;
const LONGEST_MS = 600_000;

/** Queries of every kind; none has a first label as long as those that the faulty thread looks for. */
const LINES = ["www A", "missing A", "x.wild TXT", "@ MX", "www AAAA", "a-chain A", "below.sub A", "@ ANY"];

test("an answer thread allocates nothing for the queries it answers", { timeout: LONGEST_MS }, async () => {
  await using node = await startNode({ main: FAULTY_MAIN });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const file = join(node.directory, "queries");
  await writeFile(file, LINES.map((line) => line.replace(/^@/, "example.test").replace(/^(\S+) /, nameOf)).join("\n"));
  const load = (count: number, ...options: string[]) =>
    runToEnd(
      "dnsperf",
      ["-s", endpoint.address, "-p", String(endpoint.port), "-d", file, "-q", "400", "-c", "4", ...options].concat([
        "-n",
        String(Math.ceil(count / LINES.length)),
      ]),
      LONGEST_MS,
    );
  const client = await openUdpClient(endpoint);
  let told = 0;
  const heap = async () => {
    assert.notEqual(await client.ask(encodeQuery({ name: "tell-the-heap.example.test", type: 1 })), undefined);
    told += 1;
    const heaps = await waitFor("the heap's size", 5_000, () => {
      const found = node.messages().filter((message) => message.startsWith("heap "));
      return found.length === told && found;
    });
    return Number(heaps.at(-1)?.slice(5));
  };
  await load(WARM_UP);
  await load(WARM_UP, "-E", "10:0102030405060708");
  await heap();
  const before = await heap();
  await load(QUERIES / 2);
  await load(QUERIES / 2, "-E", "10:0102030405060708");
  const after = await heap();
  client.close();
  const bytesPerQuery = (after - before) / QUERIES;
  console.log(before, after, bytesPerQuery);
  assert.ok(bytesPerQuery < 0.5, `the heap went from ${before} to ${after} bytes over ${QUERIES} queries`);
});

function nameOf(_: string, label: string): string {
  return label === "example.test" ? "example.test " : `${label}.example.test `;
}
