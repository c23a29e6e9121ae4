import { parentPort, workerData } from "node:worker_threads";
import { openExchanges } from "./resolve-exchanges.ts";
import { runResolve } from "./resolve-thread.ts";

if (parentPort !== null) runResolve(workerData, parentPort, openExchanges);
