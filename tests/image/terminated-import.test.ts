import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { usedBytes } from "../../src/image/arena.ts";
import { SEGMENT_UNITS, UNIT_BYTES } from "../../src/image/layout.ts";
import { CONTROL, createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { collect, deleteZone, openImageWriter } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { waitFor } from "../support/wait.ts";
import { auditArena } from "./audit.ts";
import { keyOf, publishNumbered } from "./content.ts";
import { startReaders } from "./readers.ts";
import { STABLE_NAMES, STABLE_ZONE, stableValue } from "./universe.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const DEATHS = 6;
const NAMES = 10_000;

/** Runs an importer and kills it in the middle of a zone, when that has some number of names. */
async function importAndDie(shared: SharedImage, chance: Chance): Promise<void> {
  const worker = new Worker(new URL("./importer-entry.ts", import.meta.url), { workerData: { shared, names: NAMES } });
  await once(worker, "message");
  const control = new Int32Array(shared.control);
  const names = Atomics.load(control, CONTROL.NAMES) + chance.below(NAMES / 2);
  await waitFor(`${names} names`, 20_000, () => Atomics.load(control, CONTROL.NAMES) > names, 0);
  await worker.terminate();
}

function contentBytes(writer: ImageWriter): number {
  return usedBytes(writer.arena) - writer.segments.size * SEGMENT_UNITS * UNIT_BYTES;
}

test("an import whose thread is terminated loses no memory, and readers notice nothing", async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = seededChance(SEED);
  const shared = createSharedImage(chance.below(2 ** 31));
  publishNumbered(openImageWriter(shared), STABLE_ZONE, STABLE_NAMES, stableValue);
  let writer = openImageWriter(shared);
  while (collect(writer));
  const expected = contentBytes(writer);
  const readers = startReaders(shared, new URL("./reader-entry.ts", import.meta.url), 1);
  for (let death = 0; death < DEATHS; death++) {
    await importAndDie(shared, chance);
    writer = openImageWriter(shared);
    collect(writer);
    auditArena(writer);
  }
  const faults = await readers.stop();
  assert.deepEqual(faults, [], `readers, SEED=${SEED}`);
  assert.ok(deleteZone(writer, keyOf(writer.view, "bulk.")));
  while (collect(writer));
  auditArena(writer);
  assert.equal(contentBytes(writer), expected);
});
