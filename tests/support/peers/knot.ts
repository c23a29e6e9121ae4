import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServerProgram } from "../server.ts";

/** Knot DNS with one UDP and one TCP worker; its zone files are only read, its journal stays empty. */
export const knot: ServerProgram = {
  name: "knot",
  command: "knotd",
  configure: async (directory, port, zones) => {
    const lines = [
      "server:",
      `  rundir: "${directory}"`,
      `  listen: 127.0.0.1@${port}`,
      "  udp-workers: 1",
      "  tcp-workers: 1",
      "  background-workers: 1",
      "database:",
      `  storage: "${directory}"`,
      "log:",
      "  - target: stderr",
      "    any: warning",
      "template:",
      "  - id: default",
      `    storage: "${directory}"`,
      "    zonefile-sync: -1",
      "    zonefile-load: whole",
      "    journal-content: none",
      "zone:",
      ...zones.flatMap((zone) => [`  - domain: "${zone.name}"`, `    file: "${zone.file}"`]),
    ];
    const file = join(directory, "knot.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-c", file] };
  },
};
