/**
 * Preloaded into a node (`node --import`): how long the control thread runs at a stretch, by its own processor time, so that what
 * else the machine does counts for nothing. Every second the longest stretch is appended to the file TURN_WATCH as a line of JSON.
 */
import { appendFileSync } from "node:fs";
import { threadName } from "node:worker_threads";

export type TurnSeen = { readonly atMs: number; readonly longestMs: number };

const SAMPLE_MS = 1;
const WRITE_MS = 1_000;

const file = process.env.TURN_WATCH;
if (threadName === "control" && file !== undefined) watch(file);

/** Between two turns of a short timer there is at least one turn of the event loop, and never less than the longest of them. */
function watch(path: string): void {
  const usedMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let before = usedMs();
  let longestMs = 0;
  let writtenMs = performance.now();
  const timer = setInterval(() => {
    const now = usedMs();
    longestMs = Math.max(longestMs, now - before);
    if (performance.now() - writtenMs > WRITE_MS) {
      appendFileSync(path, `${JSON.stringify({ atMs: Date.now(), longestMs } satisfies TurnSeen)}\n`);
      writtenMs = performance.now();
      longestMs = 0;
    }
    before = usedMs();
  }, SAMPLE_MS);
  timer.unref();
}
