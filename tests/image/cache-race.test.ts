/** Readers of the cache on two threads while its writer overwrites, flushes, resizes, and is replaced. */
import assert from "node:assert/strict";
import test from "node:test";
import { createCacheWriter } from "../../src/image/cache-writer.ts";
import { createSharedImage } from "../../src/image/shared.ts";
import { cacheKey } from "../support/cached-answers.ts";
import { seededChance } from "../support/chance.ts";
import { nameOfIndex, patternAnswer, RACE_NAMES } from "./cache-pattern.ts";
import { PROGRESS, startReaders } from "./readers.ts";

const RUN_MS = 4_000;
const MIB = 2 ** 20;

test("no reader takes anything for an answer that was not put for its question", async () => {
  const shared = createSharedImage(9);
  const options = { nowSeconds: () => 1_000 };
  const { below } = seededChance(5);
  let writer = createCacheWriter(shared, options);
  writer.resize(MIB);
  const readers = startReaders(shared, new URL("./cache-reader-entry.ts", import.meta.url), 2);
  let value = 1;
  for (const endMs = performance.now() + RUN_MS; performance.now() < endMs; ) {
    for (let count = 0; count < 2_000; count++) writer.put(patternAnswer(below(RACE_NAMES), value++));
    const what = below(40);
    if (what === 0) writer.flush();
    else if (what === 1) writer.resize((1 + below(3)) * MIB);
    else if (what === 2) writer = createCacheWriter(shared, options);
    else if (what === 3) writer.flush({ name: cacheKey(shared, nameOfIndex(below(RACE_NAMES))), isSubtree: false });
  }
  assert.deepEqual(await readers.stop(), []);
  const lookups = readers.progress[PROGRESS.LOOKUPS]!;
  const read = readers.progress[PROGRESS.RRSETS_READ]!;
  assert.ok(
    value > 20_000 && lookups > 20_000 && read > lookups / 20,
    `${value} puts, ${lookups} look-ups, ${read} read`,
  );
});
