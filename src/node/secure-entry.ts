import { parentPort, workerData } from "node:worker_threads";
import { runSecureThread } from "./secure-thread.ts";

if (parentPort !== null) runSecureThread(workerData, parentPort);
