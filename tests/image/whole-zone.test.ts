import assert from "node:assert/strict";
import test from "node:test";
import { createSharedImage } from "../../src/image/shared.ts";
import { collect, openImageWriter } from "../../src/image/writer.ts";
import { seededChance } from "../support/chance.ts";
import { publishNumbered } from "./content.ts";
import { PROGRESS, startReaders } from "./readers.ts";
import { NAMES_MIN, ZONE_NAME } from "./whole-zone.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const DURATION_MS = 2_500;
/** A loaded machine takes longer for as much. */
const DURATION_MS_MAX = 30_000;
const LOOKUPS_MIN = 20_000;
const INCARNATIONS_MIN = 50;

test("a zone is replaced by one store: a reader has the old one whole or the new one whole", async (t) => {
  t.diagnostic(`SEED=${SEED}`);
  const chance = seededChance(SEED);
  const shared = createSharedImage(chance.below(2 ** 31));
  const writer = openImageWriter(shared);
  const publish = (incarnation: number) =>
    publishNumbered(writer, ZONE_NAME, NAMES_MIN + chance.below(400), () => incarnation);
  publish(1);
  const readers = startReaders(shared, new URL("./whole-zone-entry.ts", import.meta.url), 2);
  const begun = performance.now();
  const hasSeenEnough = () =>
    readers.progress[PROGRESS.LOOKUPS]! > LOOKUPS_MIN && readers.progress[PROGRESS.RRSETS_READ]! > INCARNATIONS_MIN;
  const goesOn = () => {
    const elapsedMs = performance.now() - begun;
    return elapsedMs < DURATION_MS || (elapsedMs < DURATION_MS_MAX && !hasSeenEnough());
  };
  let incarnation = 1;
  while (goesOn()) {
    publish(++incarnation);
    collect(writer);
  }
  const faults = await readers.stop();
  assert.deepEqual(faults, [], `readers, SEED=${SEED}`);
  const { LOOKUPS, RRSETS_READ } = PROGRESS;
  assert.ok(hasSeenEnough(), `${readers.progress[LOOKUPS]} look-ups saw ${readers.progress[RRSETS_READ]} incarnations`);
});
