/** A thread that reads zones of the store and encodes them for transfer, one after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { openSnapshotReader } from "../store/zone-snapshot.ts";
import type { TransferAnswer, TransferQuestion } from "./transfer-messages.ts";
import { encodeZone } from "./transfer-thread.ts";

const { directory, encodingMs }: { readonly directory: string; readonly encodingMs: number } = workerData;
const reader = openSnapshotReader(directory);

function answer({ zone }: TransferQuestion): TransferAnswer {
  return reader.read(zone, (snapshot): TransferAnswer => {
    if (snapshot === undefined) return { kind: "absent" };
    return { kind: "zone", zone: encodeZone(snapshot, performance.now() + encodingMs), born: snapshot.born };
  });
}

parentPort?.on("message", (question: TransferQuestion | "end") => {
  if (question === "end") {
    parentPort?.close();
    void reader.close();
    return;
  }
  let reply: TransferAnswer;
  try {
    reply = answer(question);
  } catch (error) {
    reply = { kind: "failed", detail: errorText(error) };
  }
  parentPort?.postMessage(reply);
});
