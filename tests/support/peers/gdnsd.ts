import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServerProgram } from "../server.ts";

/**
 * gdnsd with one UDP and one TCP thread, and these further lines of configuration. It takes zones from a directory of files
 * named as their zones.
 */
export function gdnsdWith(furtherLines: readonly string[]): ServerProgram {
  return {
    name: "gdnsd",
    command: "gdnsd",
    configure: async (directory, port, zones) => {
      await mkdir(join(directory, "zones"));
      for (const zone of zones) await symlink(zone.file, join(directory, "zones", zone.name));
      const lines = [
        "options => {",
        `  listen => 127.0.0.1:${port}`,
        "  udp_threads => 1",
        "  tcp_threads => 1",
        `  run_dir => ${join(directory, "run")}`,
        `  state_dir => ${join(directory, "state")}`,
        "}",
        ...furtherLines,
      ];
      await writeFile(join(directory, "config"), `${lines.join("\n")}\n`);
      return { args: ["-c", directory, "start"] };
    },
  };
}

export const gdnsd: ServerProgram = gdnsdWith([]);
