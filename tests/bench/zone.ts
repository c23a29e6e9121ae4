import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { seededChance } from "../support/chance.ts";
import type { ZoneSource } from "../support/server.ts";

/** Names of the generated zone by what lies at them; together with the apex and ns1 they make 100,000. */
const HOSTS = 93_998;
const MAIL_NAMES = 4_000;
const WILDCARDS = 2_000;
/** Every fourth host has an AAAA record too, so that NODATA has existing names of one type to ask for. */
const AAAA_EVERY = 4;

const QUERY_LINES = 400_000;
const SEED = 20260;

export const BENCH_ZONE = "bench.test";

function address(number: number): string {
  return `10.${(number >> 16) & 0xff}.${(number >> 8) & 0xff}.${number & 0xff}`;
}

function* apex(zone: string): Generator<string> {
  yield `$ORIGIN ${zone}.`;
  yield "$TTL 3600";
  yield "@ SOA ns1 hostmaster 1 7200 900 1209600 300";
  yield "@ NS ns1";
  yield "ns1 A 10.255.255.1";
}

/** The zone of 100,000 names. It holds nothing that gdnsd, the strictest of the peers, refuses. */
function* benchZone(): Generator<string> {
  yield* apex(BENCH_ZONE);
  for (let i = 0; i < HOSTS; i += 1) {
    yield `host-${i} A ${address(i)}`;
    if (i % AAAA_EVERY === 0) yield `host-${i} AAAA fd00::${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}`;
  }
  for (let i = 0; i < MAIL_NAMES; i += 1) {
    yield `mail-${i} MX 10 host-${i * 7}`;
    yield `mail-${i} MX 20 host-${i * 7 + 1}`;
  }
  for (let i = 0; i < WILDCARDS; i += 1) yield `*.wild-${i} A ${address(0xc80000 + i)}`;
}

export const MILLION = 1_000_000;

/** What `host-<index>` of the zone of one million A records has. */
export function millionAddress(index: number): string {
  return address(index);
}

function* oneMillionAddresses(zone: string): Generator<string> {
  yield* apex(zone);
  for (let i = 0; i < MILLION; i += 1) yield `host-${i} A ${address(i)}`;
}

function* staticQueries(): Generator<string> {
  const { below } = seededChance(SEED);
  for (let i = 0; i < QUERY_LINES; i += 1) yield `host-${below(HOSTS)}.${BENCH_ZONE} A`;
}

/** A quarter each: NXDOMAIN, wildcard, NODATA, MX. */
function* mixedQueries(): Generator<string> {
  const { below } = seededChance(SEED + 1);
  for (let i = 0; i < QUERY_LINES; i += 4) {
    yield `missing-${below(1_000_000)}.${BENCH_ZONE} A`;
    yield `any-${below(1_000_000)}.wild-${below(WILDCARDS)}.${BENCH_ZONE} A`;
    yield `host-${below(HOSTS / AAAA_EVERY - 1) * AAAA_EVERY + 1}.${BENCH_ZONE} AAAA`;
    yield `mail-${below(MAIL_NAMES)}.${BENCH_ZONE} MX`;
  }
}

async function writeLines(file: string, lines: Iterable<string>): Promise<void> {
  const stream = createWriteStream(file);
  let block: string[] = [];
  for (const line of lines) {
    block.push(line);
    if (block.length < 10_000) continue;
    if (!stream.write(`${block.join("\n")}\n`)) await once(stream, "drain");
    block = [];
  }
  stream.end(block.length > 0 ? `${block.join("\n")}\n` : "");
  await once(stream, "finish");
}

export type BenchFiles = { readonly zone: ZoneSource; readonly staticQueries: string; readonly mixedQueries: string };

/** Writes the zone of 100,000 names and the query files into `directory`; the same bytes every time. */
export async function writeBenchFiles(directory: string): Promise<BenchFiles> {
  const files = {
    zone: { name: BENCH_ZONE, file: `${directory}/${BENCH_ZONE}.zone` },
    staticQueries: `${directory}/static.queries`,
    mixedQueries: `${directory}/mixed.queries`,
  };
  await writeLines(files.zone.file, benchZone());
  await writeLines(files.staticQueries, staticQueries());
  await writeLines(files.mixedQueries, mixedQueries());
  return files;
}

/** Writes the zone of one million A records into `directory`. */
export async function writeMillionZone(directory: string): Promise<ZoneSource> {
  const zone = { name: "million.test", file: `${directory}/million.test.zone` };
  await writeLines(zone.file, oneMillionAddresses(zone.name));
  return zone;
}

function* hosts(zone: string, count: number): Generator<string> {
  yield* apex(zone);
  for (let i = 0; i < count; i += 1) yield `host-${i} A ${address(i)}`;
}

/** Writes a zone of so many hosts into that file. */
export async function writeHostsZone(file: string, name: string, count: number): Promise<ZoneSource> {
  await writeLines(file, hosts(name, count));
  return { name, file };
}
