import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Launch, ServerProgram } from "../server.ts";

export type BindParts = {
  /** Statements before the options: keys, TLS. */
  readonly statements?: readonly string[];
  /** Of the options, beyond its files and where it listens. */
  readonly options: readonly string[];
  readonly zones?: readonly string[];
};

/** A BIND with one thread that listens on 127.0.0.1 and keeps all its files in `directory`. */
export async function launchBind(
  directory: string,
  port: number,
  { statements = [], options, zones = [] }: BindParts,
): Promise<Launch> {
  const lines = [
    ...statements,
    "options {",
    `  directory "${directory}";`,
    `  pid-file "${join(directory, "named.pid")}";`,
    "  lock-file none;",
    `  session-keyfile "${join(directory, "session.key")}";`,
    `  listen-on port ${port} { 127.0.0.1; };`,
    "  listen-on-v6 { none; };",
    "  notify no;",
    "  dnssec-validation no;",
    ...options.map((option) => `  ${option}`),
    "};",
    "controls { };",
    ...zones,
  ];
  const file = join(directory, "named.conf");
  await writeFile(file, `${lines.join("\n")}\n`);
  return { args: ["-f", "-n", "1", "-c", file, "-p", String(port)] };
}

/** BIND, authoritative only: without recursion it answers what it does not hold with REFUSED. */
export const bind: ServerProgram = {
  name: "bind",
  command: "named",
  configure: (directory, port, zones) =>
    launchBind(directory, port, {
      options: ["recursion no;", "allow-transfer { none; };", "check-names primary ignore;"],
      zones: zones.map((zone) => `zone "${zone.name}" { type primary; file "${zone.file}"; check-integrity no; };`),
    }),
};
