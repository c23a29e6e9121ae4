/**
 * Forwarding, beside unbound, dnsmasq and BIND with the same upstream on loopback: answers from the cache, and questions that
 * nobody has asked before.
 */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startNode } from "../scenarios/running-node.ts";
import { forwarders, forwards, startForwarder } from "../support/forwarders.ts";
import { peers } from "../support/peers.ts";
import { findProgram, type RunningServer, startServer } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";
import { openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";
import { measure, type Sample, type Target } from "./dnsperf.ts";
import { markdown, median, rcodeFaults, rcodeText, type Series } from "./table.ts";
import { userTimeMeter } from "./user-time.ts";

const ZONE = "forward.test";
/** Names that the cached workload asks for in turn; each cache holds them all. */
const CACHED_NAMES = 9_000;
/** More than any of them can answer in one run: a name that is asked twice would be an answer from the cache. */
const MISSES_A_SECOND = 120_000;
const OURS = "signpost";
const REFERENCE = "unbound";
/** Of user time: an answer from the cache against unbound's. */
const CACHED_COST_MAX = 0.7;
/** Of all processor time: a question that must be forwarded against unbound's. */
const MISS_COST_MAX = 1.5;

export const FORWARD_WORKLOADS = ["forward-cached", "forward-cached-cookie", "forward-miss"] as const;
type ForwardWorkload = (typeof FORWARD_WORKLOADS)[number];

export type ForwardOptions = {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
};

type Server = { readonly target: Target; readonly stop: () => Promise<unknown> };

async function writeZone(directory: string): Promise<string> {
  const lines = [
    `$ORIGIN ${ZONE}.`,
    "$TTL 3600",
    "@ SOA ns1 hostmaster 1 7200 900 1209600 300",
    "@ NS ns1",
    "ns1 A 192.0.2.1",
    "*.miss A 192.0.2.2",
    ...Array.from({ length: CACHED_NAMES }, (_, index) => `host-${index} A 10.0.${index >> 8}.${index & 255}`),
  ];
  const file = join(directory, `${ZONE}.zone`);
  await writeFile(file, `${lines.join("\n")}\n`);
  return file;
}

async function writeCachedQueries(directory: string): Promise<string> {
  const file = join(directory, "forward-cached.queries");
  const lines = Array.from({ length: CACHED_NAMES }, (_, index) => `host-${(index * 7919) % CACHED_NAMES}.${ZONE} A`);
  await writeFile(file, `${lines.join("\n")}\n`);
  return file;
}

/** Names that nobody has asked for: `run` tells one run's from another's. */
async function writeMisses(directory: string, run: string, seconds: number): Promise<string> {
  const file = join(directory, "forward-miss.queries");
  const out = createWriteStream(file);
  const count = Math.ceil(MISSES_A_SECOND * seconds);
  let chunk = "";
  for (let index = 0; index < count; index++) {
    chunk += `n${index}-${run}.miss.${ZONE} A\n`;
    if (index % 10_000 !== 9_999) continue;
    if (!out.write(chunk)) await once(out, "drain");
    chunk = "";
  }
  out.end(chunk);
  await once(out, "finish");
  return file;
}

async function startOurs(directory: string, upstreamPort: number): Promise<Server> {
  const node = await startNode({ zones: [] });
  const stop = () => node[Symbol.asyncDispose]();
  try {
    await using pool = openPool(await signInTo(node.api, 1), 1);
    const body = JSON.stringify({ upstreams: [`127.0.0.1:${upstreamPort}`], enabled: true });
    await pool.ask({ method: "PUT", path: "/api/v1/forwarders/default", body });
    const port = node.dns[0]?.port ?? 0;
    await waitFor("the node forwards", 10_000, () => forwards(port, ZONE));
    const { pid, cpu } = node.child;
    const answering = userTimeMeter(pid, (name) => name.startsWith("answer-"), directory);
    return { target: { name: OURS, port, cpu, answering }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startServers(
  directory: string,
  upstreamPort: number,
  { servers: wanted }: ForwardOptions,
): Promise<Server[]> {
  const isWanted = (name: string) => wanted?.includes(name) ?? true;
  const servers: Server[] = [];
  if (isWanted(OURS)) servers.push(await startOurs(directory, upstreamPort));
  for (const program of Object.values(forwarders)) {
    if (!isWanted(program.name)) continue;
    if (findProgram(program.command) === undefined) {
      console.error(`SKIPPED: ${program.command} is not installed; .ci/run names its Debian package`);
      continue;
    }
    const server = await startForwarder(program, upstreamPort, ZONE);
    servers.push({ target: server, stop: server.stop });
  }
  return servers;
}

async function runRounds(
  directory: string,
  workload: ForwardWorkload,
  servers: readonly Server[],
  { rounds, seconds }: ForwardOptions,
): Promise<Series[]> {
  const cached = await writeCachedQueries(directory);
  const samples = new Map<string, Sample[]>(servers.map(({ target }) => [target.name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const { target } of servers) {
      const length = round === 0 ? 1 : seconds;
      const isMiss = workload === "forward-miss";
      const queryFile = isMiss ? await writeMisses(directory, `${target.name}-${round}`, length) : cached;
      const cookie = workload === "forward-cached-cookie";
      const sample = await measure(target, { name: workload, queryFile, transport: "udp", cookie }, length);
      const figures = `${Math.round(sample.queriesPerSecond)}/s, user ${sample.userUs.toFixed(2)} us, system ${sample.systemUs.toFixed(2)} us`;
      console.error(`${workload}, round ${round}: ${target.name} ${figures}, lost ${sample.lost}`);
      if (round > 0) samples.get(target.name)?.push(sample);
    }
  }
  return servers.map(({ target }) => ({ workload, server: target.name, samples: samples.get(target.name) ?? [] }));
}

const userUs = ({ answeringUserUs, userUs: all }: Sample): number => answeringUserUs ?? all;
const allUs = ({ userUs: user, systemUs }: Sample): number => user + systemUs;

function renderTable(all: readonly Series[]): string {
  const heading = [
    "workload",
    "server",
    "queries/s",
    "user us",
    "of it answering",
    "system us",
    "lost",
    "response codes",
  ];
  const rows = all.map(({ workload, server, samples }) => [
    workload,
    server,
    Math.round(median(samples.map(({ queriesPerSecond }) => queriesPerSecond))).toLocaleString("en"),
    median(samples.map((sample) => sample.userUs)).toFixed(2),
    median(samples.map(userUs)).toFixed(2),
    median(samples.map(({ systemUs }) => systemUs)).toFixed(2),
    String(samples.reduce((sum, { lost }) => sum + lost, 0)),
    rcodeText(samples),
  ]);
  return markdown(heading, rows);
}

/** One line a workload: what it costs against unbound, and whether that holds. */
function promiseLines(all: readonly Series[]): string[] {
  const lines: string[] = [];
  for (const { workload, samples } of all.filter(({ server }) => server === OURS)) {
    const other = all.find((series) => series.workload === workload && series.server === REFERENCE);
    if (other === undefined) continue;
    const isMiss = workload === "forward-miss";
    const [cost, limit, what] = isMiss
      ? ([allUs, MISS_COST_MAX, "processor time"] as const)
      : ([userUs, CACHED_COST_MAX, "user time"] as const);
    const ratio = median(samples.map(cost)) / median(other.samples.map(cost));
    const verdict = ratio <= limit ? "holds" : "MISSED";
    lines.push(
      `- ${workload}: ${what} a query ${ratio.toFixed(2)} x ${REFERENCE}, promised at most ${limit}: ${verdict}`,
    );
  }
  return lines;
}

/** The report as Markdown and what is wrong with the answers; undefined where none of these workloads is asked for. */
export async function measureForward(
  directory: string,
  options: ForwardOptions,
): Promise<{ readonly report: string; readonly faults: readonly string[] } | undefined> {
  const workloads = FORWARD_WORKLOADS.filter((name) => options.only?.includes(name) ?? true);
  if (workloads.length === 0) return undefined;
  if (findProgram(peers.nsd.command) === undefined) {
    console.error("SKIPPED: nsd is not installed, and there is no upstream; .ci/run names its Debian package");
    return undefined;
  }
  const running: (Server | RunningServer)[] = [];
  try {
    const upstream = await startServer(peers.nsd, { zones: [{ name: ZONE, file: await writeZone(directory) }] });
    running.push(upstream);
    const servers = await startServers(directory, upstream.port, options);
    running.push(...servers);
    const all: Series[] = [];
    for (const workload of workloads) all.push(...(await runRounds(directory, workload, servers, options)));
    return { report: [renderTable(all), "", ...promiseLines(all)].join("\n"), faults: rcodeFaults(all) };
  } finally {
    for (const server of running.toReversed()) await server.stop();
  }
}
