/**
 * A control thread that takes memory without end when it is told to reload while the file FAULT_FILE exists: "at once" in
 * the file takes all there is in one go, anything else a little at a time, between its other work.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runControl } from "../../../src/node/control-thread.ts";

const taken: number[][] = [];

function takeSome(): void {
  taken.push(new Array<number>(100_000).fill(taken.length + 0.5));
}

if (parentPort !== null) {
  parentPort.on("message", () => {
    const file = process.env.FAULT_FILE ?? "";
    if (!existsSync(file)) return;
    const isAtOnce = readFileSync(file, "utf8") === "at once";
    rmSync(file);
    while (isAtOnce) takeSome();
    setInterval(takeSome, 10);
  });
  await runControl(workerData, parentPort);
}
