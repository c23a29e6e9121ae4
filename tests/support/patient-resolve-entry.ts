/**
 * The thread that resolves, with a clock that runs at a twentieth of its speed: an upstream that is late because the machine
 * is busy is waited for, so that each question reaches it once.
 */
import { parentPort, workerData } from "node:worker_threads";
import { openExchanges } from "../../src/node/resolve-exchanges.ts";
import { runResolve } from "../../src/node/resolve-thread.ts";

const SLOWNESS = 20;

if (parentPort !== null) {
  const now = performance.now.bind(performance);
  performance.now = () => now() / SLOWNESS;
  runResolve(workerData, parentPort, openExchanges);
}
