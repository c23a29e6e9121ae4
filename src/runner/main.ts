/** The runner of scripts: a program of its own, so that what runs scripts has nothing of the service in its memory. */
import { chmodSync, lstatSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { errorText, OperatorError } from "../base/errors.ts";
import { type Log, openLog } from "../base/log.ts";
import { type RunnerArguments, runnerArguments } from "./arguments.ts";
import { blockAddresses } from "./blocked-addresses.ts";
import { prepareCell } from "./cell.ts";
import { closeInherited } from "./descriptors.ts";
import { createGuard, type Guard } from "./guard.ts";
import { createScriptQueue, type ScriptQueue } from "./queue.ts";
import { runScript } from "./run-script.ts";
import { testSandbox } from "./self-test.ts";
import { createScriptServer } from "./server.ts";
import { scriptUser } from "./user.ts";

const STDERR = 2;
/** The first descriptor of those that a service manager hands over (sd_listen_fds(3)). */
const FIRST_INHERITED = 3;

/** Runs until it is told to end. A fault that the operator can mend ends in one line on stderr and exit code 1. */
export async function runScriptRunner(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  try {
    const options = runnerArguments(words);
    const { log, flush } = openLog(STDERR, options.logLevel, options.logFormat);
    closeInherited(options.socket === undefined ? [FIRST_INHERITED] : []);
    yieldMemory();
    const { server, end } = startRunnerHere(options, log);
    const stop = async () => {
      end();
      await flush();
      process.exit(0);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void stop());
    if (options.isChild) {
      process.stdin.on("error", () => void stop());
      process.stdin.on("close", () => void stop());
      process.stdin.resume();
    }
    await listen(server, options.socket, environment);
    log("debug", "the runner of scripts takes requests");
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    process.stderr.write(`signpost: ${error.message}\n`);
    process.exit(1);
  }
}

/** Scripts inherit it: where memory runs out, the kernel takes it from them first. */
function yieldMemory(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Where this is forbidden, limits of memory and processes still hold.
  }
}

function startRunnerHere(options: RunnerArguments, log: Log): { readonly server: Server; readonly end: () => void } {
  const user = scriptUser(options.user);
  const prepared = prepareCell({ ...user, directory: options.directory, hidden: options.hidden });
  let calledOff = new AbortController();
  const callOff = () => {
    calledOff.abort();
    calledOff = new AbortController();
  };
  const now = () => performance.now();
  if (prepared.kind === "refused") {
    log("error", `no script runs: ${prepared.why}`);
    const refusing = createScriptQueue({
      run: async () => ({ latencyUs: 0, error: "runner", detail: prepared.why }),
      refusal: async () => prepared.why,
      now,
    });
    return { server: createScriptServer(refusing, () => calledOff.signal, log), end: callOff };
  }
  const { cell, ip } = prepared;
  const hidden = [...options.hidden, ...(options.socket === undefined ? [] : [options.socket])];
  const guard: Guard = createGuard({
    blockAddresses: () => blockAddresses(ip, cell.userId),
    testSandbox: () => testSandbox(cell, hidden),
    onLost: callOff,
    isBusy: () => queue.running() > 0,
    log,
    now,
  });
  const queue: ScriptQueue = createScriptQueue({
    run: (script) => runScript(cell, script),
    refusal: guard.refusal,
    now,
  });
  const end = () => {
    guard[Symbol.dispose]();
    callOff();
  };
  return { server: createScriptServer(queue, () => calledOff.signal, log), end };
}

/** On the socket that a service manager hands over, or on one that it makes, for its own user only. */
async function listen(server: Server, path: string | undefined, environment: NodeJS.ProcessEnv): Promise<void> {
  const isInherited = environment.LISTEN_PID === String(process.pid) && Number(environment.LISTEN_FDS) >= 1;
  if (path === undefined && !isInherited)
    throw new OperatorError("script-runner needs --socket, or an inherited socket");
  if (path !== undefined) removeSocket(path);
  process.umask(0o077);
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  if (path === undefined) server.listen({ fd: FIRST_INHERITED }, listening.resolve);
  else server.listen({ path }, listening.resolve);
  try {
    await listening.promise;
    if (path !== undefined) chmodSync(path, 0o600);
  } catch (error) {
    throw new OperatorError(`the runner of scripts cannot listen on ${path ?? "its socket"}: ${errorText(error)}`);
  }
}

/** What a runner that was killed has left behind. */
function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path);
}
