/**
 * A control thread that fails when it is told to reload while the file FAULT_FILE exists, in the way that the file names:
 * "slowly" takes memory a little at a time, between its other work; "at once" takes all there is in one go; "in a
 * transaction" does so in the middle of the next write; "for ever" never comes back.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { runControl } from "../../../src/node/control-thread.ts";

const taken: number[][] = [];

function takeSome(): void {
  taken.push(new Array<number>(100_000).fill(taken.length + 0.5));
}

/** A body is spelled out inside of its transaction. */
function failInTransaction(): void {
  const { stringify } = JSON;
  const inTransaction = () => (new Error("where").stack ?? "").includes("/store/transaction.ts");
  JSON.stringify = (value: unknown) => {
    while (inTransaction()) takeSome();
    return stringify(value);
  };
}

const FAULTS: Readonly<Record<string, () => void>> = {
  slowly: () => void setInterval(takeSome, 10),
  "at once": () => {
    for (;;) takeSome();
  },
  "in a transaction": failInTransaction,
  "for ever": () => {
    for (;;);
  },
};

if (parentPort !== null) {
  parentPort.on("message", () => {
    const file = process.env.FAULT_FILE ?? "";
    if (!existsSync(file)) return;
    const fault = readFileSync(file, "utf8");
    rmSync(file);
    FAULTS[fault]?.();
  });
  await runControl(workerData, parentPort);
}
