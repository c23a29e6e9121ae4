import { parentPort, workerData } from "node:worker_threads";
import { runControl } from "./control-thread.ts";

if (parentPort !== null) await runControl(workerData, parentPort);
