import { parentPort, workerData } from "node:worker_threads";
import { runStreamThread } from "./stream-thread.ts";

if (parentPort !== null) await runStreamThread(workerData, parentPort);
