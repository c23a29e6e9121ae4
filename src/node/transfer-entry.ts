/** A thread that reads zones of the store and encodes them for transfer, one after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { openSnapshotReader } from "../store/zone-snapshot.ts";
import type { TransferAnswer, TransferQuestion } from "./transfer-messages.ts";
import { encodeZone } from "./transfer-thread.ts";

const { directory, encodingMs }: { readonly directory: string; readonly encodingMs: number } = workerData;
const reader = openSnapshotReader(directory);

function answer({ zone, known }: TransferQuestion): TransferAnswer {
  return reader.read(zone, (snapshot): TransferAnswer => {
    if (snapshot === undefined) return { kind: "absent" };
    const { serial, born } = snapshot;
    if (known?.serial === serial && known.born === born) return { kind: "same" };
    return { kind: "zone", transfer: encodeZone(snapshot, performance.now() + encodingMs), version: { serial, born } };
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
  const moved = reply.kind === "zone" ? reply.transfer.messages.map(({ buffer }) => buffer) : [];
  parentPort?.postMessage(
    reply,
    moved.filter((buffer) => buffer instanceof ArrayBuffer),
  );
});
