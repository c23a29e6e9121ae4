import { type ChildProcess, spawn } from "node:child_process";
import { type CpuTime, processTree, treeCpuTime, treeResidentBytes } from "./proc.ts";

export type ExitStatus = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** A child process of a test. Its output is kept (the last part of it, see OUTPUT_KEPT) and never printed. */
export type Child = {
  readonly name: string;
  readonly pid: number;
  /** Standard output and standard error so far, in the order they came. */
  readonly output: () => string;
  /** Settles when the process has ended. */
  readonly exited: Promise<ExitStatus>;
  /** What `exited` gave, or undefined while the process runs. */
  readonly status: () => ExitStatus | undefined;
  readonly cpu: () => CpuTime;
  readonly residentBytes: () => number;
  /** SIGTERM, and SIGKILL to the whole tree when it has not ended within `timeoutMs`. Throws in that second case. */
  readonly stop: (timeoutMs?: number) => Promise<ExitStatus>;
};

export type ChildOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
};

const OUTPUT_KEPT = 1_000_000;

const running = new Set<ChildProcess>();
let guarded = false;

function killTree(pid: number): void {
  for (const member of processTree(pid).reverse()) {
    try {
      process.kill(member, "SIGKILL");
    } catch {
      // It has ended between the look and the signal.
    }
  }
}

/** However this process ends (SIGKILL excepted), no child of a test outlives it. */
function guardExit(): void {
  if (guarded) return;
  guarded = true;
  const killAll = () => {
    for (const child of running) if (child.pid !== undefined) killTree(child.pid);
  };
  process.on("exit", killAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      killAll();
      process.kill(process.pid, signal);
    });
  }
}

/** Starts a program. Rejects when it cannot be started at all (for example ENOENT). */
export async function startChild(
  name: string,
  command: string,
  args: readonly string[],
  options: ChildOptions = {},
): Promise<Child> {
  guardExit();
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
  });
  let output = "";
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-OUTPUT_KEPT);
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  running.add(child);
  let status: ExitStatus | undefined;
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once("exit", (code, signal) => {
      running.delete(child);
      status = { code, signal };
    });
    // "close" comes after the pipes have ended, so that output() is whole by then.
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      running.delete(child);
      reject(new Error(`${name}: cannot start ${command}: ${error.message}`));
    });
  });
  const pid = child.pid ?? 0;
  return {
    name,
    pid,
    output: () => output,
    exited,
    status: () => status,
    cpu: () => treeCpuTime(pid),
    residentBytes: () => treeResidentBytes(pid),
    stop: (timeoutMs = 60_000) => stopChild(name, child, exited, timeoutMs),
  };
}

async function stopChild(
  name: string,
  child: ChildProcess,
  exited: Promise<ExitStatus>,
  timeoutMs: number,
): Promise<ExitStatus> {
  let overdue = false;
  const timer = setTimeout(() => {
    overdue = true;
    if (child.pid !== undefined) killTree(child.pid);
  }, timeoutMs);
  child.kill("SIGTERM");
  const status = await exited;
  clearTimeout(timer);
  if (overdue) throw new Error(`${name}: did not end within ${timeoutMs} ms of SIGTERM`);
  return status;
}

/** Runs a program to its end and gives its output. Throws with that output when it fails or takes too long. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  timeoutMs: number,
  options: ChildOptions = {},
): Promise<string> {
  const child = await startChild(command, command, args, options);
  let overdue = false;
  const timer = setTimeout(() => {
    overdue = true;
    killTree(child.pid);
  }, timeoutMs);
  const { code, signal } = await child.exited;
  clearTimeout(timer);
  if (overdue) throw new Error(`${command}: not done within ${timeoutMs} ms\n${child.output()}`);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: exit ${code ?? signal}\n${child.output()}`);
  return child.output();
}
