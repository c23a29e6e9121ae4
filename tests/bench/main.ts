/**
 * `npm run bench`: ours and four peers on loopback with the same zone, loaded in turn, one table of medians on standard
 * output; progress goes to standard error. Exit code 1 when a response code is wrong, because such figures mean nothing.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { peers } from "../support/peers.ts";
import { findProgram, type RunningServer, startServer } from "../support/server.ts";
import { signpost, signpostExists } from "../support/signpost.ts";
import { measureAllocation } from "./allocation.ts";
import { measureApiNode } from "./api-node.ts";
import { measureApiPeers } from "./api-peers.ts";
import { measureBlocklist } from "./blocklist.ts";
import { CLUSTER_WORKLOADS, measureCluster } from "./cluster.ts";
import { measure, type Sample, type Workload } from "./dnsperf.ts";
import { ENCRYPTED_WORKLOADS, IDLE_WORKLOAD, measureEncrypted } from "./encrypted.ts";
import { FORWARD_WORKLOADS, measureForward } from "./forward.ts";
import { measureForwardDead } from "./forward-dead.ts";
import { measureLoad } from "./load.ts";
import { measurePrimary, PRIMARY_WORKLOADS } from "./primary.ts";
import { measureProbes } from "./probes.ts";
import { promiseLines } from "./promises.ts";
import { measureSelected, SELECTED_WORKLOADS } from "./selected.ts";
import { rcodeFaults, renderTable, type Series } from "./table.ts";
import { type BenchFiles, writeBenchFiles } from "./zone.ts";

const USAGE = `usage: npm run bench -- [--rounds N] [--seconds S] [--only WORKLOAD,...] [--servers NAME,...] [--records N]
workloads: static, mixed, static-cookie, mixed-cookie, tcp, load, allocation, api, probes, blocklist,
  ${SELECTED_WORKLOADS},
  ${FORWARD_WORKLOADS.join(", ")}, forward-dead,
  ${ENCRYPTED_WORKLOADS.join(", ")}, ${IDLE_WORKLOAD},
  ${PRIMARY_WORKLOADS.join(", ")},
  ${CLUSTER_WORKLOADS.join(", ")} (default: all)
servers: signpost, nsd, knot, bind, gdnsd, powerdns, unbound, dnsmasq (default: all)`;

function workloads(files: BenchFiles): Workload[] {
  const { staticQueries, mixedQueries } = files;
  return [
    { name: "static", queryFile: staticQueries, transport: "udp", cookie: false },
    { name: "mixed", queryFile: mixedQueries, transport: "udp", cookie: false },
    { name: "static-cookie", queryFile: staticQueries, transport: "udp", cookie: true },
    { name: "mixed-cookie", queryFile: mixedQueries, transport: "udp", cookie: true },
    { name: "tcp", queryFile: staticQueries, transport: "tcp", cookie: false },
  ];
}

const WARM_UP_SECONDS = 1;

type Options = {
  readonly rounds: number;
  readonly seconds: number;
  /** Undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
  /** Of the store behind the API. */
  readonly records: number;
};

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "5" },
      only: { type: "string" },
      servers: { type: "string" },
      records: { type: "string", default: "1000000" },
      help: { type: "boolean", default: false },
    },
  });
  const [rounds, seconds, records] = [values.rounds, values.seconds, values.records].map(Number) as [
    number,
    number,
    number,
  ];
  if (values.help || !Number.isInteger(rounds) || rounds < 1 || !(seconds > 0) || !(records >= 100_000)) {
    console.error(USAGE);
    process.exit(values.help ? 0 : 1);
  }
  return { rounds, seconds, records, only: values.only?.split(","), servers: values.servers?.split(",") };
}

/** Every server is up during all of the run; idle ones cost next to nothing. */
async function startAll(options: Options, files: BenchFiles): Promise<RunningServer[]> {
  const programs = [...(signpostExists() ? [signpost] : []), ...Object.values(peers)];
  const servers: RunningServer[] = [];
  for (const program of programs) {
    if (options.servers !== undefined && !options.servers.includes(program.name)) continue;
    if (findProgram(program.command) === undefined) {
      console.error(`SKIPPED: ${program.command} is not installed; .ci/run names its Debian package`);
      continue;
    }
    servers.push(await startServer(program, { zones: [files.zone], readyWithinMs: 60_000 }));
  }
  return servers;
}

/** Rounds are interleaved over the servers, so that whatever else the machine does meets all of them. */
async function runWorkload(
  workload: Workload,
  servers: readonly RunningServer[],
  { rounds, seconds }: Options,
): Promise<Series[]> {
  const samples = new Map<string, Sample[]>(servers.map(({ name }) => [name, []]));
  // Caches fill, and ours compiles what it runs often: a server is measured in its steady state.
  for (const server of servers) await measure(server, workload, WARM_UP_SECONDS);
  for (let round = 1; round <= rounds; round += 1) {
    for (const server of servers) {
      const sample = await measure(server, workload, seconds);
      const figures = `${Math.round(sample.queriesPerSecond)}/s, user ${sample.userUs.toFixed(2)} us`;
      console.error(`${workload.name}, round ${round}: ${server.name} ${figures}, lost ${sample.lost}`);
      samples.get(server.name)?.push(sample);
    }
  }
  return servers.map(({ name }) => ({ workload: workload.name, server: name, samples: samples.get(name) ?? [] }));
}

async function runThroughput(options: Options, directory: string): Promise<string[]> {
  const files = await writeBenchFiles(directory);
  const chosen = workloads(files).filter(({ name }) => options.only?.includes(name) ?? true);
  if (chosen.length === 0) return [];
  const servers = await startAll(options, files);
  const all: Series[] = [];
  for (const workload of chosen) all.push(...(await runWorkload(workload, servers, options)));
  for (const server of servers) await server.stop();
  console.log(renderTable(all));
  for (const line of ["", ...promiseLines(all)]) console.log(line);
  return rcodeFaults(all);
}

/** How much the answer loop allocates; the promise is nothing, in the steady state. */
function allocationLine(): string {
  const { answers, allocatedBytes, heapGrowthBytes, nanosecondsEach } = measureAllocation(10_000_000, 2_000_000);
  const each = (allocatedBytes / answers).toFixed(2);
  const grown = (heapGrowthBytes / 1_048_576).toFixed(1);
  const what = `${answers.toLocaleString("en")} answers in one thread, ${nanosecondsEach.toFixed(0)} ns each`;
  return `${what}: ${allocatedBytes.toLocaleString("en")} bytes allocated, ${each} an answer; the heap grew by ${grown} MiB`;
}

const options = readOptions();
const directory = await mkdtemp(join(tmpdir(), "signpost-bench-"));
try {
  const faults = await runThroughput(options, directory);
  for (const fault of faults) console.error(`WRONG RESPONSE CODES: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  const selected = await measureSelected(directory, options);
  if (selected !== undefined) console.log(`\n${selected.report}`);
  for (const fault of selected?.faults ?? []) {
    console.error(`WRONG ANSWERS: ${fault}`);
    process.exitCode = 1;
  }
  const forwarded = await measureForward(directory, options);
  if (forwarded !== undefined) console.log(`\n${forwarded.report}`);
  for (const fault of forwarded?.faults ?? []) {
    console.error(`WRONG ANSWERS: ${fault}`);
    process.exitCode = 1;
  }
  const encrypted = await measureEncrypted(directory, options);
  if (encrypted !== undefined) console.log(`\n${encrypted.report}`);
  for (const fault of encrypted?.faults ?? []) {
    console.error(`WRONG ANSWERS: ${fault}`);
    process.exitCode = 1;
  }
  const primary = await measurePrimary(directory, options);
  if (primary !== undefined) console.log(`\n${primary.report}`);
  for (const fault of primary?.faults ?? []) {
    console.error(`WRONG ANSWERS: ${fault}`);
    process.exitCode = 1;
  }
  const cluster = await measureCluster(directory, options);
  if (cluster !== undefined) console.log(`\n${cluster}`);
  if (options.only?.includes("allocation") ?? true) console.log(`\n${allocationLine()}`);
  if (options.only?.includes("api") ?? true) {
    console.log(`\n${await measureApiPeers(options.rounds, options.seconds)}`);
    console.log(`\n${(await measureApiNode(options)).join("\n")}`);
  }
  if (options.only?.includes("probes") ?? true) console.log(`\n${await measureProbes(directory)}`);
  if (options.only?.includes("forward-dead") ?? true) console.log(`\n${await measureForwardDead()}`);
  if (options.only?.includes("blocklist") ?? true) console.log(`\n${await measureBlocklist()}`);
  if (options.only?.includes("load") ?? true) console.log(`\n${await measureLoad(directory, options.rounds)}`);
} finally {
  await rm(directory, { recursive: true, force: true });
}
