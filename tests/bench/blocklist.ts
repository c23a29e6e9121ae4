/** A million blocked names: how long from PUT to effect, what they take, and what one name more writes. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { type ScenarioNode, startNode } from "../scenarios/running-node.ts";
import { seededChance } from "../support/chance.ts";
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";

const NAMES = 1_000_000;
const NXDOMAIN = 3;
const TYPE_A = 1;
/** A node that has just started has things to do yet. */
const SETTLE_MS = 5_000;

/** Some twenty characters each, no two of them the same. */
function domains(count: number, seed: number): string[] {
  const chance = seededChance(seed);
  const tlds = ["com", "net", "org", "info", "example"];
  return Array.from({ length: count }, (_, index) => {
    const random = chance.below(2 ** 31).toString(36);
    return `${random}.${index.toString(36)}-ads.${chance.pick(tlds)}`;
  });
}

/** A figure of /proc in bytes. */
function figure(pid: number, file: "status" | "io", name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+)( kB)?`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "latin1"));
  return Number(match?.[1] ?? Number.NaN) * (match?.[2] === undefined ? 1 : 1024);
}

const inMegabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Milliseconds until the name is blocked, or not blocked any more. */
async function untilBlocked(client: DnsClient, name: string, isBlocked: boolean, sinceMs: number): Promise<number> {
  for (;;) {
    const response = await client.ask(encodeQuery({ name, type: TYPE_A, flags: 0x100 }), 1_000);
    if (response !== undefined && (decodeMessage(response).rcode === NXDOMAIN) === isBlocked) {
      return performance.now() - sinceMs;
    }
    await setTimeout(5);
  }
}

/** The longest that the control thread has been busy at a stretch since the last call, in milliseconds. */
async function longestTurn(node: ScenarioNode): Promise<number> {
  const text = await (await node.get("/metrics")).text();
  return Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]) * 1000;
}

type Put = {
  readonly effectMs: number;
  readonly acknowledgedMs: number;
  readonly controlMs: number;
  readonly written: number;
};

async function put(node: ScenarioNode, api: ApiClient, client: DnsClient, list: readonly string[]): Promise<Put> {
  const pid = node.child.pid;
  const before = figure(pid, "io", "write_bytes");
  const last = list.at(-1) ?? "";
  await longestTurn(node);
  const startMs = performance.now();
  const effect = untilBlocked(client, last, true, startMs);
  const { status, body } = await api.ask("PUT", "/blocklist", { domains: list });
  if (status !== 200) throw new Error(`PUT /blocklist: ${status} ${JSON.stringify(body)}`);
  const acknowledgedMs = performance.now() - startMs;
  const effectMs = await effect;
  const controlMs = await longestTurn(node);
  return { effectMs, acknowledgedMs, controlMs, written: figure(pid, "io", "write_bytes") - before };
}

function line(what: string, { effectMs, acknowledgedMs, controlMs, written }: Put): string {
  const times = `in effect after ${(effectMs / 1000).toFixed(2)} s, acknowledged after ${(acknowledgedMs / 1000).toFixed(2)} s`;
  return `${what}: ${times}; longest turn of the control thread ${controlMs.toFixed(0)} ms; ${inMegabytes(written)} written`;
}

/** What the process has for itself, in bytes: neither programs nor the pages of files. */
function memory({ child: { pid } }: ScenarioNode): number {
  return figure(pid, "status", "RssAnon") + figure(pid, "status", "RssShmem");
}

export async function measureBlocklist(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-bench-blocklist-"));
  try {
    const lines = await measurePuts(directory);
    await using node = await startNode({ zones: [], directory });
    await setTimeout(SETTLE_MS);
    const { emptyBytes, report } = lines;
    return [...report, `memory of a node that starts with it: ${inMegabytes(memory(node) - emptyBytes)} more`].join(
      "\n",
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function measurePuts(directory: string): Promise<{ readonly emptyBytes: number; readonly report: string[] }> {
  await using node = await startNode({ zones: [], directory });
  await setTimeout(SETTLE_MS);
  const emptyBytes = memory(node);
  await using api = await signIn(node.api);
  const [endpoint] = node.dns;
  if (endpoint === undefined) throw new Error("the node answers no DNS");
  const client = await openUdpClient(endpoint);
  try {
    // What the first request makes the node load is none of the list's.
    await api.ask("PUT", "/blocklist", { domains: ["first.example"] });
    const beforeBytes = memory(node);
    const list = domains(NAMES, 1);
    const characters = list.reduce((sum, name) => sum + name.length, 0) / NAMES;
    const first = await put(node, api, client, list);
    const afterBytes = memory(node);
    const peakBytes = figure(node.child.pid, "status", "VmHWM");
    const more = await put(node, api, client, [...list, "one.more.example"]);
    const other = await put(node, api, client, domains(NAMES, 2));
    const report = [
      `Blocklist of ${NAMES.toLocaleString("en")} names of ${characters.toFixed(1)} characters`,
      line("first PUT", first),
      line("one name more", more),
      line("all names others", other),
      `memory at the acknowledgement of the first: ${inMegabytes(afterBytes - beforeBytes)} more; peak of the whole process ${inMegabytes(peakBytes)}`,
      `memory after the last: ${inMegabytes(memory(node) - beforeBytes)} more`,
    ];
    return { emptyBytes, report };
  } finally {
    client.close();
  }
}
