import assert from "node:assert/strict";
import { test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { FAULTY_MAIN, type ScenarioNode, startNode } from "./running-node.ts";

const QUERY = encodeQuery({ name: "www.example.test", type: 1 });
const KILL = encodeQuery({ name: "kill-the-thread.example.test", type: 1 });
const THROW = encodeQuery({ name: "throw-an-error.example.test", type: 1 });

/** The most datagrams that one batch holds. */
const BATCH = 64;

/** Longer than a loaded machine takes for an answer, or for a new thread. */
const TIMEOUT_MS = 10_000;
/** Few enough at once for the kernel's buffer of one socket, whichever thread the kernel chooses. */
const WAVES = 50;
const IN_A_WAVE = 4;

async function metric(node: ScenarioNode, series: string): Promise<number> {
  const text = await (await node.get("/metrics")).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

test("a thread that dies under load loses its batch and no query after it", async () => {
  await using node = await startNode({ main: FAULTY_MAIN, env: { SVC_DNS_THREADS: "2" } });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  // Many sockets, so that the kernel spreads them over both threads.
  const clients = await Promise.all(Array.from({ length: 32 }, () => openUdpClient(endpoint)));
  const lost = { whileDying: 0, afterwards: 0 };
  let isDying = true;
  let isLoading = true;
  const load = clients.map(async (client) => {
    while (isLoading) {
      const phase = isDying ? "whileDying" : "afterwards";
      if ((await client.ask(QUERY, TIMEOUT_MS)) === undefined) lost[phase] += 1;
    }
  });
  const deaths = 3;
  for (let death = 1; death <= deaths; death++) {
    const killer = clients[death * 7];
    assert.ok(killer);
    void killer.ask(KILL, 1);
    await waitFor(`replacement ${death}`, 10_000, async () => {
      const [one, other] = await Promise.all(
        ["answer-0", "answer-1"].map((thread) => metric(node, `svc_thread_restarts_total{thread="${thread}"}`)),
      );
      return (one ?? 0) + (other ?? 0) === death && (await node.get("/readyz")).status === 200;
    });
  }
  // Whatever waited for an answer when a thread died has its answer or has given up by now.
  await Promise.all(clients.map((client) => client.ask(QUERY, TIMEOUT_MS)));
  isDying = false;
  const asking = clients.map(async (client) => {
    for (let wave = 0; wave < WAVES; wave++) {
      const wanted = Array.from({ length: IN_A_WAVE }, () => client.ask(QUERY, TIMEOUT_MS));
      for (const answer of await Promise.all(wanted)) if (answer === undefined) lost.afterwards += 1;
    }
  });
  await Promise.all(asking);
  isLoading = false;
  await Promise.all(load);
  for (const client of clients) client.close();
  assert.ok(lost.whileDying <= deaths * BATCH, `lost ${lost.whileDying} while threads died`);
  assert.equal(lost.afterwards, 0);
});

test("a query whose answering throws is dropped, counted and reported; the others of its batch are answered", async () => {
  await using node = await startNode({ main: FAULTY_MAIN });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const client = await openUdpClient(endpoint);
  const timeoutsMs = [TIMEOUT_MS, 1_000, TIMEOUT_MS];
  const answers = await Promise.all([QUERY, THROW, QUERY].map((query, index) => client.ask(query, timeoutsMs[index])));
  client.close();
  assert.deepEqual(
    answers.map((answer) => answer !== undefined),
    [true, false, true],
  );
  assert.equal(await metric(node, "svc_dns_failed_total"), 1);
  assert.equal(await metric(node, 'svc_thread_restarts_total{thread="answer-0"}'), 0);
  const report = await waitFor("the report", 5_000, () => node.messages().find((text) => text.includes("planted")));
  assert.equal(report, "answering a query failed: planted: the answer fails");
  assert.ok(
    node.child.output().includes(Buffer.from(THROW.subarray(2)).toString("hex")),
    "with the bytes of the query",
  );
});
