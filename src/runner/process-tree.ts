/** The processes below another one, and how much memory they hold together. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { PROCESSES_MAX } from "./limits.ts";

/** A file of /proc, "" where the process has ended meanwhile. */
function readProc(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function threadsOf(processId: number): string[] {
  try {
    return readdirSync(`/proc/${processId}/task`);
  } catch {
    return [];
  }
}

/** Whether this kernel tells of a process's children (CONFIG_PROC_CHILDREN). */
export function canSeeChildren(): boolean {
  return existsSync(`/proc/${process.pid}/task/${process.pid}/children`);
}

/** Process ids; a child is its thread's that made it. */
export function childrenOf(processId: number): number[] {
  return threadsOf(processId).flatMap((thread) =>
    readProc(`/proc/${processId}/task/${thread}/children`)
      .split(" ")
      .filter((child) => child !== "")
      .map(Number),
  );
}

const HELD = /^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm;
/** Bubblewrap and its first process are two more than a script may have. */
const LOOKED_AT_MAX = PROCESSES_MAX + 2;

/** Memory in bytes that the process and all below it hold and could not give back: their own, and what they share. */
export function memoryBytesOf(processId: number): number {
  const found = [processId];
  let kilobytes = 0;
  for (let index = 0; index < found.length && index < LOOKED_AT_MAX; index++) {
    const id = found[index] ?? 0;
    for (const [, amount] of readProc(`/proc/${id}/status`).matchAll(HELD)) kilobytes += Number(amount);
    found.push(...childrenOf(id));
  }
  return kilobytes * 1024;
}
