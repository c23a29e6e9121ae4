/**
 * The API of a node that holds a million records and a million audit entries: reads, the time from a 2xx to the answer
 * on the wire, an import among other work, durable creates, and memory while the audit log is exported.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDataDirectory } from "../../src/node/data-directory.ts";
import { nodeKeys } from "../../src/node/keys.ts";
import { nodeIdOf } from "../../src/node/node-id.ts";
import { openStore } from "../../src/store/open-store.ts";
import { type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { runToEnd } from "../support/process.ts";
import { buildSlowDisk } from "../support/slow-disk.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";
import { type ApiPool, type ApiTarget, type Figures, figuresOf, forSeconds, load, openPool } from "./api-load.ts";
import { signInTo } from "./api-peers.ts";

const ZONE_RECORDS = 50_000;
const SLICE = 5_000;
const PAGE = 500;
const READERS = 4;
const WRITERS = 16;
const CHANGES = 1_000;
const IMPORT_RECORDS = 50_000;
const IMPORT_ROUNDS = 3;
const FLUSH_WAIT_MS = 5;
const SAMPLE_MS = 20;
const MIB = 2 ** 20;

export type NodeBenchOptions = { readonly records: number; readonly seconds: number };

/** Records and audit entries straight into the store of a node that does not run. */
async function fill(data: string, records: number): Promise<void> {
  await mkdir(data);
  const { key, release } = openDataDirectory(data, undefined);
  const secretKey = nodeKeys(key, undefined).store;
  const store = await openStore({ directory: data, nodeId: nodeIdOf(data, undefined), secretKey });
  for (let first = 0; first < records; first += SLICE) {
    const zone = zoneAt(first);
    await store.write((tx) => {
      if (tx.get("zone", [zone]) === undefined) {
        tx.put("zone", zoneBody(zone, { id: `zon_${zone.slice(0, -1)}` }));
        tx.setState(zone, "active");
      }
      for (let index = first; index < Math.min(first + SLICE, records); index++) {
        const body = recordAt(index);
        tx.put("record", body);
        tx.audit(auditInput({ resource_id: body.id, resource_name: `${body.name}.${zone}`, after: body }));
      }
    });
  }
  await store[Symbol.asyncDispose]();
  release();
}

function zoneAt(index: number): string {
  return `zone${Math.floor(index / ZONE_RECORDS)}.test.`;
}

function recordAt(index: number) {
  const id = `rec_${index}`;
  const value = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  return recordBody(zoneAt(index), `host${index % ZONE_RECORDS}`, { id, ttl: 300, values: [{ value }] });
}

function say(what: string, figures: Figures, promised = ""): string {
  const { requests, perSecond, p50Ms, p99Ms, maxMs } = figures;
  const times = `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms, most ${maxMs.toFixed(1)} ms`;
  return `- ${what}: ${requests} of them, ${perSecond.toFixed(0)}/s, ${times}${promised === "" ? "" : ` (promised: ${promised})`}`;
}

/** Memory of the process's own, the image included; pages of the store's file, which the kernel maps and takes back, are left out. */
async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "latin1");
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

async function measureReads(pool: ApiPool, { records, seconds }: NodeBenchOptions): Promise<string[]> {
  const readOne = (turn: number) => pool.ask({ method: "GET", path: `/api/v1/records/rec_${(turn * 7919) % records}` });
  await load(READERS, forSeconds(1), readOne);
  const one = await load(READERS, forSeconds(seconds), readOne);
  const zones = Math.ceil(records / ZONE_RECORDS);
  const cursors = new Map<number, string | null>();
  // Pages that follow each other through a zone, so that cursors far into it are measured too.
  const readPage = async (turn: number) => {
    const zone = turn % zones;
    const cursor = cursors.get(zone);
    const after = cursor === undefined || cursor === null ? "" : `&cursor=${cursor}`;
    const path = `/api/v1/zones/zon_zone${zone}.test/records?limit=${PAGE}${after}`;
    cursors.set(zone, JSON.parse(await pool.ask({ method: "GET", path })).next_cursor);
  };
  await load(1, forSeconds(1), readPage);
  const page = await load(1, forSeconds(seconds), readPage);
  return [
    say(`GET of one record, ${READERS} clients`, one, "p99 under 10 ms"),
    say(`GET of a page of ${PAGE}`, page, "p99 under 50 ms"),
  ];
}

/** Milliseconds until the answer has that address. */
async function untilAnswered(dns: DnsClient, query: Uint8Array, address: string): Promise<number> {
  const began = performance.now();
  const rdata = Buffer.from(address.split(".").map(Number)).toString("hex");
  for (;;) {
    const response = await dns.ask(query, 5_000);
    const now = performance.now() - began;
    if (response !== undefined && decodeMessage(response).answer[0]?.rdata === rdata) return now;
    if (now > 5_000) throw new Error(`${address} is not answered`);
  }
}

/** Promise 5, beside nothing else and in a zone of 50,000 records. */
async function measurePublishing(node: ScenarioNode, pool: ApiPool): Promise<string[]> {
  const [endpoint] = node.dns;
  if (endpoint === undefined) throw new Error("the node serves no DNS");
  const dns = await openUdpClient(endpoint);
  const [created, changed]: [number[], number[]] = [[], []];
  const began = performance.now();
  for (let index = 0; index < CHANGES; index++) {
    const name = `fresh${index}`;
    const query = encodeQuery({ name: `${name}.zone0.test`, type: 1 });
    const bodyOf = (address: string) => JSON.stringify({ ttl: 60, values: [{ value: address }] });
    const create = JSON.stringify({ name, type: "A", ...JSON.parse(bodyOf("192.0.2.1")) });
    const made = await pool.ask({ method: "POST", path: "/api/v1/zones/zon_zone0.test/records", body: create });
    created.push(await untilAnswered(dns, query, "192.0.2.1"));
    await pool.ask({ method: "PUT", path: `/api/v1/records/${JSON.parse(made).id}`, body: bodyOf("192.0.2.2") });
    changed.push(await untilAnswered(dns, query, "192.0.2.2"));
  }
  dns.close();
  const elapsed = performance.now() - began;
  return [
    say("from the 2xx of a create to its answer on the wire", figuresOf(created, elapsed), "p99 under 10 ms"),
    say("from the 2xx of a change to its answer on the wire", figuresOf(changed, elapsed), "p99 under 10 ms"),
  ];
}

function zoneFileOf(zone: string, octet: number): string {
  const lines = [`$ORIGIN ${zone}`, "$TTL 300", "@ IN SOA ns1 hostmaster 1 7200 900 1209600 300"];
  for (let index = 0; index < IMPORT_RECORDS; index++) {
    lines.push(`host${index} IN A 10.${octet}.${index >> 8}.${index & 255}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The longest that a DNS query waits, by dnsperf in a process of its own, which asks 1,000 a second. */
async function longestQueryMs(node: ScenarioNode, directory: string, seconds: number): Promise<number> {
  const queries = join(directory, "import-queries");
  await writeFile(queries, Array.from({ length: 1_000 }, (_, index) => `host${index}.zone1.test A`).join("\n"));
  const [endpoint] = node.dns;
  const args = ["-s", "127.0.0.1", "-p", String(endpoint?.port), "-d", queries, "-c", "1", "-T", "1", "-Q", "1000"];
  const report = await runToEnd("dnsperf", [...args, "-l", String(seconds)], (seconds + 30) * 1000);
  const [, lost] = /Queries lost:\s+(\d+)/.exec(report) ?? [];
  const [, longest] = /Average Latency.*max ([0-9.]+)\)/.exec(report) ?? [];
  if (lost !== "0" || longest === undefined) throw new Error(`queries were lost:\n${report}`);
  return Number(longest) * 1000;
}

/** Promise 8: new zones, and the last of them once more with every record changed. */
async function measureImports(
  node: ScenarioNode,
  pools: { readonly writer: ApiPool; readonly reader: ApiPool },
  directory: string,
): Promise<string[]> {
  const lines: string[] = [];
  const idle = await longestQueryMs(node, directory, 3);
  lines.push(`- longest DNS query of 3 s without an import: ${idle.toFixed(1)} ms`);
  for (let round = 0; round <= IMPORT_ROUNDS; round++) {
    const zone = `import${Math.min(round, IMPORT_ROUNDS - 1)}.test.`;
    const body = Buffer.from(zoneFileOf(zone, round));
    let isOver = false;
    const queries = longestQueryMs(node, directory, 4);
    const reads = load(
      1,
      () => isOver,
      (turn) => pools.reader.ask({ method: "GET", path: `/api/v1/records/rec_${turn}` }),
    );
    const before = node.child.cpu();
    const began = performance.now();
    await pools.writer.ask({ method: "POST", path: "/api/v1/zones/import", body, contentType: "text/dns" });
    const tookMs = performance.now() - began;
    const after = node.child.cpu();
    isOver = true;
    const usedMs = after.userMs + after.systemMs - before.userMs - before.systemMs;
    const kind = round === IMPORT_ROUNDS ? "changed" : "new";
    lines.push(
      `- import of ${IMPORT_RECORDS} ${kind} records: ${tookMs.toFixed(0)} ms (promised: under 3,000), ${usedMs} ms of processor, reads included`,
      `  ${say("API reads meanwhile", await reads, "p99 under 50 ms")}`,
      `  - longest DNS query of 4 s, import included: ${(await queries).toFixed(1)} ms (promised: at most 20 ms)`,
    );
  }
  return lines;
}

async function measureExport(node: ScenarioNode, target: ApiTarget): Promise<string> {
  const { pid } = node.child;
  const before = await residentBytes(pid);
  let most = before;
  const timer = setInterval(async () => {
    most = Math.max(most, await residentBytes(pid));
  }, SAMPLE_MS);
  const began = performance.now();
  const { count, bytes } = await exportAudit(target);
  const seconds = (performance.now() - began) / 1000;
  clearInterval(timer);
  const mib = (size: number) => `${(size / MIB).toFixed(0)} MiB`;
  return `- export of the audit log, ${count} entries, ${mib(bytes)} in ${seconds.toFixed(1)} s: resident without the store's file ${mib(before)} before, ${mib(most)} at most`;
}

async function exportAudit({ url, headers }: ApiTarget): Promise<{ readonly count: number; readonly bytes: number }> {
  const { Agent, request } = await import("undici");
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const { body } = await request(`${url}/api/v1/audit/export`, { headers, dispatcher });
  let [count, bytes] = [0, 0];
  for await (const chunk of body) {
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count++;
  }
  await dispatcher.destroy();
  return { count, bytes };
}

async function measureCreates(node: ScenarioNode, seconds: number, title: string): Promise<string> {
  const target = await signInTo(node.api, 1);
  await using pool = openPool(target, WRITERS);
  let number = 0;
  const create = () => {
    const name = `made${process.pid}-${title.length}-${number++}`;
    const body = JSON.stringify({ name, type: "A", ttl: 60, values: [{ value: "192.0.2.1" }] });
    return pool.ask({ method: "POST", path: "/api/v1/zones/zon_zone0.test/records", body });
  };
  await load(WRITERS, forSeconds(2), create);
  const before = node.child.cpu();
  const figures = await load(WRITERS, forSeconds(seconds), create);
  const after = node.child.cpu();
  const cpuUs = ((after.userMs + after.systemMs - before.userMs - before.systemMs) * 1000) / figures.requests;
  return `${say(title, figures, "1,000 a second")}, ${cpuUs.toFixed(0)} us of processor each`;
}

/** Lines of Markdown. */
export async function measureApiNode(options: NodeBenchOptions): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-api-bench-"));
  const lines: string[] = [];
  const add = (...more: readonly string[]) => {
    lines.push(...more);
    for (const line of more) console.error(line);
  };
  try {
    await fill(join(directory, "data"), options.records);
    const began = performance.now();
    await using node = await startNode({ zones: [], directory });
    const resident = (await residentBytes(node.child.pid)) / MIB;
    const seconds = (performance.now() - began) / 1000;
    add(
      `- start with ${options.records} records: ${seconds.toFixed(1)} s until all answer, ${resident.toFixed(0)} MiB resident without the store's file`,
    );
    const target = await signInTo(node.api, 1);
    await using reader = openPool(target, READERS);
    await using writer = openPool(target, 1);
    add(...(await measureReads(reader, options)));
    add(...(await measurePublishing(node, writer)));
    add(...(await measureImports(node, { writer, reader }, directory)));
    add(await measureCreates(node, options.seconds, `durable creates, ${WRITERS} clients`));
    add(await measureExport(node, target));
    await node.child.stop();
    const slowDisk = buildSlowDisk(directory);
    if (slowDisk === undefined) add("- SKIPPED: no gcc, so no creates on a slow disk");
    else {
      const env = { LD_PRELOAD: slowDisk, FLUSH_WAIT_MS: String(FLUSH_WAIT_MS) };
      await using slow = await startNode({ zones: [], directory, env });
      add(
        await measureCreates(
          slow,
          options.seconds,
          `durable creates, ${WRITERS} clients, ${FLUSH_WAIT_MS} ms in every flush`,
        ),
      );
    }
    return lines;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
