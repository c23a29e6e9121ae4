/** The runner of scripts as a child of the supervisor, started again whenever it ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { writableFault } from "../base/private-path.ts";
import { type ScriptUser, scriptUser } from "../runner/user.ts";
import type { Config } from "./config.ts";
import { HEALTHY_AFTER_MS } from "./limits.ts";
import { replacementPauseMs } from "./supervised-thread.ts";

export type RunningRunner = AsyncDisposable & {
  /** Where the health thread finds it. */
  readonly socketPath: string;
  /** Of the child, at this moment; undefined for a runner that somebody else has started. */
  readonly processId: () => number | undefined;
};

const PROGRAM = fileURLToPath(new URL("../runner/entry.ts", import.meta.url));

/**
 * The runner that the settings ask for: one that runs already, at script_checks.runner_socket, or a child. Undefined where
 * scripts are not enabled. Throws OperatorError for a user or a directory that scripts must not have.
 */
export function startRunner(config: Config, dataDirectory: string, log: Log): RunningRunner | undefined {
  if (!config["script_checks.enabled"]) return undefined;
  const given = config["script_checks.runner_socket"];
  if (given !== undefined) {
    return { socketPath: given, processId: () => undefined, [Symbol.asyncDispose]: async () => {} };
  }
  const user = userOf(config["script_checks.user"] ?? "");
  const directory = directoryOf(config["script_checks.directory"], dataDirectory);
  // Short, as the path of a socket must be, and nobody else's.
  const place = mkdtempSync(join(tmpdir(), "signpost-runner-"));
  const socketPath = join(place, "socket");
  const child = superviseRunner(
    [
      ...[PROGRAM, "--child", "--socket", socketPath, "--user", `${user.userId}`],
      ...(directory === undefined ? [] : ["--directory", directory]),
      ...["--hide", resolve(dataDirectory)],
      ...["--log-level", config["log.level"], "--log-format", config["log.format"] === "text" ? "text" : "json"],
    ],
    log,
  );
  return {
    socketPath,
    processId: child.processId,
    [Symbol.asyncDispose]: async () => {
      await child.end();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

function userOf(text: string): ScriptUser {
  const user = scriptUser(text);
  if (user.userId === process.geteuid?.()) {
    throw new OperatorError("script_checks.user is the user that the service runs as; scripts need one of their own");
  }
  return user;
}

/** The directory by its real path. Only root and this user may write there, and the data must not be below it. */
function directoryOf(given: string | undefined, dataDirectory: string): string | undefined {
  if (given === undefined) return undefined;
  const refuse = (why: string) => new OperatorError(`script_checks.directory ${given}: ${why}`);
  let path: string;
  try {
    path = realpathSync(given);
  } catch (error) {
    throw refuse(errorText(error));
  }
  const stat = statSync(path);
  if (!stat.isDirectory()) throw refuse("it is not a directory");
  const fault = writableFault(path, stat);
  if (fault !== undefined) throw refuse(fault);
  const holds = (inner: string) => `${inner}${sep}`.startsWith(path === sep ? sep : `${path}${sep}`);
  if (holds(realpathSync(dataDirectory))) throw refuse("the service's data lies there, which scripts must not see");
  return path;
}

/** What it needs of the environment. Settings, and so the service's secrets, are not among it. */
function runnerEnvironment(): NodeJS.ProcessEnv {
  const { NODE_COMPILE_CACHE } = process.env;
  return { LANG: "C.UTF-8", ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) };
}

/** Longest wait for a runner to end by itself before it is killed. */
const END_MS = 1_000;

function superviseRunner(args: readonly string[], log: Log) {
  let child: ChildProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isEnding = false;
  let deathsInARow = 0;
  const start = () => {
    const startedAt = performance.now();
    // A session of its own: what a terminal sends the service is not for it. Its standard input ends with this process.
    const started = spawn(process.execPath, args, {
      stdio: ["pipe", "inherit", "inherit"],
      env: runnerEnvironment(),
      cwd: "/",
      detached: true,
    });
    child = started;
    started.stdin?.on("error", () => {});
    let isOver = false;
    const onEnd = (how: string) => {
      if (isOver) return;
      isOver = true;
      if (child === started) child = undefined;
      if (isEnding) return;
      deathsInARow = performance.now() - startedAt > HEALTHY_AFTER_MS ? 1 : deathsInARow + 1;
      log("error", `the runner of scripts ended (${how}); it is started again`);
      timer = setTimeout(start, replacementPauseMs(deathsInARow));
    };
    started.once("error", (error) => onEnd(error.message));
    started.once("exit", (code, signal) => onEnd(String(code ?? signal)));
  };
  start();
  return {
    processId: () => child?.pid,
    end: async () => {
      isEnding = true;
      clearTimeout(timer);
      const ending = child;
      if (ending === undefined) return;
      const ended = new Promise<void>((settle) => ending.once("exit", () => settle()));
      const killer = setTimeout(() => ending.kill("SIGKILL"), END_MS);
      ending.stdin?.end();
      await ended;
      clearTimeout(killer);
    },
  };
}
