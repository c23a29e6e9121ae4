/** Forwarders that ours is held against: unbound, dnsmasq and BIND, each with one thread and one upstream for every name. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exchangeUdp } from "./dns-client.ts";
import { encodeQuery } from "./dns-message.ts";
import { launchBind } from "./peers/bind.ts";
import { freePort } from "./ports.ts";
import { startChild } from "./process.ts";
import { findProgram, type Launch, type RunningServer } from "./server.ts";
import { waitFor } from "./wait.ts";

export type ForwarderProgram = {
  readonly name: string;
  readonly command: string;
  /** Listens on 127.0.0.1 at `port` and asks 127.0.0.1 at `upstreamPort`. */
  readonly configure: (directory: string, port: number, upstreamPort: number) => Promise<Launch>;
};

/** Questions that one of them may have under way, so that none refuses what a benchmark has outstanding. */
const IN_FLIGHT = 4096;
const CACHE_ENTRIES = 1_000_000;

async function written(directory: string, name: string, lines: readonly string[]): Promise<string> {
  const file = join(directory, name);
  await writeFile(file, `${lines.join("\n")}\n`);
  return file;
}

const unbound: ForwarderProgram = {
  name: "unbound",
  command: "unbound",
  configure: async (directory, port, upstreamPort) => {
    const file = await written(directory, "unbound.conf", [
      "server:",
      `  interface: 127.0.0.1@${port}`,
      `  port: ${port}`,
      "  access-control: 127.0.0.0/8 allow",
      '  username: ""',
      '  chroot: ""',
      `  directory: "${directory}"`,
      `  pidfile: "${join(directory, "unbound.pid")}"`,
      "  use-syslog: no",
      "  num-threads: 1",
      '  module-config: "iterator"',
      "  do-not-query-localhost: no",
      "  msg-cache-size: 256m",
      "  rrset-cache-size: 512m",
      `  outgoing-range: ${IN_FLIGHT}`,
      `  num-queries-per-thread: ${IN_FLIGHT}`,
      // Names below it are answered by unbound itself otherwise (RFC 6761 section 6.2).
      '  local-zone: "test." transparent',
      "forward-zone:",
      '  name: "."',
      `  forward-addr: 127.0.0.1@${upstreamPort}`,
      "remote-control:",
      "  control-enable: no",
    ]);
    return { args: ["-d", "-c", file] };
  },
};

const dnsmasq: ForwarderProgram = {
  name: "dnsmasq",
  command: "dnsmasq",
  configure: async (directory, port, upstreamPort) => {
    const file = await written(directory, "dnsmasq.conf", [
      `port=${port}`,
      "listen-address=127.0.0.1",
      "bind-interfaces",
      "no-resolv",
      "no-hosts",
      `server=127.0.0.1#${upstreamPort}`,
      `cache-size=${CACHE_ENTRIES}`,
      `dns-forward-max=${IN_FLIGHT}`,
      "user=root",
      "group=root",
      `pid-file=${join(directory, "dnsmasq.pid")}`,
    ]);
    return { args: ["--keep-in-foreground", `--conf-file=${file}`, "--log-facility=-"] };
  },
};

const bind: ForwarderProgram = {
  name: "bind",
  command: "named",
  configure: (directory, port, upstreamPort) =>
    launchBind(directory, port, {
      options: [
        "recursion yes;",
        "allow-query { any; };",
        "allow-recursion { any; };",
        "forward only;",
        `forwarders { 127.0.0.1 port ${upstreamPort}; };`,
        `recursive-clients ${IN_FLIGHT};`,
        "max-cache-size 512m;",
      ],
    }),
};

/** In the order in which tables show them. */
export const forwarders = { unbound, dnsmasq, bind } as const satisfies Record<string, ForwarderProgram>;

const READY_MS = 30_000;
const RECURSION_DESIRED = 0x100;

/** Whether a server answers a question with the upstream's help. */
export async function forwards(port: number, name: string): Promise<boolean> {
  const response = await exchangeUdp({ port }, encodeQuery({ name, type: 6, flags: RECURSION_DESIRED }), 2_000);
  return response !== undefined && (response.readUInt16BE(2) & 0x8f) === 0x80 && response.readUInt16BE(6) > 0;
}

/** Starts one on a free port and waits until it answers the SOA of `zone`, which the upstream has. */
export async function startForwarder(
  program: ForwarderProgram,
  upstreamPort: number,
  zone: string,
): Promise<Pick<RunningServer, "name" | "port" | "pid" | "cpu" | "rss" | "stop">> {
  const path = findProgram(program.command);
  if (path === undefined) throw new Error(`${program.command} is not installed`);
  const directory = await mkdtemp(join(tmpdir(), `signpost-forwarder-${program.name}-`));
  const port = await freePort();
  const launch = await program.configure(directory, port, upstreamPort);
  const child = await startChild(program.name, path, launch.args, { env: { ...launch.env } });
  const stop = async () => {
    const status = await child.stop();
    await rm(directory, { recursive: true, force: true });
    return status;
  };
  try {
    await waitFor(`${program.name} forwards`, READY_MS, async () => {
      if (child.status() !== undefined) throw new Error(`${program.name} ended at its start`);
      return await forwards(port, zone);
    });
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}\n${child.output()}`);
  }
  return { name: program.name, port, pid: child.pid, cpu: child.cpu, rss: child.residentBytes, stop };
}
