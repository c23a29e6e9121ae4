/** A control thread that ends in the midst of whatever it does, in the way that the file FAULT_FILE names. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runControl } from "../../../src/node/control-thread.ts";

const LOOK_MS = 1;

function fail(kind: string): void {
  if (kind === "throw") throw new Error("planted: the control thread fails");
  if (kind === "exit") process.exit(1);
  const taken: number[][] = [];
  while (kind === "memory") taken.push(new Array<number>(100_000).fill(taken.length + 0.5));
}

if (parentPort !== null) {
  // Not told by a message: the moment is not to wait for the thread's own queue.
  setInterval(() => {
    const file = process.env.FAULT_FILE ?? "";
    if (!existsSync(file)) return;
    const kind = readFileSync(file, "utf8");
    rmSync(file);
    fail(kind);
  }, LOOK_MS);
  await runControl(workerData, parentPort);
}
