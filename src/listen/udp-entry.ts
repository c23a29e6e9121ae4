import { parentPort, workerData } from "node:worker_threads";
import { runUdpThread } from "./udp-thread.ts";

if (parentPort !== null) runUdpThread(workerData, parentPort);
