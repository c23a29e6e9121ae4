/**
 * DNS over TLS and over HTTPS beside BIND, with the same zone and certificate and one thread each, over connections that stay
 * open; and what connections cost that nobody uses.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { startNode } from "../scenarios/running-node.ts";
import { makeCertificate } from "../support/certificates.ts";
import { bind, launchBind } from "../support/peers/bind.ts";
import { freePort } from "../support/ports.ts";
import { findProgram, type ServerProgram, startServer } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";
import { openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";
import { measure, type Sample, type Target } from "./dnsperf.ts";
import { markdown, median, rcodeFaults, rcodeText, type Series } from "./table.ts";
import { writeBenchFiles } from "./zone.ts";

export const ENCRYPTED_WORKLOADS = ["dot", "doh"] as const;
type EncryptedWorkload = (typeof ENCRYPTED_WORKLOADS)[number];
export const IDLE_WORKLOAD = "tls-idle";

const OURS = "signpost";
const REFERENCE = "bind";
/** Queries a second against BIND's. */
const THROUGHPUT_MIN = { dot: 0.7, doh: 0.5 } as const;
const IDLE_CONNECTIONS = 2_000;
const IDLE_BYTES_MAX = 150_000_000;
/** Addresses that they come from: as many as one may open come from each. */
const IDLE_SOURCES = 40;
const IDLE_AT_ONCE = 50;

export type EncryptedOptions = {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
};

type Server = {
  readonly name: string;
  /** By workload: the same server at another port. */
  readonly targets: Readonly<Record<EncryptedWorkload, Target>>;
  readonly rss: () => number;
  readonly stop: () => Promise<unknown>;
};

type Certificate = { readonly certFile: string; readonly keyFile: string };

async function writeCertificate(directory: string): Promise<Certificate> {
  const { cert, key } = makeCertificate({ commonName: "localhost", names: ["localhost", "127.0.0.1"] });
  const certFile = join(directory, "encrypted-cert.pem");
  const keyFile = join(directory, "encrypted-key.pem");
  await writeFile(certFile, cert);
  await writeFile(keyFile, key, { mode: 0o600 });
  return { certFile, keyFile };
}

async function startOurs(zoneFile: string, { certFile, keyFile }: Certificate): Promise<Server> {
  const node = await startNode({
    zones: [zoneFile],
    env: { SVC_TRANSPORT_CERT_FILE: certFile, SVC_TRANSPORT_KEY_FILE: keyFile },
  });
  const stop = () => node[Symbol.asyncDispose]();
  try {
    await using pool = openPool(await signInTo(node.api, 1), 1);
    const address = "127.0.0.1:0";
    const body = { dot_enabled: true, dot_listen_addr: address, doh_enabled: true, doh_listen_addr: address };
    await pool.ask({ method: "PUT", path: "/api/v1/transport-config", body: JSON.stringify(body) });
    const portOf = (listener: string) =>
      waitFor(`${listener} listens`, 20_000, () => {
        const line = node.messages().findLast((message) => message.startsWith(`${listener} on 127.0.0.1:`));
        return line === undefined ? undefined : Number(line.split(":").at(-1));
      });
    const { cpu, residentBytes } = node.child;
    const targets = {
      dot: { name: OURS, port: await portOf("DNS over TLS"), cpu },
      doh: { name: OURS, port: await portOf("DNS over HTTPS"), cpu },
    };
    return { name: OURS, targets, rss: residentBytes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** BIND as it is in other comparisons, with listeners for both. */
function encryptedBind({ certFile, keyFile }: Certificate, dot: number, doh: number): ServerProgram {
  return {
    ...bind,
    configure: (directory, port, zones) =>
      launchBind(directory, port, {
        statements: [`tls local { cert-file "${certFile}"; key-file "${keyFile}"; };`],
        options: [
          `listen-on port ${dot} tls local { 127.0.0.1; };`,
          `listen-on port ${doh} tls local http default { 127.0.0.1; };`,
          "tcp-clients 10000;",
          "http-listener-clients 10000;",
          "recursion no;",
        ],
        zones: zones.map((zone) => `zone "${zone.name}" { type primary; file "${zone.file}"; check-integrity no; };`),
      }),
  };
}

async function startBind(zone: { name: string; file: string }, certificate: Certificate): Promise<Server> {
  const [dot, doh] = [await freePort(), await freePort()];
  const server = await startServer(encryptedBind(certificate, dot, doh), { zones: [zone], readyWithinMs: 60_000 });
  const { cpu, rss, stop } = server;
  const targets = { dot: { name: REFERENCE, port: dot, cpu }, doh: { name: REFERENCE, port: doh, cpu } };
  return { name: REFERENCE, targets, rss, stop };
}

async function runRounds(
  workload: EncryptedWorkload,
  queryFile: string,
  servers: readonly Server[],
  { rounds, seconds }: EncryptedOptions,
): Promise<Series[]> {
  const samples = new Map<string, Sample[]>(servers.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const { name, targets } of servers) {
      const length = round === 0 ? 1 : seconds;
      const load = { name: workload, queryFile, transport: workload, cookie: false };
      const sample = await measure(targets[workload], load, length);
      const figures = `${Math.round(sample.queriesPerSecond)}/s, user ${sample.userUs.toFixed(2)} us`;
      console.error(`${workload}, round ${round}: ${name} ${figures}, lost ${sample.lost}`);
      if (round > 0) samples.get(name)?.push(sample);
    }
  }
  return servers.map(({ name }) => ({ workload, server: name, samples: samples.get(name) ?? [] }));
}

function renderTable(all: readonly Series[]): string {
  const heading = ["workload", "server", "queries/s", "user us", "system us", "lost", "response codes"];
  const rows = all.map(({ workload, server, samples }) => [
    workload,
    server,
    Math.round(median(samples.map(({ queriesPerSecond }) => queriesPerSecond))).toLocaleString("en"),
    median(samples.map(({ userUs }) => userUs)).toFixed(2),
    median(samples.map(({ systemUs }) => systemUs)).toFixed(2),
    String(samples.reduce((sum, { lost }) => sum + lost, 0)),
    rcodeText(samples),
  ]);
  return markdown(heading, rows);
}

function promiseLines(all: readonly Series[]): string[] {
  return ENCRYPTED_WORKLOADS.flatMap((workload) => {
    const rate = (server: string) => {
      const series = all.find((one) => one.workload === workload && one.server === server);
      return series && median(series.samples.map(({ queriesPerSecond }) => queriesPerSecond));
    };
    const [own, other] = [rate(OURS), rate(REFERENCE)];
    if (own === undefined || other === undefined) return [];
    const ratio = own / other;
    const verdict = ratio >= THROUGHPUT_MIN[workload] ? "holds" : "MISSED";
    const promised = THROUGHPUT_MIN[workload];
    return [
      `- ${workload}: queries a second ${ratio.toFixed(2)} x ${REFERENCE}, promised at least ${promised}: ${verdict}`,
    ];
  });
}

/** Undefined: the server has cut it. */
async function openIdle(port: number, source: number): Promise<TLSSocket | undefined> {
  const localAddress = `127.0.0.${2 + source}`;
  const socket = createConnection({ port, host: "127.0.0.1", localAddress });
  await once(socket, "connect");
  const secure = connect({ socket, ALPNProtocols: ["dot"], rejectUnauthorized: false });
  const isOpen = once(secure, "secureConnect").then(
    () => true,
    () => false,
  );
  // Whoever is cut later on is counted by what is open at the end.
  secure.on("error", () => {});
  return (await isOpen) ? secure : undefined;
}

/** What so many connections over TLS take that ask nothing. */
async function idleLines(servers: readonly Server[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { name, targets, rss } of servers) {
    const before = rss();
    const sockets: TLSSocket[] = [];
    for (let tried = 0; tried < IDLE_CONNECTIONS; tried += IDLE_AT_ONCE) {
      const sources = Array.from({ length: IDLE_AT_ONCE }, (_, index) => (tried + index) % IDLE_SOURCES);
      const opened = await Promise.all(sources.map((source) => openIdle(targets.dot.port, source)));
      sockets.push(...opened.filter((socket) => socket !== undefined));
    }
    const open = sockets.filter(({ destroyed, closed }) => !destroyed && !closed).length;
    const grown = rss() - before;
    for (const socket of sockets) socket.destroy();
    const each = `${(grown / 1000 / Math.max(open, 1)).toFixed(0)} kB each`;
    const verdict = grown <= IDLE_BYTES_MAX ? "holds" : "MISSED";
    const promised = name === OURS ? `, promised at most ${IDLE_BYTES_MAX / 1e6} MB: ${verdict}` : "";
    lines.push(`- ${name}: ${open} idle connections over TLS take ${(grown / 1e6).toFixed(1)} MB, ${each}${promised}`);
  }
  return lines;
}

/** The report as Markdown and what is wrong with the answers; undefined where nothing of it is asked for. */
export async function measureEncrypted(
  directory: string,
  options: EncryptedOptions,
): Promise<{ readonly report: string; readonly faults: readonly string[] } | undefined> {
  const isAsked = (name: string) => options.only?.includes(name) ?? true;
  const workloads = ENCRYPTED_WORKLOADS.filter(isAsked);
  if (workloads.length === 0 && !isAsked(IDLE_WORKLOAD)) return undefined;
  const files = await writeBenchFiles(directory);
  const certificate = await writeCertificate(directory);
  const servers: Server[] = [];
  const isWanted = (name: string) => options.servers?.includes(name) ?? true;
  try {
    if (isWanted(OURS)) servers.push(await startOurs(files.zone.file, certificate));
    if (isWanted(REFERENCE) && findProgram(bind.command) !== undefined) {
      servers.push(await startBind(files.zone, certificate));
    }
    const all: Series[] = [];
    for (const workload of workloads) all.push(...(await runRounds(workload, files.staticQueries, servers, options)));
    const idle = isAsked(IDLE_WORKLOAD) ? await idleLines(servers) : [];
    const report = [...(all.length > 0 ? [renderTable(all), ""] : []), ...promiseLines(all), ...idle];
    return { report: report.join("\n"), faults: rcodeFaults(all) };
  } finally {
    for (const server of servers.toReversed()) await server.stop();
  }
}
