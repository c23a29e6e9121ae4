/**
 * Answers that are chosen among values whose health is probed, beside our own static ones, gdnsd's plugins and PowerDNS's LUA
 * records. A backend in another process keeps the values up; how many of them it lets down is part of the zones.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { type Child, startChild } from "../support/process.ts";
import { findProgram, type ServerProgram, startServer, type ZoneSource } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";
import { openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";
import { measureDistribution } from "./distribution.ts";
import { measure, type Sample, type Target } from "./dnsperf.ts";
import { isKnownToGdnsd, isKnownToPowerdns, selectedGdnsd, selectedPowerdns } from "./selected-peers.ts";
import { renderSelectedTable, selectedPromiseLines } from "./selected-table.ts";
import {
  addressesOf,
  type BackendPorts,
  bundleOf,
  DOWN,
  hostName,
  NAMES,
  partlyDownAddresses,
  probesOf,
  queryLines,
  SELECTED_ZONES,
  type SelectedZone,
  STATIC_FOUR,
  STATIC_ONE,
  subnetRegions,
  zoneName,
} from "./selected-zones.ts";
import { rcodeFaults, type Series } from "./table.ts";
import { userTimeMeter } from "./user-time.ts";

const BACKEND = fileURLToPath(new URL("./tcp-backend.ts", import.meta.url));
const WARM_UP_SECONDS = 1;
const READY_MS = 120_000;
const CLIENTS = 16;
const CHECKED_NAMES = 64;
const DISTRIBUTION = "distribution";

/** Workloads by what `--only` may name; each brings its variants along. */
const ASKED_AS: ReadonlyMap<string, readonly string[]> = new Map([
  ["weighted", ["weighted", "weighted-down"]],
  ["failover", ["failover"]],
  ["round-robin", ["round-robin", "gated"]],
  ["region", ["region", "geo-failover"]],
  ["affinity", ["affinity"]],
  ["latency", ["latency"]],
  [DISTRIBUTION, ["weighted", "weighted-down"]],
]);

export type SelectedOptions = {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
};

export const SELECTED_WORKLOADS = [...ASKED_AS.keys()].join(", ");

/** Threads that answer UDP, by their names; a server that is not here answers in all of its threads. */
const ANSWERING_THREADS: ReadonlyMap<string, (name: string) => boolean> = new Map([
  ["gdnsd", (name: string) => name === "gdnsd-io-udp"],
]);

type SelectedServer = {
  readonly target: Target;
  readonly answers: (zone: SelectedZone) => boolean;
  readonly stop: () => Promise<unknown>;
};

async function portOf(backend: Child): Promise<number> {
  return Number(await waitFor("the backend", 10_000, () => /^port (\d+)$/m.exec(backend.output())?.[1]));
}

/** Records and mappings through the API, then until every value is judged. */
async function fillNode(node: ScenarioNode, zones: readonly SelectedZone[], ports: BackendPorts): Promise<void> {
  await using pool = openPool(await signInTo(node.api, CLIENTS), CLIENTS);
  const post = (path: string, body: string) => pool.ask({ method: "POST", path: `/api/v1${path}`, body });
  const mapped = [...subnetRegions()].map(([subnet, region]) =>
    post("/subnet-mappings", JSON.stringify({ subnet, region_id: region, source: "manual" })),
  );
  await Promise.all(mapped);
  for (const zone of zones) {
    const { zones: imported } = JSON.parse(await post("/zones/import", bundleOf(zone, ports)));
    console.error(`${zone.name}: ${JSON.stringify(imported).slice(0, 200)}`);
  }
  const expected = probesOf(zones);
  await waitFor("all values judged", READY_MS, async () => {
    const text = await (await node.get("/metrics")).text();
    const count = (state: string) =>
      Number(new RegExp(`^svc_health_probes\\{state="${state}"\\} (\\d+)$`, "m").exec(text)?.[1]);
    return count("healthy") === expected.healthy && count("unhealthy") === expected.unhealthy;
  });
}

async function startOurs(
  directory: string,
  zones: readonly SelectedZone[],
  ports: BackendPorts,
): Promise<SelectedServer> {
  const node = await startNode({ zones: [] });
  const stop = () => node[Symbol.asyncDispose]();
  try {
    await fillNode(node, zones, ports);
    const [endpoint] = node.dns;
    if (endpoint === undefined) throw new Error("the node serves no DNS");
    const { pid, cpu } = node.child;
    const answering = userTimeMeter(pid, (name) => name.startsWith("answer-"), directory);
    const target = { name: "signpost", port: endpoint.port, cpu, answering };
    return { target, answers: () => true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startPeer(
  directory: string,
  program: ServerProgram,
  zones: readonly ZoneSource[],
  answers: SelectedServer["answers"],
): Promise<SelectedServer | undefined> {
  if (zones.length === 0) return undefined;
  if (findProgram(program.command) === undefined) {
    console.error(`SKIPPED: ${program.command} is not installed; .ci/run names its Debian package`);
    return undefined;
  }
  const server = await startServer(program, { zones, readyWithinMs: READY_MS });
  const { name, port, pid, cpu, stop } = server;
  const isAnswering = ANSWERING_THREADS.get(name);
  const answering = isAnswering && { answering: userTimeMeter(pid, isAnswering, directory) };
  return { target: { name, port, cpu, ...answering }, answers, stop };
}

async function startServers(
  directory: string,
  zones: readonly SelectedZone[],
  ports: BackendPorts,
  { servers: wanted }: SelectedOptions,
): Promise<SelectedServer[]> {
  const isWanted = (name: string) => wanted?.includes(name) ?? true;
  const servers: SelectedServer[] = [];
  const add = (server: SelectedServer | undefined) => server !== undefined && servers.push(server);
  if (isWanted("signpost")) add(await startOurs(directory, zones, ports));
  if (isWanted("gdnsd")) {
    const { program, sources } = await selectedGdnsd(directory, zones, ports);
    add(await startPeer(directory, program, sources, isKnownToGdnsd));
  }
  if (isWanted("powerdns")) {
    // It reads no file: its zones are rows of a database.
    const sources = zones.filter(isKnownToPowerdns).map((zone) => ({ name: zoneName(zone), file: "" }));
    add(await startPeer(directory, selectedPowerdns(zones), sources, isKnownToPowerdns));
  }
  return servers;
}

/** Throws where an answer is not what the workload is about: such figures mean nothing. */
async function checkAnswers({ target }: SelectedServer, zone: SelectedZone): Promise<void> {
  const client = await openUdpClient({ port: target.port });
  try {
    for (let index = 0; index < CHECKED_NAMES; index++) {
      const name = `${hostName((index * 7919) % NAMES)}.${zoneName(zone)}`;
      const response = await client.ask(encodeQuery({ name, type: 1 }));
      const { answer = [] } = response === undefined ? {} : decodeMessage(response);
      const given = answer.map(({ rdata }) => Buffer.from(rdata, "hex").join("."));
      const all = addressesOf(zone, (index * 7919) % NAMES);
      const isDown = zone.hasDown && given.includes(all[DOWN] ?? "");
      const isWest = zone.answered(0) !== 2 || given.every((value) => all.indexOf(value) < 2);
      const isRight =
        given.length === zone.answered((index * 7919) % NAMES) && given.every((value) => all.includes(value));
      if (!isRight || isDown || !isWest) {
        throw new Error(
          `${zone.name}: ${target.name} answers ${name} with [${given.join(", ")}] of [${all.join(", ")}]`,
        );
      }
    }
  } finally {
    client.close();
  }
}

/** Rounds are interleaved over servers and workloads, because workloads are held against each other too. */
async function runRounds(
  directory: string,
  zones: readonly SelectedZone[],
  servers: readonly SelectedServer[],
  { rounds, seconds }: SelectedOptions,
): Promise<Series[]> {
  const runs: { zone: SelectedZone; server: SelectedServer; queryFile: string; samples: Sample[] }[] = [];
  for (const zone of zones) {
    const queryFile = join(directory, `${zone.name}.queries`);
    await writeFile(queryFile, queryLines(zone));
    for (const server of servers.filter(({ answers }) => answers(zone))) {
      await checkAnswers(server, zone);
      runs.push({ zone, server, queryFile, samples: [] });
    }
  }
  for (let round = 0; round <= rounds; round++) {
    for (const { zone, server, queryFile, samples } of runs) {
      const workload = { name: zone.name, queryFile, transport: "udp", cookie: false } as const;
      const sample = await measure(server.target, workload, round === 0 ? WARM_UP_SECONDS : seconds);
      const figures = `${Math.round(sample.queriesPerSecond)}/s, user ${sample.userUs.toFixed(2)} us`;
      console.error(`${zone.name}, round ${round}: ${server.target.name} ${figures}, lost ${sample.lost}`);
      if (round > 0) samples.push(sample);
    }
  }
  return runs.map(({ zone, server, samples }) => ({ workload: zone.name, server: server.target.name, samples }));
}

function zonesFor(only: readonly string[] | undefined): readonly SelectedZone[] {
  const asked = only ?? [...ASKED_AS.keys()];
  const names = new Set(asked.flatMap((name) => ASKED_AS.get(name) ?? []));
  if (names.size === 0) return [];
  return SELECTED_ZONES.filter(({ name }) => names.has(name) || name === STATIC_ONE || name === STATIC_FOUR);
}

/** The report as Markdown and what is wrong with the answers; undefined where none of these workloads is asked for. */
export async function measureSelected(
  directory: string,
  options: SelectedOptions,
): Promise<{ readonly report: string; readonly faults: readonly string[] } | undefined> {
  const zones = zonesFor(options.only);
  if (zones.length === 0) return undefined;
  const backends: Child[] = [];
  const servers: SelectedServer[] = [];
  try {
    for (const addresses of [[], partlyDownAddresses()]) {
      backends.push(await startChild("backend", process.execPath, [BACKEND, ...addresses]));
    }
    const [up = 0, partlyDown = 0] = await Promise.all(backends.map(portOf));
    servers.push(...(await startServers(directory, zones, { up, partlyDown }, options)));
    const lines: string[] = [];
    const faults: string[] = [];
    if (options.only?.some((name) => name !== DISTRIBUTION && ASKED_AS.has(name)) ?? true) {
      const all = await runRounds(directory, zones, servers, options);
      lines.push(renderSelectedTable(all), "", ...selectedPromiseLines(all));
      faults.push(...rcodeFaults(all));
    }
    if (options.only?.includes(DISTRIBUTION) ?? true) {
      const ours = servers.find(({ target }) => target.name === "signpost");
      for (const zone of ours === undefined ? [] : zones.filter(({ choice }) => choice === "weighted")) {
        const { line, isKept } = await measureDistribution(ours?.target.port ?? 0, zone);
        lines.push(line);
        if (!isKept) faults.push(line);
      }
    }
    return { report: lines.join("\n"), faults };
  } finally {
    for (const server of servers) await server.stop();
    for (const backend of backends) await backend.stop();
  }
}
