/** A UDP listener thread whose answerer is the one for tests; `workerData.kind` says which listener. */
import { parentPort, workerData } from "node:worker_threads";
import { runDgramThread } from "../../../src/listen/dgram-thread.ts";
import { runUdpThread } from "../../../src/listen/udp-thread.ts";
import { createFakeAnswerer } from "./fake-answerer.ts";

if (parentPort !== null) {
  const run = workerData.kind === "batch" ? runUdpThread : runDgramThread;
  await run(workerData, parentPort, createFakeAnswerer);
}
