/** User time of single threads, measured finely enough that a few seconds of answers tell what one of them costs. */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { treeThreads, treeThreadsCpuTime } from "../support/proc.ts";
import { runToEnd, startChild } from "../support/process.ts";
import { findProgram } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";

/** Begins to measure; what it gives ends that, and gives the user time since in milliseconds. */
export type UserTimeMeter = () => Promise<() => Promise<number>>;

/** Twenty times as fine as the kernel's own clock, and not in step with it. */
const SAMPLES_PER_SECOND = 4_999;
const READ_MS = 30_000;

/** By the kernel's clock, which looks some 250 times a second. */
function clockMeter(root: number, counts: (name: string) => boolean): UserTimeMeter {
  const read = () => treeThreadsCpuTime(root, counts).userMs;
  return async () => {
    const before = read();
    return async () => read() - before;
  };
}

/** By perf, which looks at those threads only, and only sees them outside of the kernel. */
function perfMeter(root: number, counts: (name: string) => boolean, directory: string): UserTimeMeter {
  const file = join(directory, `${root}.perf`);
  return async () => {
    await rm(file, { force: true });
    const threads = treeThreads(root, counts).join(",");
    const args = ["record", "-q", "-F", String(SAMPLES_PER_SECOND), "-e", "cpu-clock:u", "-t", threads, "-o", file];
    const perf = await startChild("perf", "perf", args);
    await waitFor("perf looks", READ_MS, () => {
      if (perf.status() !== undefined) throw new Error(`perf ended at its start\n${perf.output()}`);
      return existsSync(file);
    });
    return async () => {
      await perf.stop();
      const samples = await runToEnd("perf", ["script", "-i", file, "-F", "tid"], READ_MS);
      const count = samples.split("\n").filter((line) => /^\s*\d+\s*$/.test(line)).length;
      return (count * 1_000) / SAMPLES_PER_SECOND;
    };
  };
}

/** Of the threads of a process tree whose names `counts`: by perf where it is installed. */
export function userTimeMeter(root: number, counts: (name: string) => boolean, directory: string): UserTimeMeter {
  if (findProgram("perf") !== undefined) return perfMeter(root, counts, directory);
  console.error("perf is not installed: user time by the kernel's clock, which needs long rounds");
  return clockMeter(root, counts);
}
