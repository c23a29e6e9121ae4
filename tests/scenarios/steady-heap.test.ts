import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { runToEnd } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { forwardTo, startForwarding } from "./forward-world.ts";
import { EXAMPLE_ZONE, FAULTY_MAIN } from "./running-node.ts";

/** STEADY_HEAP_QUERIES=10000000 makes it the long proof. */
const QUERIES = Number(process.env.STEADY_HEAP_QUERIES ?? 400_000);
const WARM_UP = 300_000;
/** What the engine itself may still put on the heap; one small object a batch would come to some 2 MB. */
const TOLERATED_BYTES = 200_000;
/** Few queries outstanding make small batches, and so many. */
const OUTSTANDING = "16";
const LONGEST_MS = 600_000;

/** Queries of every kind; none has a first label as long as those that the faulty thread looks for. */
const LINES = ["www A", "missing A", "x.wild TXT", "@ MX", "www AAAA", "a-chain A", "@ ANY"];
/** With a forwarder it is resolved, and nobody answers for it; without one it is a referral. */
const DELEGATED = "below.sub A";
/** Names that are not ours, which the cache answers once an upstream has. */
const FORWARDED = ["a.public.net A", "b.public.net TXT", "c.public.net A", "none.public.net A"];
const UPSTREAM = `
public.net. 86400 SOA ns.public.net. host.public.net. 1 7200 900 1209600 3600
a.public.net. 86400 A 198.51.100.1
b.public.net. 86400 TXT "text"
c.public.net. 86400 CNAME a.public.net.
`;

test("an answer thread allocates nothing for the queries it answers", { timeout: LONGEST_MS }, async () => {
  await using world = await startForwarding({
    main: FAULTY_MAIN,
    zones: [EXAMPLE_ZONE],
    table: UPSTREAM,
    forwards: false,
  });
  const { node } = world;
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const inZone = (line: string) => line.replace(/^@/, "example.test").replace(/^(\S+) /, nameOf);
  const ours = LINES.map(inZone);
  const load = async (lines: readonly string[], count: number, ...options: string[]) => {
    const file = join(node.directory, "queries");
    await writeFile(file, lines.join("\n"));
    return await runToEnd(
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
      ].concat(["-n", String(Math.ceil(count / lines.length))]),
      LONGEST_MS,
    );
  };
  const loadOwn = (count: number, ...options: string[]) => load([...ours, inZone(DELEGATED)], count, ...options);
  const loadAll = async (count: number, ...options: string[]) => {
    await forwardTo(world, [`127.0.0.1:${world.upstream.port}`]);
    await load([...ours, ...FORWARDED], count, ...options);
    await world.put("/forwarders/default", { enabled: false });
  };
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
  // In the order of what is measured: where the queries become others, the engine compiles anew.
  for (const options of [[], ["-E", "10:0102030405060708"], []]) {
    await loadOwn(WARM_UP / 3, ...options);
    await loadAll(WARM_UP / 3, ...options);
  }
  const { live: before } = await heap();
  await loadOwn(QUERIES / 2, "-E", "10:0102030405060708");
  await loadAll(QUERIES / 2);
  const { used: after, live } = await heap();
  client.close();
  assert.ok(live - before < TOLERATED_BYTES, `what lives on the heap went from ${before} to ${live} bytes`);
  assert.ok(after - before < TOLERATED_BYTES, `the heap went from ${before} to ${after} bytes over ${QUERIES} queries`);
});

function nameOf(_: string, label: string): string {
  return label === "example.test" ? "example.test " : `${label}.example.test `;
}
