import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { exchangeTcp, exchangeUdp } from "./dns-client.ts";
import { encodeQuery } from "./dns-message.ts";
import { freePort } from "./ports.ts";
import type { CpuTime } from "./proc.ts";
import { type Child, type ExitStatus, startChild } from "./process.ts";
import { waitFor } from "./wait.ts";

/** A zone to serve: its name without the last dot, and the path of a zone file with an $ORIGIN. */
export type ZoneSource = { readonly name: string; readonly file: string };

export type ServerOptions = {
  readonly zones: readonly ZoneSource[];
  readonly env?: Readonly<Record<string, string>>;
  /** How long the server may take until it answers (default 30,000). */
  readonly readyWithinMs?: number;
};

/** A name server in a child process, on 127.0.0.1 over UDP and TCP at one port, with one worker thread. */
export type RunningServer = {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** Milliseconds from the start of the process to its first right answer. */
  readonly readyAfterMs: number;
  /** CPU time of the process tree. */
  readonly cpu: () => CpuTime;
  /** Resident bytes of the process tree. */
  readonly rss: () => number;
  readonly output: () => string;
  readonly status: () => ExitStatus | undefined;
  /** SIGTERM, then removal of the server's directory. Gives how the process ended. */
  readonly stop: () => Promise<ExitStatus>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** What makes one program a server of tests. `configure` writes what it needs into `directory`. */
export type ServerProgram = {
  readonly name: string;
  readonly command: string;
  readonly configure: (directory: string, port: number, zones: readonly ZoneSource[]) => Promise<Launch>;
};

export type Launch = { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };

/** Debian puts servers into directories that a user's PATH may lack. */
const SERVER_DIRECTORIES = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/** The path of a program, or undefined where it is not installed. */
export function findProgram(command: string): string | undefined {
  if (command.includes("/")) return existsSync(command) ? command : undefined;
  const directories = [...(process.env.PATH ?? "").split(delimiter), ...SERVER_DIRECTORIES];
  return directories.map((directory) => join(directory, command)).find((path) => existsSync(path));
}

/** Whether the server answers the SOA of a zone with authority, over UDP. */
async function answersSoa(port: number, zone: string): Promise<boolean> {
  const response = await exchangeUdp({ port }, encodeQuery({ name: zone, type: 6 }), 1_000);
  return response !== undefined && (response.readUInt16BE(2) & 0x840f) === 0x8400 && response.readUInt16BE(6) > 0;
}

/** Gives the time of the first right answers for all zones over UDP, on performance's clock in milliseconds. */
async function untilReady(
  child: Child,
  port: number,
  zones: readonly ZoneSource[],
  timeoutMs: number,
): Promise<number> {
  const check = async (transport: string, condition: () => Promise<boolean>) => {
    await waitFor(`${child.name} answers over ${transport}`, timeoutMs, async () => {
      if (child.status() !== undefined) throw new Error(`${child.name} ended at its start`);
      return await condition();
    });
  };
  try {
    for (const zone of zones) await check(`UDP for ${zone.name}`, () => answersSoa(port, zone.name));
    const readyAt = performance.now();
    const query = encodeQuery({ name: zones[0]?.name ?? ".", type: 6 });
    await check("TCP", async () => (await exchangeTcp({ port }, query, 5_000)) !== undefined);
    return readyAt;
  } catch (error) {
    throw new Error(`${String(error)}\n${child.output()}`);
  }
}

/** Starts a program on a free port and waits until it answers for every zone over UDP, and over TCP. */
export async function startServer(program: ServerProgram, options: ServerOptions): Promise<RunningServer> {
  const path = findProgram(program.command);
  if (path === undefined) throw new Error(`${program.command} is not installed`);
  const directory = await mkdtemp(join(tmpdir(), `signpost-${program.name}-`));
  const remove = () => rm(directory, { recursive: true, force: true });
  const port = await freePort();
  const launch = await program.configure(directory, port, options.zones);
  const startedAt = performance.now();
  const child = await startChild(program.name, path, launch.args, { env: { ...launch.env, ...options.env } });
  const readyAt = await untilReady(child, port, options.zones, options.readyWithinMs ?? 30_000).catch(async (error) => {
    await child.stop();
    await remove();
    throw error;
  });
  const readyAfterMs = readyAt - startedAt;
  const stop = async () => {
    const status = await child.stop();
    await remove();
    return status;
  };
  return {
    name: program.name,
    port,
    pid: child.pid,
    readyAfterMs,
    cpu: child.cpu,
    rss: child.residentBytes,
    output: child.output,
    status: child.status,
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}
