/** A control thread that takes memory without end when it is told to reload while the file FAULT_FILE exists. */
import { existsSync, rmSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runControl } from "../../../src/node/control-thread.ts";

function takeAllMemory(): void {
  const taken: number[][] = [];
  for (;;) taken.push(new Array<number>(100_000).fill(taken.length + 0.5));
}

if (parentPort !== null) {
  parentPort.on("message", () => {
    const file = process.env.FAULT_FILE ?? "";
    if (!existsSync(file)) return;
    rmSync(file);
    takeAllMemory();
  });
  await runControl(workerData, parentPort);
}
