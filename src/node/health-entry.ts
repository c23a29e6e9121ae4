import { parentPort, workerData } from "node:worker_threads";
import { createProber } from "../health/prober.ts";
import { runHealth } from "./health-thread.ts";

if (parentPort !== null) runHealth(workerData, parentPort, createProber);
