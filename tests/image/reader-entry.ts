/** A reader beside the model test: looks names up without pause and checks all that holds at every moment. */
import { parentPort, workerData } from "node:worker_threads";
import { createLookup, FOUND, findZone, lookUpName } from "../../src/answer/lookup.ts";
import { NODE, RRSET, UNIT_WORDS } from "../../src/image/layout.ts";
import type { NameKey } from "../../src/image/name-key.ts";
import type { SharedImage } from "../../src/image/shared.ts";
import { enterImage, type ImageView, leaveImage, openView, refreshView } from "../../src/image/view.ts";
import { keyOf, readPattern } from "./content.ts";
import { PROGRESS } from "./readers.ts";
import { checkPlace, STABLE_NAMES, STABLE_ZONE, stableValue, universeKeys } from "./universe.ts";

type ReaderData = { readonly shared: SharedImage; readonly thread: number; readonly progress: SharedArrayBuffer };

const { shared, thread, progress }: ReaderData = workerData;
const words = new Int32Array(progress);
const view = openView(shared);
const lookup = createLookup();
const keys = universeKeys(view);
const names = [...keys.values()];
const stable = Array.from({ length: STABLE_NAMES }, (_, index) => keyOf(view, `n${index}.${STABLE_ZONE}`));

/** Reads every RRset at a node, gives each value to `check`, and returns how many there are. */
function readNode(image: ImageView, node: number, check: (value: number) => void): number {
  let count = 0;
  for (let rrset = image.words[node * UNIT_WORDS + NODE.RRSETS]!; rrset !== 0; count++) {
    if (rrset >= image.limit) refreshView(image);
    check(readPattern(image, rrset).value);
    rrset = image.words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  return count;
}

function readName(key: NameKey): number {
  if (findZone(view, lookup, key, 0) === 0) return 0;
  const apexLength = key.length - key.offsets[lookup.apexLabel]!;
  lookUpName(view, lookup, key);
  if (lookup.found === FOUND.NOTHING) return 0;
  return readNode(view, lookup.node, (value) => checkPlace(view, lookup.node, value, apexLength, keys));
}

function readStable(index: number): void {
  const key = stable[index]!;
  if (findZone(view, lookup, key, 0) === 0) throw new Error("the stable zone is not found");
  lookUpName(view, lookup, key);
  if (lookup.found !== FOUND.NODE) throw new Error(`stable name ${index} is not found`);
  const count = readNode(view, lookup.node, (value) => {
    if (value !== stableValue(index)) throw new Error(`stable name ${index} has value ${value}`);
  });
  if (count !== 1) throw new Error(`stable name ${index} has ${count} RRsets`);
}

try {
  for (let round = 0; Atomics.load(words, PROGRESS.STOP) === 0; round++) {
    enterImage(view, thread);
    // As many as a batch of queries: readers stay inside for a while, and the writer meets them there.
    let read = 0;
    for (const key of names) read += readName(key);
    for (let index = 0; index < 20; index++) readStable((round * 20 + index) % STABLE_NAMES);
    leaveImage(view, thread);
    Atomics.add(words, PROGRESS.LOOKUPS, names.length + 20);
    Atomics.add(words, PROGRESS.RRSETS_READ, read);
  }
} catch (error) {
  parentPort?.postMessage(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
