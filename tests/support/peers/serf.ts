import type { TestContext } from "node:test";
import { requireProgram } from "../peers.ts";
import { freePort } from "../ports.ts";
import { type Child, runToEnd, startChild } from "../process.ts";
import { waitFor } from "../wait.ts";

/** An agent of HashiCorp's serf: the membership protocol by those who made it. */
export type SerfAgent = AsyncDisposable & {
  readonly name: string;
  readonly child: Child;
  /** "127.0.0.1" */
  readonly host: string;
  /** Over UDP and TCP. */
  readonly port: number;
  /** Runs `serf SUBCOMMAND` against it; gives what that prints, and throws where it fails. */
  readonly run: (...subcommand: readonly string[]) => Promise<string>;
  /** By name: "alive", "leaving", "left" or "failed". */
  readonly members: () => Promise<ReadonlyMap<string, string>>;
  /** SIGTERM, on which it ends without a leave; `run("leave")` is the clean way. */
  readonly stop: () => Promise<void>;
};

export type SerfOptions = {
  readonly name: string;
  /** 16, 24 or 32 bytes. */
  readonly key: Uint8Array;
  readonly host?: string;
  /** memberlist's timings: "local" probes each second, waits 200 ms and suspects three of those; "lan" is its default. */
  readonly profile?: "local" | "lan";
  readonly args?: readonly string[];
};

const START_MS = 20_000;
const COMMAND_MS = 30_000;
const BOUND_PORT = /Using dynamic bind port (\d+)/;
const RPC_TAKEN = /Error starting RPC listener/;
const RPC_ATTEMPTS = 5;

/** The path of `serf`, or undefined after skipping the test loudly. */
export function requireSerf(test: TestContext): string | undefined {
  return requireProgram(test, "serf");
}

async function begin(path: string, options: SerfOptions, rpcPort: number): Promise<SerfAgent> {
  const { name, key, host = "127.0.0.1", profile = "local", args = [] } = options;
  const rpc = `127.0.0.1:${rpcPort}`;
  const encrypt = Buffer.from(key).toString("base64");
  const child = await startChild(`serf-${name}`, path, [
    "agent",
    `-node=${name}`,
    `-bind=${host.includes(":") ? `[${host}]` : host}:0`,
    `-rpc-addr=${rpc}`,
    `-encrypt=${encrypt}`,
    `-profile=${profile}`,
    "-log-level=debug",
    ...args,
  ]);
  const run = (subcommand: string, ...rest: readonly string[]) =>
    runToEnd(path, [subcommand, `-rpc-addr=${rpc}`, ...rest], COMMAND_MS);
  const stop = async () => {
    if (child.status() === undefined) await child.stop();
  };
  try {
    const port = await waitFor(`${child.name} has a port`, START_MS, () => {
      if (child.status() !== undefined) throw new Error(`${child.name} ended at its start\n${child.output()}`);
      return child.output().includes("agent running") && BOUND_PORT.exec(child.output())?.[1];
    });
    return {
      name,
      child,
      host,
      port: Number(port),
      run: (subcommand = "info", ...rest) => run(subcommand, ...rest),
      members: async () => membersOf(await run("members", "-format=json")),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function membersOf(text: string): ReadonlyMap<string, string> {
  const { members }: { members: readonly { name: string; status: string }[] } = JSON.parse(text);
  return new Map(members.map(({ name, status }) => [name, status]));
}

/** Starts an agent that knows nobody and has answered; `path` is what `requireSerf` gave. */
export async function startSerf(path: string, options: SerfOptions): Promise<SerfAgent> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await begin(path, options, await freePort());
    } catch (error) {
      // Somebody else may have taken the port for its commands between our look and its start.
      if (attempt === RPC_ATTEMPTS || !RPC_TAKEN.test(String(error))) throw error;
    }
  }
}
