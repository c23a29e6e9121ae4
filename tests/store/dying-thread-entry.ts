/** A thread that writes without an end, whole transactions of rows that belong together, until it is ended or out of memory. */
import { parentPort, workerData } from "node:worker_threads";
import { openStore } from "../../src/store/open-store.ts";
import { DOCUMENTS, documentName } from "./dying-thread-work.ts";

const { directory, hoards } = workerData as { readonly directory: string; readonly hoards: boolean };
const hoard: number[][] = [];
const store = await openStore({
  directory,
  nodeId: "dying",
  secretKey: { kind: "file", key: new Uint8Array(32) },
});
for (let round = store.get("config", [documentName(0)])?.body.settings.round ?? 0; ; ) {
  const next: number = Number(round) + 1;
  round = next;
  await store.write((tx) => {
    for (let index = 0; index < DOCUMENTS; index++) {
      tx.put("config", { name: documentName(index), settings: { round: next } });
    }
  });
  // The number is in the database before anybody hears of it.
  parentPort?.postMessage(next);
  if (hoards) hoard.push(new Array<number>(200_000).fill(next));
}
