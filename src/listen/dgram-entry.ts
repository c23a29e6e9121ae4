import { parentPort, workerData } from "node:worker_threads";
import { runDgramThread } from "./dgram-thread.ts";

if (parentPort !== null) await runDgramThread(workerData, parentPort);
