import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { ProbeOutcome } from "../../src/health/probe.ts";
import { createScriptClient, type ScriptClient } from "../../src/health/script-client.ts";
import { type LabNetwork, openLabNetwork } from "../support/network.ts";
import { requireProgram } from "../support/peers.ts";
import type { Child } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { MAIN } from "./running-node.ts";

/** A user of no account, and another than the default, so that no other test's scripts are its. */
export const SCRIPT_USER = 60_955;
/** Longer than a loaded machine takes to start a runner, and to run a script that does nothing. */
export const LONG_MS = 60_000;
/** Where platforms keep what scripts must not have, and a plain server beside them. */
export const ADDRESSES = [
  "169.254.169.254/32",
  "168.63.129.16/32",
  "fd00:ec2::254/128",
  "fe80::7/64",
  "203.0.113.9/32",
];

/** A runner in a network of its own, with scripts that the test writes. */
export type ScriptLab = AsyncDisposable & {
  readonly network: LabNetwork;
  readonly runner: () => Child;
  readonly client: ScriptClient;
  /** A directory that stands for the service's own. */
  readonly secretDirectory: string;
  /** Writes a script and gives its path. `text` begins with its interpreter. */
  readonly script: (name: string, text: string) => string;
  /** Runs a Perl program as a script. */
  readonly perl: (program: string, timeoutMs?: number) => Promise<ProbeOutcome>;
  readonly run: (command: string, args?: readonly string[], timeoutMs?: number) => Promise<ProbeOutcome>;
  readonly restartRunner: () => Promise<void>;
};

/** A lab whose runner takes requests, or undefined after skipping the test loudly. */
export async function openScriptLab(test: TestContext): Promise<ScriptLab | undefined> {
  const missing = ["bwrap", "prlimit", "perl"].some((program) => requireProgram(test, program) === undefined);
  const network = missing ? undefined : await openLabNetwork(test, ADDRESSES);
  if (network === undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), "signpost-scripts-"));
  // The user of scripts comes to its scripts by way of it.
  chmodSync(directory, 0o755);
  const scripts = join(directory, "scripts");
  const secretDirectory = join(directory, "secret");
  for (const path of [scripts, secretDirectory]) mkdirSync(path, { mode: 0o755 });
  writeFileSync(join(secretDirectory, "key"), "secret", { mode: 0o644 });
  const socketPath = join(directory, "socket");
  const startRunner = async () =>
    await network.start("here", "script-runner", [
      ...[process.execPath, MAIN, "script-runner", "--socket", socketPath, "--user", `${SCRIPT_USER}`],
      ...["--directory", scripts, "--hide", secretDirectory, "--log-level", "debug", "--log-format", "text"],
    ]);
  let runner = await startRunner();
  const client = createScriptClient({ socketPath, now: () => performance.now() });
  const run = (command: string, args: readonly string[] = [], timeoutMs = LONG_MS) =>
    client.run({
      ...{ key: "chk_1", slot: 0, protocol: "script", host: "", port: 0, failureThreshold: 1 },
      ...{ intervalMs: timeoutMs, timeoutMs, script: { command, args } },
    });
  const untilReady = () =>
    waitFor("a runner that runs scripts", LONG_MS, async () => (await run("/usr/bin/true")).error === undefined);
  const script = (name: string, text: string) => {
    const path = join(scripts, name);
    writeFileSync(path, text, { mode: 0o755 });
    return path;
  };
  let count = 0;
  const lab: ScriptLab = {
    network,
    runner: () => runner,
    client,
    secretDirectory,
    script,
    run,
    perl: (program, timeoutMs) => run(script(`script-${++count}`, `#!/usr/bin/perl\n${program}\n`), [], timeoutMs),
    restartRunner: async () => {
      runner = await startRunner();
      await untilReady();
    },
    [Symbol.asyncDispose]: async () => {
      client.close();
      if (runner.status() === undefined) await runner.stop();
      await network[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    await untilReady();
  } catch (error) {
    const said = runner.output();
    await lab[Symbol.asyncDispose]();
    throw new Error(`the runner does not run scripts:\n${said}`, { cause: error });
  }
  return lab;
}
