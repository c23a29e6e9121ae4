/** A thread of DNS over TLS and HTTPS that dies when it is told to reload while the file FAULT_SECURE_FILE exists. */
import { existsSync, rmSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runSecureThread } from "../../../src/node/secure-thread.ts";

if (parentPort !== null) {
  parentPort.on("message", () => {
    const file = process.env.FAULT_SECURE_FILE ?? "";
    if (!existsSync(file)) return;
    rmSync(file);
    throw new Error("planted: the thread dies");
  });
  runSecureThread(workerData, parentPort);
}
