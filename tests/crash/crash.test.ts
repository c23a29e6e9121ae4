/**
 * A node in a process of its own, written to by several clients over its API and killed at random moments. Environment:
 * SIGNPOST_CRASH_ROUNDS, SIGNPOST_SEED.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MAIN, nodeEnvironment, type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { type Child, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { type Clients, checkNode, openClients } from "./clients.ts";

const ROUNDS = Number(process.env.SIGNPOST_CRASH_ROUNDS ?? 12);
const SEED = Number(process.env.SIGNPOST_SEED ?? Date.now() % 1_000_000);
/** A round ends so many acknowledgements after its start, however long the disk takes for them, and a little later. */
const ACKNOWLEDGED_MAX = 40;
const KILL_WITHIN_MS = 600;
/** One start in so many is killed as well. */
const KILLED_STARTS = 4;
const START_MS = 1_000;
const WRITTEN_MS = 60_000;

/** Kills the process some time from now, whatever it does then: the moment is what varies. */
async function killAfter(child: Child, afterMs: number): Promise<void> {
  setTimeout(() => process.kill(child.pid, "SIGKILL"), afterMs);
  assert.equal((await child.exited).signal, "SIGKILL", child.output().slice(-2_000));
}

async function killStart(directory: string, afterMs: number): Promise<void> {
  await killAfter(await startChild("node", process.execPath, [MAIN], { env: nodeEnvironment(directory) }), afterMs);
}

async function runAndKill({ child }: ScenarioNode, clients: Clients, chance: Chance): Promise<void> {
  const enough = clients.count("acknowledged") + chance.below(ACKNOWLEDGED_MAX);
  const afterMs = chance.below(KILL_WITHIN_MS * 10) / 10;
  let isDead = false;
  const running = Promise.all(clients.writers.map((writer) => writer.run(() => isDead)));
  // What a writer finds wrong ends the test, but not before the node is dead.
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  running.then(over, over);
  await waitFor("the clients write", WRITTEN_MS, () => isOver || clients.count("acknowledged") >= enough, 1);
  await killAfter(child, afterMs);
  isDead = true;
  await running;
}

test(`after a kill all that was acknowledged is there, and the rest is whole or absent (seed ${SEED})`, async (t) => {
  const chance = seededChance(SEED);
  const directory = await mkdtemp(join(tmpdir(), "signpost-crash-"));
  const start = () => startNode({ zones: [], directory });
  let node = await start();
  let [queries, kills] = [0, 0];
  try {
    await using clients = await openClients(() => node, SEED, "both");
    for (let round = 0; round < ROUNDS; round++) {
      const since = new Date();
      await runAndKill(node, clients, chance);
      kills++;
      if (chance.below(KILLED_STARTS) === 0) {
        await killStart(directory, chance.below(START_MS));
        kills++;
      }
      node = await start();
      queries += await checkNode(node, clients, since);
    }
    t.diagnostic(`${kills} kills, ${clients.summary()}; ${queries} queries`);
    assert.ok(clients.count("acknowledged") > ROUNDS && clients.count("refused") > 0, "the clients hardly wrote");
  } finally {
    await node[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  }
});
