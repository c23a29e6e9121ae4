import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type RunningServer, type ServerOptions, type ServerProgram, startServer } from "./server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const main = join(root, "src/main.ts");

/** Whether the server's entry exists in this tree. */
export function signpostExists(): boolean {
  return existsSync(main);
}

/** Ours, from its source, with one answer thread. */
export const signpost: ServerProgram = {
  name: "signpost",
  command: process.execPath,
  configure: async (directory, port, zones) => {
    const data = join(directory, "data");
    await mkdir(data);
    return {
      args: [main, ...zones.flatMap((zone) => ["--zone", zone.file])],
      env: {
        SVC_DNS_LISTEN: `127.0.0.1:${port}`,
        SVC_DNS_THREADS: "1",
        SVC_MANAGEMENT_LISTEN: "127.0.0.1:0",
        SVC_API_LISTEN: "127.0.0.1:0",
        SVC_NODE_DATA_DIR: data,
      },
    };
  },
};

/** Starts ours on a free port and waits until it answers for its zones. */
export async function startSignpost(options: ServerOptions): Promise<RunningServer> {
  return await startServer(signpost, options);
}
