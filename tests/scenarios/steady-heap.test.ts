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
/** What the engine itself may still put on the heap; one small object a batch would come to some 2 MB. */
const TOLERATED_BYTES = 200_000;
/** Few queries outstanding make small batches, and so many. */
const OUTSTANDING = "16";
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
      [
        "-s",
        endpoint.address,
        "-p",
        String(endpoint.port),
        "-d",
        file,
        "-q",
        OUTSTANDING,
        "-c",
        "4",
        ...options,
      ].concat(["-n", String(Math.ceil(count / LINES.length))]),
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
    const [used, live] = (heaps.at(-1) ?? "").split(" ").slice(1).map(Number);
    assert.ok(used !== undefined && live !== undefined);
    return { used, live };
  };
  await load(WARM_UP);
  await load(WARM_UP, "-E", "10:0102030405060708");
  const { live: before } = await heap();
  await load(QUERIES / 2);
  await load(QUERIES / 2, "-E", "10:0102030405060708");
  const { used: after, live } = await heap();
  client.close();
  assert.ok(live - before < TOLERATED_BYTES, `what lives on the heap went from ${before} to ${live} bytes`);
  assert.ok(after - before < TOLERATED_BYTES, `the heap went from ${before} to ${after} bytes over ${QUERIES} queries`);
});

function nameOf(_: string, label: string): string {
  return label === "example.test" ? "example.test " : `${label}.example.test `;
}
