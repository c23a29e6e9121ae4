/**
 * A process whose writing thread dies again and again: ended from outside, or out of memory. Prints "survived" when each
 * of the threads found all that its predecessor had acknowledged, whole.
 */
import { strict as assert } from "node:assert";
import { Worker } from "node:worker_threads";
import { errorCode } from "../../src/base/errors.ts";
import { openStore } from "../../src/store/open-store.ts";
import { DOCUMENTS, documentName } from "./dying-thread-work.ts";

const [directory = "", manner = "", rounds = "0"] = process.argv.slice(2);
const hoards = manner === "memory";

async function liveAndDie(): Promise<number> {
  const worker = new Worker(new URL("./dying-thread-entry.ts", import.meta.url), {
    workerData: { directory, hoards },
    ...(hoards && { resourceLimits: { maxOldGenerationSizeMb: 64 } }),
  });
  let acknowledged = 0;
  worker.on("message", (round: number) => {
    acknowledged = round;
  });
  worker.on("error", (error) => assert.equal(errorCode(error), "ERR_WORKER_OUT_OF_MEMORY"));
  // events.once would reject with the error that is expected here.
  const ended = new Promise((resolve) => worker.on("exit", resolve));
  if (!hoards) {
    for (let heard = 0; heard < 2; heard++) await new Promise((resolve) => worker.once("message", resolve));
    await worker.terminate();
  }
  await ended;
  return acknowledged;
}

for (let round = 0; round < Number(rounds); round++) {
  const acknowledged = await liveAndDie();
  await using store = await openStore({
    directory,
    nodeId: "dying",
    secretKey: { kind: "file", key: new Uint8Array(32) },
  });
  const found = Array.from({ length: DOCUMENTS }, (_, index) =>
    Number(store.get("config", [documentName(index)])?.body.settings.round),
  );
  assert.equal(new Set(found).size, 1, `a transaction is there in part: ${found.join(" ")}`);
  assert.ok((found[0] ?? 0) >= acknowledged, `round ${acknowledged} was acknowledged, ${found[0]} is there`);
}
console.log("survived");
process.exit(0);
