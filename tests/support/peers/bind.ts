import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServerProgram } from "../server.ts";

/** BIND with one thread, authoritative only: without recursion it answers what it does not hold with REFUSED. */
export const bind: ServerProgram = {
  name: "bind",
  command: "named",
  configure: async (directory, port, zones) => {
    const lines = [
      "options {",
      `  directory "${directory}";`,
      `  pid-file "${join(directory, "named.pid")}";`,
      `  lock-file none;`,
      `  session-keyfile "${join(directory, "session.key")}";`,
      `  listen-on port ${port} { 127.0.0.1; };`,
      "  listen-on-v6 { none; };",
      "  recursion no;",
      "  allow-transfer { none; };",
      "  notify no;",
      "  dnssec-validation no;",
      "  check-names primary ignore;",
      "};",
      "controls { };",
      ...zones.map((zone) => `zone "${zone.name}" { type primary; file "${zone.file}"; check-integrity no; };`),
    ];
    const file = join(directory, "named.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-f", "-n", "1", "-c", file, "-p", String(port)] };
  },
};
