/**
 * A node in a process of its own, written to by several clients over its API and killed at random moments. Environment:
 * SIGNPOST_CRASH_ROUNDS, SIGNPOST_SEED.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ADMIN_PASSWORD, MAIN, nodeEnvironment, type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { seededChance } from "../support/chance.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { type Child, startChild } from "../support/process.ts";
import { type CrashClient, createCrashClient } from "./client.ts";
import { checkContested, checkDns, entriesByRequest, readHeld, readLog } from "./verify.ts";
import { type Counts, createWriter, type Writer } from "./writer.ts";

const ROUNDS = Number(process.env.SIGNPOST_CRASH_ROUNDS ?? 12);
const SEED = Number(process.env.SIGNPOST_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 6;
const KILL_WITHIN_MS = 1_200;
/** One start in so many is killed as well. */
const KILLED_STARTS = 4;
const START_MS = 1_000;

/** Kills the process some time from now, whatever it does then: the moment is what varies. */
async function killAfter(child: Child, afterMs: number): Promise<void> {
  setTimeout(() => process.kill(child.pid, "SIGKILL"), afterMs);
  assert.equal((await child.exited).signal, "SIGKILL", child.output().slice(-2_000));
}

async function killStart(directory: string, afterMs: number): Promise<void> {
  await killAfter(await startChild("node", process.execPath, [MAIN], { env: nodeEnvironment(directory) }), afterMs);
}

async function runAndKill({ child }: ScenarioNode, writers: readonly Writer[], afterMs: number): Promise<void> {
  let isDead = false;
  const running = Promise.all(writers.map((writer) => writer.run(() => isDead)));
  // What a writer finds wrong ends the test, but not before the node is dead.
  running.catch(() => undefined);
  await killAfter(child, afterMs);
  isDead = true;
  await running;
}

/** Signs every client in and raises the limits of requests; gives the id of a zone that all of them may write. */
async function prepare(clients: readonly CrashClient[]): Promise<string> {
  for (const client of clients) await client.signIn("admin", ADMIN_PASSWORD);
  const limits = { auth: 10_000_000, upload: 10_000_000, write: 10_000_000, read: 10_000_000 };
  const raised = await clients[0]?.ask({ method: "PUT", path: "/config/rate-limits", json: limits });
  assert.equal(raised?.status, 200);
  const zone = await clients[0]?.ask({ method: "POST", path: "/zones", json: { name: "shared.test." } });
  return zone?.body.id;
}

/** The state after a restart: as acknowledged, as logged, as answered. Gives how many queries that took. */
async function check(
  node: ScenarioNode,
  client: CrashClient,
  writers: readonly Writer[],
  { since, sharedZone }: { readonly since: Date; readonly sharedZone: string },
): Promise<number> {
  const held = await readHeld(client);
  const log = await readLog(client, since);
  const touched = writers.flatMap((writer) => [...writer.touched()]);
  for (const writer of writers) writer.verify(held, entriesByRequest(log));
  checkContested(held, sharedZone, log);
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const dns = await openUdpClient(endpoint);
  const queries = await checkDns(dns, held, touched);
  dns.close();
  return queries;
}

test(`after a kill all that was acknowledged is there, and the rest is whole or absent (seed ${SEED})`, async (t) => {
  const chance = seededChance(SEED);
  const directory = await mkdtemp(join(tmpdir(), "signpost-crash-"));
  const start = () => startNode({ zones: [], directory });
  let node = await start();
  const clients = Array.from({ length: CLIENTS }, () => createCrashClient(() => node.api));
  let [queries, kills] = [0, 0];
  try {
    const [first] = clients;
    assert.ok(first);
    const sharedZone = await prepare(clients);
    const writers = clients.map((client, index) =>
      createWriter(client, index, seededChance(SEED * 100 + index), sharedZone),
    );
    for (let round = 0; round < ROUNDS; round++) {
      const since = new Date();
      await runAndKill(node, writers, chance.below(KILL_WITHIN_MS * 10) / 10);
      kills++;
      if (chance.below(KILLED_STARTS) === 0) {
        await killStart(directory, chance.below(START_MS));
        kills++;
      }
      node = await start();
      queries += await check(node, first, writers, { since, sharedZone });
    }
    const sum = (field: keyof Counts) => writers.reduce((total, { counts }) => total + counts[field], 0);
    const made = `${sum("acknowledged")} acknowledged, ${sum("refused")} refused`;
    const unknown = `${sum("unknown")} without an answer, ${sum("unknownButMade")} of them made`;
    t.diagnostic(`${kills} kills, ${made}, ${unknown}; ${queries} queries`);
    assert.ok(sum("acknowledged") > ROUNDS && sum("refused") > 0, "the clients hardly wrote");
  } finally {
    for (const client of clients) await client[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  }
});
