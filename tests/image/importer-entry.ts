/** A control thread for the test that kills it: it publishes large zones without end, and says when it has begun. */
import { parentPort, workerData } from "node:worker_threads";
import type { SharedImage } from "../../src/image/shared.ts";
import { collect, openImageWriter } from "../../src/image/writer.ts";
import { publishNumbered } from "./content.ts";

type ImporterData = { readonly shared: SharedImage; readonly names: number };

const { shared, names }: ImporterData = workerData;
const writer = openImageWriter(shared);
for (let round = 1; ; round++) {
  publishNumbered(writer, "bulk.", (names >>> 1) + ((round * 7_919) % names), (index) => index);
  collect(writer);
  parentPort?.postMessage(round);
}
