/**
 * The control thread ends in the middle of writes, again and again, while DNS is asked without a pause. Environment:
 * SIGNPOST_CRASH_ROUNDS, SIGNPOST_SEED.
 */
import assert from "node:assert/strict";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { seededChance } from "../support/chance.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type Clients, checkNode, openClients } from "./clients.ts";

const MAIN = fileURLToPath(new URL("./faults/main.ts", import.meta.url));
const ROUNDS = Math.min(Number(process.env.SIGNPOST_CRASH_ROUNDS ?? 3), 100);
const SEED = Number(process.env.SIGNPOST_SEED ?? Date.now() % 1_000_000);
const END_WITHIN_MS = 600;
const KINDS = ["exit", "throw", "memory"] as const;
const REPLACED_MS = 30_000;

/** Asks one query after the other until it is ended. */
function askWithoutPause(node: ScenarioNode) {
  const counts = { asked: 0, unanswered: 0 };
  let isOver = false;
  const asking = (async () => {
    const [endpoint] = node.dns;
    assert.ok(endpoint);
    const client = await openUdpClient(endpoint);
    const query = encodeQuery({ name: "shared.test", type: 6 });
    for (; !isOver; counts.asked++) if ((await client.ask(query)) === undefined) counts.unanswered++;
    client.close();
  })();
  const end = async () => {
    isOver = true;
    await asking;
    return counts;
  };
  return { end, [Symbol.asyncDispose]: async () => void (await end()) };
}

/** Lets the thread end some time from now and waits until its replacement has taken over. */
async function endControl(node: ScenarioNode, { writers }: Clients, kind: string, afterMs: number, fault: string) {
  const deaths = () => node.messages().filter((text) => text === "thread control ended and is replaced").length;
  const before = deaths();
  let isOver = false;
  const running = Promise.all(writers.map((writer) => writer.run(() => isOver)));
  running.catch(() => undefined);
  setTimeout(() => void writeFile(`${fault}.new`, kind).then(() => rename(`${fault}.new`, fault)), afterMs);
  try {
    await waitFor(`the death by ${kind} is reported`, REPLACED_MS, () => {
      if (node.child.status() !== undefined) throw new Error(`the process ended\n${node.child.output().slice(-5_000)}`);
      return deaths() > before;
    });
  } finally {
    isOver = true;
    await running;
  }
  await waitFor("the replacement serves", REPLACED_MS, async () => {
    return (await node.get("/readyz").catch(() => undefined))?.status === 200;
  });
}

test(`DNS answers on while the control thread dies, and agrees with the API afterwards (seed ${SEED})`, async (t) => {
  const chance = seededChance(SEED);
  const directory = await mkdtemp(join(tmpdir(), "signpost-crash-"));
  const fault = join(directory, "fault");
  let queries = 0;
  try {
    await using node = await startNode({ zones: [], directory, main: MAIN, env: { FAULT_FILE: fault } });
    // Node (26.10) aborts the process where a thread is torn down while it reads a request over HTTP/2.
    await using clients = await openClients(() => node, SEED, "1.1");
    await using asking = askWithoutPause(node);
    for (let round = 0; round < ROUNDS; round++) {
      const since = new Date();
      const kind = KINDS[round % KINDS.length] ?? "exit";
      await endControl(node, clients, kind, chance.below(END_WITHIN_MS * 10) / 10, fault);
      queries += await checkNode(node, clients, since);
    }
    const { asked, unanswered } = await asking.end();
    t.diagnostic(`${ROUNDS} deaths, ${clients.summary()}; ${asked + queries} queries`);
    assert.ok(asked > ROUNDS);
    assert.equal(unanswered, 0);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
