import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Launch, ServerProgram } from "../server.ts";

export type NsdParts = {
  /** Of the clause "server", beyond its files and where it listens. */
  readonly server: readonly string[];
  /** The clauses behind it: keys, zones. */
  readonly clauses: readonly string[];
};

/** NSD as one server process that listens on 127.0.0.1 and keeps all its files in `directory`. */
export async function launchNsd(directory: string, port: number, { server, clauses }: NsdParts): Promise<Launch> {
  const lines = [
    "server:",
    "  server-count: 1",
    `  ip-address: 127.0.0.1@${port}`,
    `  port: ${port}`,
    '  username: ""',
    `  zonesdir: "${directory}"`,
    '  database: ""',
    `  pidfile: "${join(directory, "nsd.pid")}"`,
    `  xfrdir: "${directory}"`,
    `  xfrdfile: "${join(directory, "xfrd.state")}"`,
    `  zonelistfile: "${join(directory, "zone.list")}"`,
    ...server.map((line) => `  ${line}`),
    "remote-control:",
    "  control-enable: no",
    ...clauses,
  ];
  const file = join(directory, "nsd.conf");
  await writeFile(file, `${lines.join("\n")}\n`);
  return { args: ["-d", "-c", file] };
}

/** Response-rate limiting is on by default and would drop a benchmark's queries. */
export const NSD_WITHOUT_LIMITS = ["rrl-ratelimit: 0", "rrl-whitelist-ratelimit: 0"];

export const nsd: ServerProgram = {
  name: "nsd",
  command: "nsd",
  configure: (directory, port, zones) =>
    launchNsd(directory, port, {
      server: NSD_WITHOUT_LIMITS,
      clauses: zones.flatMap((zone) => ["zone:", `  name: "${zone.name}"`, `  zonefile: "${zone.file}"`]),
    }),
};
