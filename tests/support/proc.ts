import { readdirSync, readFileSync } from "node:fs";

/** CPU time in milliseconds. */
export type CpuTime = { readonly userMs: number; readonly systemMs: number };

/** Milliseconds a clock tick of /proc (USER_HZ is 100 on every architecture that Node runs on). */
const TICK_MS = 10;

type Stat = { readonly parent: number; readonly userTicks: number; readonly systemTicks: number };

/** A file's text, or undefined where the process has ended meanwhile or may not be read. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function readStat(pid: number): Stat | undefined {
  return statIn(`/proc/${pid}/stat`);
}

function statIn(path: string): Stat | undefined {
  const text = readProc(path);
  if (text === undefined) return undefined;
  // The command name is in parentheses and may hold anything, so the fields are counted from the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { parent: Number(fields[1]), userTicks: Number(fields[11]), systemTicks: Number(fields[12]) };
}

/** The process ids of `root` and of all its living descendants. */
export function processTree(root: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    const parent = Number.isInteger(pid) ? readStat(pid)?.parent : undefined;
    if (parent === undefined) continue;
    const siblings = childrenOf.get(parent);
    if (siblings === undefined) childrenOf.set(parent, [pid]);
    else siblings.push(pid);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(childrenOf.get(pid) ?? []));
  return tree;
}

/** CPU time that the living processes of the tree have used, threads included; 10 ms is the kernel's resolution. */
export function treeCpuTime(root: number): CpuTime {
  let userMs = 0;
  let systemMs = 0;
  for (const pid of processTree(root)) {
    const stat = readStat(pid);
    if (stat === undefined) continue;
    userMs += stat.userTicks * TICK_MS;
    systemMs += stat.systemTicks * TICK_MS;
  }
  return { userMs, systemMs };
}

type Thread = { readonly pid: number; readonly thread: string };

function threadsOf(root: number, counts: (name: string) => boolean): readonly Thread[] {
  return processTree(root).flatMap((pid) =>
    threadIds(pid)
      .filter((thread) => counts(readProc(`/proc/${pid}/task/${thread}/comm`)?.trim() ?? ""))
      .map((thread) => ({ pid, thread })),
  );
}

function threadIds(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Ids of the living threads of the tree whose name `counts`. */
export function treeThreads(root: number, counts: (name: string) => boolean): readonly string[] {
  return threadsOf(root, counts).map(({ thread }) => thread);
}

/**
 * CPU time of the living threads of the tree whose name `counts`. The kernel splits what a process used into user and system
 * by the shares of its whole life; of a thread that only answers they are those of its answers.
 */
export function treeThreadsCpuTime(root: number, counts: (name: string) => boolean): CpuTime {
  let userMs = 0;
  let systemMs = 0;
  for (const { pid, thread } of threadsOf(root, counts)) {
    const stat = statIn(`/proc/${pid}/task/${thread}/stat`);
    if (stat === undefined) continue;
    userMs += stat.userTicks * TICK_MS;
    systemMs += stat.systemTicks * TICK_MS;
  }
  return { userMs, systemMs };
}

/**
 * Resident memory of the tree in bytes. Pages that forked processes share count once (Pss, not Rss), which is what
 * makes NSD's parent and child comparable with a threaded server.
 */
export function treeResidentBytes(root: number): number {
  let bytes = 0;
  for (const pid of processTree(root)) {
    const rollup = readProc(`/proc/${pid}/smaps_rollup`) ?? "";
    const kibibytes = /^Pss:\s+(\d+) kB/m.exec(rollup)?.[1];
    if (kibibytes !== undefined) bytes += Number(kibibytes) * 1024;
  }
  return bytes;
}
