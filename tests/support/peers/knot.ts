import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Launch, ServerProgram } from "../server.ts";

export type KnotParts = {
  /** The least that it logs; default "warning". */
  readonly logs?: string;
  /** The sections behind server, database and log: keys, access lists, templates, zones. */
  readonly sections: readonly string[];
};

/** Knot DNS with one UDP and one TCP worker that listens on 127.0.0.1 and keeps all its files in `directory`. */
export async function launchKnot(
  directory: string,
  port: number,
  { logs = "warning", sections }: KnotParts,
): Promise<Launch> {
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
    `    any: ${logs}`,
    ...sections,
  ];
  const file = join(directory, "knot.conf");
  await writeFile(file, `${lines.join("\n")}\n`);
  return { args: ["-c", file] };
}

/** A template for zones whose files are only read; `journal` is what their journals hold. */
export function knotTemplate(directory: string, journal: "none" | "changes"): readonly string[] {
  return [
    "template:",
    "  - id: default",
    `    storage: "${directory}"`,
    "    zonefile-sync: -1",
    "    zonefile-load: whole",
    `    journal-content: ${journal}`,
  ];
}

export const knot: ServerProgram = {
  name: "knot",
  command: "knotd",
  configure: (directory, port, zones) =>
    launchKnot(directory, port, {
      sections: [
        ...knotTemplate(directory, "none"),
        "zone:",
        ...zones.flatMap((zone) => [`  - domain: "${zone.name}"`, `    file: "${zone.file}"`]),
      ],
    }),
};
