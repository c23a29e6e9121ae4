import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { applyToModel, type ZoneModel, zoneOf } from "./crash-work.ts";

const WRITERS = 6;
/** A round ends so many acknowledgements after the store is open, on a disk that may be slow, and a little later. */
const ACKNOWLEDGED_MAX = 60;
const KILL_WITHIN_MS = 20;
const ROUNDS = Number(process.env.SIGNPOST_STORE_CRASH_ROUNDS ?? 25);
const SEED = Number(process.env.SIGNPOST_SEED ?? Date.now() % 1_000_000);
const child = fileURLToPath(new URL("./crash-child.ts", import.meta.url));

/** Runs the child from those numbers on, kills it some time after so many acknowledgements, and gives what it said. */
async function runAndKill(
  directory: string,
  nexts: readonly number[],
  after: { readonly acknowledged: number; readonly ms: number },
): Promise<string> {
  const running = spawn(process.execPath, [child, directory, ...nexts.map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  let reached: () => void = () => undefined;
  const isReached = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    running.once("close", (_, signal) => {
      reached();
      resolve(signal);
    });
  });
  running.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    // The first line says that the store is open.
    if (said.split("\n").length - 2 >= after.acknowledged) reached();
  });
  await isReached;
  // The moment of death is what varies.
  setTimeout(() => running.kill("SIGKILL"), after.ms);
  assert.equal(await ended, "SIGKILL", said);
  return said;
}

function lastAcknowledged(said: string, writer: number, before: number): number {
  const numbers = said.split("\n").flatMap((line) => {
    const [who, number] = line.split(" ");
    return who === String(writer) && number !== undefined ? [Number(number)] : [];
  });
  return numbers.at(-1) ?? before;
}

test(`after a kill all that was acknowledged is there, and the rest is whole or absent (seed ${SEED})`, async (t) => {
  const chance = seededChance(SEED);
  const directory = mkdtempSync(join(tmpdir(), "signpost-crash-"));
  const models: ZoneModel[] = Array.from({ length: WRITERS }, () => new Map());
  const done: number[] = models.map(() => 0);
  let acknowledged = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const said = await runAndKill(
        directory,
        done.map((number) => number + 1),
        { acknowledged: chance.below(ACKNOWLEDGED_MAX), ms: chance.below(KILL_WITHIN_MS * 10) / 10 },
      );
      await using store = await openStore({
        directory,
        nodeId: "crash",
        secretKey: { kind: "file", key: new Uint8Array(32) },
      });
      for (const [writer, model] of models.entries()) {
        const before = done[writer] ?? 0;
        const last = lastAcknowledged(said, writer, before);
        acknowledged += last - before;
        const filter = { resource: zoneOf(writer) };
        const logged = store.auditPage(filter, { limit: 5_000 }).entries.slice(0, 1)[0]?.resource_id ?? `${writer}-0`;
        const reached = Number(logged.split("-")[1]);
        assert.ok(
          reached === last || reached === last + 1,
          `writer ${writer}: ${last} acknowledged, ${reached} logged`,
        );
        for (let number = before + 1; number <= reached; number++) {
          applyToModel(model, number);
          const entries = store.auditPage({ resource_id: `${writer}-${number}` }, { limit: 10 }).entries;
          assert.equal(entries.length, 1, `change ${number} of writer ${writer} is logged ${entries.length} times`);
        }
        done[writer] = reached;
        const records = store.list("record", { prefix: [zoneOf(writer)], limit: 1000 });
        const found = new Map(records.map(({ body }) => [body.name, body.ttl]));
        assert.deepEqual(found, new Map([...model].sort(([left], [right]) => (left < right ? -1 : 1))));
        assert.equal(store.count("record", zoneOf(writer)), model.size);
      }
    }
    t.diagnostic(`${ROUNDS} kills, ${acknowledged} acknowledged writes`);
    assert.ok(acknowledged > ROUNDS, "the writers hardly wrote");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
