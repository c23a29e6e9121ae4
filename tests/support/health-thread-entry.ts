/**
 * A health thread whose probes do as the host says: "up." and "down.", "toggle." by whether the file TOGGLE exists, "kill." ends
 * the thread and "hang." never gives it back, both while the file FAULT exists.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { ProbeOutcome, ProbeSpec } from "../../src/health/probe.ts";
import { type HealthData, runHealth } from "../../src/node/health-thread.ts";

const { dataDirectory }: HealthData = workerData;
const fault = join(dataDirectory, "FAULT");

async function run({ host }: ProbeSpec): Promise<ProbeOutcome> {
  if (host === "kill." && existsSync(fault)) {
    rmSync(fault);
    process.exit(1);
  }
  if (host === "hang." && existsSync(fault)) {
    rmSync(fault);
    for (;;);
  }
  const isUp = host === "toggle." ? existsSync(join(dataDirectory, "TOGGLE")) : host !== "down.";
  return isUp ? { latencyUs: 100 } : { latencyUs: 100, error: "refused" };
}

if (parentPort !== null) runHealth(workerData, parentPort, () => ({ run, close: () => {} }));
