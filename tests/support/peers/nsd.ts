import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServerProgram } from "../server.ts";

/** NSD as one server process. Its response-rate limiting is on by default and would drop a benchmark's queries. */
export const nsd: ServerProgram = {
  name: "nsd",
  command: "nsd",
  configure: async (directory, port, zones) => {
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
      "  rrl-ratelimit: 0",
      "  rrl-whitelist-ratelimit: 0",
      "remote-control:",
      "  control-enable: no",
      ...zones.flatMap((zone) => ["zone:", `  name: "${zone.name}"`, `  zonefile: "${zone.file}"`]),
    ];
    const file = join(directory, "nsd.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-d", "-c", file] };
  },
};
