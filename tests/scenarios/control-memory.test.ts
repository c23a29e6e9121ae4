import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { ADMIN_PASSWORD, FAULTY_MAIN, type ScenarioNode, startNode } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-memory-"));
after(() => rm(directory, { recursive: true }));

/** Asks and writes until it is ended; counts what was lost. */
function startLoad(node: ScenarioNode, client: ApiClient, zoneId: string, isReady: () => Promise<boolean>) {
  const asked = { all: 0, unanswered: 0 };
  const acknowledged: string[] = [];
  let isLoading = true;
  const queries = (async () => {
    const [endpoint] = node.dns;
    assert.ok(endpoint);
    const udp = await openUdpClient(endpoint);
    const query = encodeQuery({ name: "www.example.test", type: 1 });
    for (; isLoading; asked.all++) if ((await udp.ask(query)) === undefined) asked.unanswered += 1;
    udp.close();
  })();
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let index = 0; isLoading; index++) {
      const name = `w${writer}-${index}`;
      const record = { name, type: "A", values: [{ value: "192.0.2.9" }] };
      // The API goes with the thread; what it did not acknowledge may be there or not.
      const answer = await client.ask("POST", `/zones/${zoneId}/records`, record).catch(() => undefined);
      if (answer?.status === 200) acknowledged.push(name);
      else await waitFor("the API is back", 20_000, async () => !isLoading || (await isReady()));
    }
  });
  const end = async () => {
    isLoading = false;
    await Promise.all([queries, ...writers]);
  };
  return { asked, acknowledged, end, [Symbol.asyncDispose]: end };
}

type Fault = {
  readonly name: string;
  readonly file: string;
  /** One of these; which of them a loaded machine decides. */
  readonly says: readonly string[];
  /** When a thread without a sign of life is ended; default: later than any death here. */
  readonly lifelessMs?: number;
};

const ANY_RESTARTS = /^svc_thread_restarts_total\{thread="control"\} [1-9]/m;

/** Plants a fault while the API writes: DNS answers on, and the replacement has all that was acknowledged. */
async function dieUnderWrites({ name, file, says, lifelessMs }: Fault): Promise<void> {
  const fault = join(directory, name.replaceAll(" ", "-"));
  const env = { FAULT_FILE: fault, ...(lifelessMs === undefined ? {} : { FAULT_LIFELESS_MS: String(lifelessMs) }) };
  await using node = await startNode({ main: FAULTY_MAIN, env });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  // Node 26 aborts the process where HTTP/2 brings a request's head and body to a thread that is being ended.
  await using client = await signIn(node.api, ADMIN_PASSWORD, "admin", "1.1");
  const [zone] = (await client.ask("GET", "/zones")).body.items;
  const isReady = async () => (await node.get("/readyz").catch(() => undefined))?.status === 200;
  await using load = startLoad(node, client, zone.id, isReady);
  const { acknowledged, asked } = load;
  await waitFor("some writes", 10_000, () => acknowledged.length > 50);
  await writeFile(fault, file);
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, () => {
    if (node.child.status() !== undefined) throw new Error(`the process ended\n${node.child.output()}`);
    return node.messages().some((message) => message === "thread control ended and is replaced");
  });
  await waitFor("the replacement serves", 20_000, isReady);
  assert.ok(node.messages().some((message) => says.some((start) => message.startsWith(start))));
  const before = acknowledged.length;
  await waitFor("writes go on", 10_000, () => acknowledged.length > before + 20);
  await load.end();
  assert.equal(asked.unanswered, 0);
  assert.ok(asked.all > 0);
  const step = Math.ceil(acknowledged.length / 50);
  for (const name of acknowledged.filter((_, index) => index % step === 0))
    assert.equal(await dig(endpoint, `${name}.example.test`, "A"), "192.0.2.9", name);
  const stored = (await client.ask("GET", `/zones/${zone.id}/records?type=A&limit=500`)).body;
  const names = new Set(stored.items.map(({ name }: { name: string }) => name));
  for (let cursor = stored.next_cursor; cursor !== null; ) {
    const page = (await client.ask("GET", `/zones/${zone.id}/records?type=A&limit=500&cursor=${cursor}`)).body;
    for (const { name } of page.items) names.add(name);
    cursor = page.next_cursor;
  }
  assert.deepEqual(
    acknowledged.filter((name) => !names.has(name)),
    [],
  );
  // With a short time for signs of life a machine with much other work makes a healthy thread lifeless too.
  const restarts = lifelessMs === undefined ? /^svc_thread_restarts_total\{thread="control"\} 1$/m : ANY_RESTARTS;
  assert.match(await (await node.get("/metrics")).text(), restarts);
}

const FAULTS: readonly Fault[] = [
  {
    name: "whose memory fills up is replaced",
    file: "slowly",
    says: [
      "the control thread makes way for another: its memory is nearly full",
      "thread control failed: Worker terminated due to reaching memory limit",
    ],
  },
  {
    name: "that is out of memory in the middle of a transaction is replaced",
    file: "in a transaction",
    says: ["thread control failed: Worker terminated due to reaching memory limit"],
  },
  {
    name: "that never comes back is ended and replaced",
    file: "for ever",
    says: ["thread control gives no sign of life and is ended"],
    lifelessMs: 8_000,
  },
];

for (const fault of FAULTS) {
  test(`under writes, a control thread ${fault.name}; nothing acknowledged is lost`, () => dieUnderWrites(fault));
}

test("a control thread that dies of its memory in one go, with nothing being written, is replaced", async () => {
  const fault = join(directory, "fault-at-once");
  await using node = await startNode({ main: FAULTY_MAIN, env: { FAULT_FILE: fault } });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  await using client = await signIn(node.api);
  await writeFile(fault, "at once");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, () => {
    const messages = node.messages();
    return messages.some((message) => message.startsWith("thread control failed: Worker terminated"));
  });
  assert.equal((await dig(endpoint, "www.example.test", "A")).split("\n").length, 2);
  await waitFor("the replacement serves", 20_000, async () => {
    return (await node.get("/readyz").catch(() => undefined))?.status === 200;
  });
  assert.equal((await client.ask("POST", "/zones", { name: "after.test." })).status, 200);
  assert.match(await dig(endpoint, "after.test", "SOA"), /^ns1\.after\.test\. /);
});
