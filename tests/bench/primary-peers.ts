/** Servers with a zone that loopback may transfer and a key may update: ours, Knot, BIND, and NSD, which takes no updates. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nameFromText } from "../../src/dns/name.ts";
import type { TsigKey } from "../../src/dns/tsig.ts";
import { startNode } from "../scenarios/running-node.ts";
import type { CpuTime } from "../support/proc.ts";
import { findProgram, type ServerProgram, startServer, type ZoneSource } from "../support/server.ts";
import { openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";

const SECRET = Buffer.alloc(32, 11);
const KEY_NAME = "bench-key";
const SECRET_TEXT = SECRET.toString("base64");

export function benchKey(): TsigKey {
  const name = nameFromText(`${KEY_NAME}.`);
  if (name.kind === "error") throw new Error(name.reason);
  return { name: name.name, algorithm: "hmac-sha256", secret: SECRET };
}

export type PrimaryServer = {
  readonly name: string;
  readonly port: number;
  readonly takesUpdates: boolean;
  readonly cpu: () => CpuTime;
  readonly stop: () => Promise<unknown>;
};

export const OURS = "signpost";

/** Knot keeps its updates in a journal, as a primary that outlives a crash does. */
const knot: ServerProgram = {
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
      "key:",
      `  - id: ${KEY_NAME}`,
      "    algorithm: hmac-sha256",
      `    secret: ${SECRET_TEXT}`,
      "acl:",
      "  - id: transfers",
      "    address: 127.0.0.0/8",
      "    action: transfer",
      "  - id: updates",
      `    key: ${KEY_NAME}`,
      "    action: update",
      "template:",
      "  - id: default",
      `    storage: "${directory}"`,
      "    zonefile-sync: -1",
      "    zonefile-load: whole",
      "    journal-content: changes",
      "    acl: [transfers, updates]",
      "zone:",
      ...zones.flatMap((zone) => [`  - domain: "${zone.name}"`, `    file: "${zone.file}"`]),
    ];
    const file = join(directory, "knot.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-c", file] };
  },
};

const nsd: ServerProgram = {
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
      ...zones.flatMap((zone) => [
        "zone:",
        `  name: "${zone.name}"`,
        `  zonefile: "${zone.file}"`,
        "  provide-xfr: 127.0.0.0/8 NOKEY",
      ]),
    ];
    const file = join(directory, "nsd.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-d", "-c", file] };
  },
};

const bind: ServerProgram = {
  name: "bind",
  command: "named",
  configure: async (directory, port, zones) => {
    const lines = [
      `key "${KEY_NAME}" { algorithm hmac-sha256; secret "${SECRET_TEXT}"; };`,
      "options {",
      `  directory "${directory}";`,
      `  pid-file "${join(directory, "named.pid")}";`,
      "  lock-file none;",
      `  session-keyfile "${join(directory, "session.key")}";`,
      `  listen-on port ${port} { 127.0.0.1; };`,
      "  listen-on-v6 { none; };",
      "  recursion no;",
      "  allow-transfer { 127.0.0.0/8; };",
      "  notify no;",
      "  dnssec-validation no;",
      "};",
      "controls { };",
      ...zones.map(
        ({ name, file }) =>
          `zone "${name}" { type primary; file "${file}"; allow-update { key "${KEY_NAME}"; }; check-integrity no; check-names ignore; };`,
      ),
    ];
    const file = join(directory, "named.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    return { args: ["-f", "-n", "1", "-c", file, "-p", String(port)] };
  },
};

async function startOurs(zone: ZoneSource): Promise<PrimaryServer> {
  const node = await startNode({ zones: [zone.file] });
  const stop = () => node[Symbol.asyncDispose]();
  try {
    await using pool = openPool(await signInTo(node.api, 1), 1);
    const put = async (method: "PUT" | "POST", path: string, body: object) => {
      await pool.ask({ method, path: `/api/v1${path}`, body: JSON.stringify(body) });
    };
    await put("POST", "/tsig-keys", { name: `${KEY_NAME}.`, algorithm: "hmac-sha256", secret: SECRET_TEXT });
    await put("PUT", "/config/axfr", { enabled: true, allow_networks: ["127.0.0.0/8"] });
    await put("PUT", "/config/dynamic-dns", { enabled: true });
    const port = node.dns[0]?.port ?? 0;
    return { name: OURS, port, takesUpdates: true, cpu: node.child.cpu, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** All that are installed and asked for. */
export async function startPrimaries(
  zone: (server: string) => Promise<ZoneSource>,
  servers: readonly string[] | undefined,
): Promise<PrimaryServer[]> {
  const started: PrimaryServer[] = [];
  if (servers?.includes(OURS) ?? true) started.push(await startOurs(await zone(OURS)));
  for (const program of [knot, nsd, bind]) {
    if (!(servers?.includes(program.name) ?? true)) continue;
    if (findProgram(program.command) === undefined) {
      console.error(`SKIPPED: ${program.command} is not installed; .ci/run names its Debian package`);
      continue;
    }
    const { name, port, cpu, stop } = await startServer(program, {
      zones: [await zone(program.name)],
      readyWithinMs: 60_000,
    });
    started.push({ name, port, takesUpdates: program !== nsd, cpu, stop });
  }
  return started;
}
