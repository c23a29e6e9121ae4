/** A reader beside the writer of the cache: finds entries without pause, and checks what isIntact calls intact. */
import { parentPort, workerData } from "node:worker_threads";
import {
  findCached,
  isIntact,
  noteRouting,
  noteUsed,
  openCacheView,
  refreshCache,
  touchBucket,
  touchEntry,
} from "../../src/image/cache-view.ts";
import type { SharedImage } from "../../src/image/shared.ts";
import { cacheKey, readCached } from "../support/cached-answers.ts";
import { isPatternAnswer, nameOfIndex, RACE_NAMES } from "./cache-pattern.ts";
import { PROGRESS } from "./readers.ts";

type ReaderData = { readonly shared: SharedImage; readonly thread: number; readonly progress: SharedArrayBuffer };

const { shared, thread, progress }: ReaderData = workerData;
const words = new Int32Array(progress);
const view = openCacheView(shared);
const keys = Array.from({ length: RACE_NAMES }, (_, index) => cacheKey(shared, nameOfIndex(index)));

function readOne(index: number): boolean {
  const key = keys[index]!;
  touchBucket(view, key.hashes[0]!, 1, 0);
  touchEntry(view, key.hashes[0]!, 1, 0);
  const entry = findCached(view, key, 1, 0);
  if (entry === 0) return false;
  // What the index said: the word of the entry may be another's by now.
  const { start } = view;
  noteRouting(view, start, index);
  noteUsed(view);
  let answer: ReturnType<typeof readCached> | undefined;
  try {
    answer = readCached(view, entry);
  } catch {
    // Nonsense is to be expected of what is not intact, and then only.
  }
  if (!isIntact(view, start)) return false;
  if (answer === undefined || !isPatternAnswer(index, answer)) throw new Error(`name ${index} is torn`);
  return true;
}

try {
  let index = thread * 1_000;
  while (Atomics.load(words, PROGRESS.STOP) === 0) {
    refreshCache(view);
    let read = 0;
    for (let count = 0; count < 500; count++) {
      index = (index + 7) % RACE_NAMES;
      if (readOne(index)) read++;
    }
    Atomics.add(words, PROGRESS.LOOKUPS, 500);
    Atomics.add(words, PROGRESS.RRSETS_READ, read);
  }
} catch (error) {
  parentPort?.postMessage(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
