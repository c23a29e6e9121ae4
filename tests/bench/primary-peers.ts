/** Servers with a zone that loopback may transfer and a key may update: ours, Knot, BIND, and NSD, which takes no updates. */
import { nameFromText } from "../../src/dns/name.ts";
import type { TsigKey } from "../../src/dns/tsig.ts";
import { startNode } from "../scenarios/running-node.ts";
import { launchBind } from "../support/peers/bind.ts";
import { knotTemplate, launchKnot } from "../support/peers/knot.ts";
import { launchNsd, NSD_WITHOUT_LIMITS } from "../support/peers/nsd.ts";
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
  configure: (directory, port, zones) =>
    launchKnot(directory, port, {
      sections: [
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
        ...knotTemplate(directory, "changes"),
        "    acl: [transfers, updates]",
        "zone:",
        ...zones.flatMap((zone) => [`  - domain: "${zone.name}"`, `    file: "${zone.file}"`]),
      ],
    }),
};

const nsd: ServerProgram = {
  name: "nsd",
  command: "nsd",
  configure: (directory, port, zones) =>
    launchNsd(directory, port, {
      server: NSD_WITHOUT_LIMITS,
      clauses: zones.flatMap((zone) => [
        "zone:",
        `  name: "${zone.name}"`,
        `  zonefile: "${zone.file}"`,
        "  provide-xfr: 127.0.0.0/8 NOKEY",
      ]),
    }),
};

const bind: ServerProgram = {
  name: "bind",
  command: "named",
  configure: (directory, port, zones) =>
    launchBind(directory, port, {
      statements: [`key "${KEY_NAME}" { algorithm hmac-sha256; secret "${SECRET_TEXT}"; };`],
      options: ["recursion no;", "allow-transfer { 127.0.0.0/8; };"],
      zones: zones.map(
        ({ name, file }) =>
          `zone "${name}" { type primary; file "${file}"; allow-update { key "${KEY_NAME}"; }; check-integrity no; check-names ignore; };`,
      ),
    }),
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
