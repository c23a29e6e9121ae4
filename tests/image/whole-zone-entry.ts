/** A reader beside the test of whole zones: it reads many names through one zone body and wants one value in all of them. */
import { parentPort, workerData } from "node:worker_threads";
import { createLookup, FOUND, findZone, lookUpName } from "../../src/answer/lookup.ts";
import { NODE, UNIT_WORDS } from "../../src/image/layout.ts";
import type { SharedImage } from "../../src/image/shared.ts";
import { enterImage, leaveImage, openView, refreshView } from "../../src/image/view.ts";
import { keyOf, readPattern } from "./content.ts";
import { PROGRESS } from "./readers.ts";
import { NAMES_MIN, ZONE_NAME } from "./whole-zone.ts";

type ReaderData = { readonly shared: SharedImage; readonly thread: number; readonly progress: SharedArrayBuffer };

const { shared, thread, progress }: ReaderData = workerData;
const words = new Int32Array(progress);
const view = openView(shared);
const lookup = createLookup();
const names = Array.from({ length: NAMES_MIN }, (_, index) => keyOf(view, `n${index}.${ZONE_NAME}`));
const apex = keyOf(view, ZONE_NAME);

function readValue(index: number): number {
  lookUpName(view, lookup, names[index]!);
  if (lookup.found !== FOUND.NODE) throw new Error(`n${index} is not found`);
  if (lookup.node >= view.limit) refreshView(view);
  const rrset = view.words[lookup.node * UNIT_WORDS + NODE.RRSETS]!;
  if (rrset === 0) throw new Error(`n${index} has no RRset`);
  return readPattern(view, rrset).value;
}

try {
  let latest = 0;
  while (Atomics.load(words, PROGRESS.STOP) === 0) {
    enterImage(view, thread);
    if (findZone(view, lookup, apex, 0) === 0) throw new Error("the zone is not found");
    // The label is of the names that follow, each one longer than the apex.
    lookup.apexLabel = 1;
    const value = readValue(0);
    for (let index = 1; index < NAMES_MIN; index++) {
      const other = readValue(index);
      if (other !== value) throw new Error(`n${index} is of incarnation ${other}, n0 of ${value}`);
    }
    if (value < latest) throw new Error(`incarnation ${value} behind ${latest}`);
    if (value !== latest) Atomics.add(words, PROGRESS.RRSETS_READ, 1);
    latest = value;
    leaveImage(view, thread);
    Atomics.add(words, PROGRESS.LOOKUPS, NAMES_MIN);
  }
} catch (error) {
  parentPort?.postMessage(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
