/**
 * Transfers and updates beside Knot, NSD and BIND: `axfr` is the time from the request for a zone of 50,000 records to the last byte
 * of it, of a zone that has not changed and of one that changed just before; `update` is the time of single updates, signed, over UDP,
 * one after the other, each looked up behind its answer.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { CLASS, OPCODE, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { encodeMessage, type ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText } from "../../src/dns/name.ts";
import { signRequest } from "../../src/dns/tsig.ts";
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { benchKey, OURS, type PrimaryServer, startPrimaries } from "./primary-peers.ts";
import { markdown, median } from "./table.ts";
import { writeHostsZone } from "./zone.ts";

export const PRIMARY_WORKLOADS = ["axfr", "update"] as const;

const ZONE = "transfer.test";
const HOSTS = 50_000;
/** Hosts, NS, the address of its server, and the SOA at both ends. */
const TRANSFERRED = HOSTS + 4;
const TRANSFERS_PER_ROUND = 10;
const UPDATES_PER_ROUND = 1_000;
const WARM_UP_UPDATES = 200;
const TIMEOUT_MS = 20_000;
/** Of the time that Knot takes. */
const AXFR_MAX = 2;
const UPDATE_P99_MS = 10;

export type PrimaryOptions = {
  readonly rounds: number;
  readonly only: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
};

export type PrimaryReport = { readonly report: string; readonly faults: readonly string[] };

export async function measurePrimary(directory: string, options: PrimaryOptions): Promise<PrimaryReport | undefined> {
  const chosen = PRIMARY_WORKLOADS.filter((name) => options.only?.includes(name) ?? true);
  if (chosen.length === 0) return undefined;
  // Knot and BIND may write to the file of a zone that they take updates for.
  const zone = (server: string) => writeHostsZone(join(directory, `${server}.zone`), ZONE, HOSTS);
  const servers = await startPrimaries(zone, options.servers);
  const faults: string[] = [];
  try {
    const parts: string[] = [];
    if (chosen.includes("axfr")) parts.push(await measureTransfers(servers, options.rounds, faults));
    if (chosen.includes("update")) parts.push(await measureUpdates(servers, options.rounds, faults));
    return { report: parts.join("\n\n"), faults };
  } finally {
    for (const server of servers) await server.stop();
  }
}

type TransferSeries = {
  /** The first one that the server was asked for. */
  readonly firstMs: number;
  readonly unchanged: number[];
  readonly changed: number[];
  /** Records that are there besides those of the file. */
  extra: number;
  bytes: number;
};

async function measureTransfers(servers: readonly PrimaryServer[], rounds: number, faults: string[]): Promise<string> {
  const all = new Map<string, TransferSeries>();
  for (const server of servers) {
    const { ms, bytes } = await transfer(server, 0, faults);
    all.set(server.name, { firstMs: ms, unchanged: [], changed: [], extra: 0, bytes });
  }
  for (let round = 1; round <= rounds; round++) {
    for (const server of servers) {
      const series = all.get(server.name);
      if (series !== undefined) await takeRound(server, series, faults);
      console.error(`axfr, round ${round}: ${server.name} ${median(series?.unchanged ?? []).toFixed(1)} ms`);
    }
  }
  const knot = all.get("knot");
  const rows = [...all].map(([name, { firstMs, unchanged, changed, bytes }]) => [
    name,
    firstMs.toFixed(1),
    median(unchanged).toFixed(1),
    ratio(median(unchanged), knot?.unchanged),
    changed.length === 0 ? "-" : median(changed).toFixed(1),
    changed.length === 0 ? "-" : ratio(median(changed), knot?.changed),
    bytes.toLocaleString("en"),
  ]);
  const heading = ["server", "first, ms", "unchanged, ms", "of Knot's", "just changed, ms", "of Knot's", "bytes"];
  const ours = all.get(OURS);
  if (ours === undefined || knot === undefined) return markdown(heading, rows);
  const worst = Math.max(median(ours.unchanged) / median(knot.unchanged), median(ours.changed) / median(knot.changed));
  const promise = `A transfer of ${HOSTS.toLocaleString("en")} records in at most ${AXFR_MAX} times Knot's time: ${worst.toFixed(2)}, ${worst <= AXFR_MAX ? "kept" : "NOT KEPT"}.`;
  return `${markdown(heading, rows)}\n\n${promise}`;
}

async function takeRound(server: PrimaryServer, series: TransferSeries, faults: string[]): Promise<void> {
  await using updater = await openUpdater(server);
  for (let count = 0; count < TRANSFERS_PER_ROUND; count++) {
    series.unchanged.push((await transfer(server, series.extra, faults)).ms);
    if (!server.takesUpdates) continue;
    // Every second one adds a name, and the next one removes it.
    series.extra = 1 - series.extra;
    await updater.send(series.extra === 1 ? "add" : "delete", "extra", `10.99.0.${count}`);
    series.changed.push((await transfer(server, series.extra, faults)).ms);
  }
}

function ratio(ms: number, reference: readonly number[] | undefined): string {
  return reference === undefined || reference.length === 0 ? "-" : (ms / median(reference)).toFixed(2);
}

type Transferred = { readonly ms: number; readonly bytes: number };

/** From the request, on a connection that stands, to the last byte; answers are counted and not looked at. */
async function transfer({ name, port }: PrimaryServer, extra: number, faults: string[]): Promise<Transferred> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  try {
    await once(socket, "connect");
    const query = encodeQuery({ name: ZONE, type: RRTYPE.AXFR });
    const framed = Buffer.alloc(2 + query.length);
    framed.writeUInt16BE(query.length);
    framed.set(query, 2);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const reader = createAnswerCount();
    let bytes = 0;
    socket.setTimeout(TIMEOUT_MS, () => reject(new Error(`${name} sends no more: ${reader.answers()} answers`)));
    socket.once("error", reject);
    socket.once("end", () => reject(new Error(`${name} ends the transfer after ${reader.answers()} answers`)));
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      reader.take(chunk);
      if (reader.answers() >= TRANSFERRED + extra) resolve();
    });
    const sinceMs = performance.now();
    socket.write(framed);
    await promise;
    const ms = performance.now() - sinceMs;
    if (reader.answers() !== TRANSFERRED + extra) faults.push(`axfr: ${name} sent ${reader.answers()} records`);
    return { ms, bytes };
  } finally {
    socket.destroy();
  }
}

/** Adds up the answers that the headers of framed messages tell of. */
function createAnswerCount(): { readonly take: (chunk: Buffer) => void; readonly answers: () => number } {
  const HEAD_BYTES = 10;
  const head = Buffer.alloc(HEAD_BYTES);
  let held = 0;
  let skip = 0;
  let answers = 0;
  return {
    answers: () => answers,
    take: (chunk) => {
      for (let at = 0; at < chunk.length; ) {
        if (skip > 0) {
          const passed = Math.min(skip, chunk.length - at);
          skip -= passed;
          at += passed;
          continue;
        }
        const copied = chunk.copy(head, held, at, at + HEAD_BYTES - held);
        held += copied;
        at += copied;
        if (held < HEAD_BYTES) return;
        answers += head.readUInt16BE(8);
        skip = 2 + head.readUInt16BE(0) - HEAD_BYTES;
        held = 0;
      }
    },
  };
}

type Updater = AsyncDisposable & {
  /** One A record; resolves with the RCODE. */
  readonly send: (kind: "add" | "delete", name: string, address: string) => Promise<number>;
  /** The addresses that the name has. */
  readonly look: (name: string) => Promise<number>;
};

async function openUpdater({ name: server, port }: PrimaryServer): Promise<Updater> {
  const client: DnsClient = await openUdpClient({ port });
  const key = benchKey();
  let id = 0;
  const exchange = async (bytes: Uint8Array): Promise<Buffer> => {
    const answer = await client.ask(Buffer.from(bytes), TIMEOUT_MS);
    if (answer === undefined) throw new Error(`${server} does not answer`);
    return answer;
  };
  return {
    send: async (kind, name, address) => {
      id = (id + 1) % 0x1_0000;
      const owner = wireName(`${name}.${ZONE}.`);
      const rdata = Uint8Array.from(address.split("."), Number);
      const record: ResourceRecord =
        kind === "add"
          ? { name: owner, type: RRTYPE.A, class: CLASS.IN, ttl: 60, rdata }
          : { name: owner, type: RRTYPE.A, class: CLASS.ANY, ttl: 0, rdata: new Uint8Array(0) };
      const { bytes } = encodeMessage({
        ...{ id, flags: 0, opcode: OPCODE.UPDATE, rcode: RCODE.NOERROR, edns: undefined },
        questions: [{ name: wireName(`${ZONE}.`), type: RRTYPE.SOA, class: CLASS.IN }],
        ...{ answers: [], authorities: [record], additionals: [] },
      });
      const answer = await exchange(signRequest(key, bytes, Math.floor(Date.now() / 1_000)).bytes);
      const rcode = (answer[3] ?? 0) & 0xf;
      if (rcode !== RCODE.NOERROR) throw new Error(`${server} answers an update with RCODE ${rcode}`);
      return rcode;
    },
    look: async (name) => (await exchange(encodeQuery({ name: `${name}.${ZONE}`, type: RRTYPE.A }))).readUInt16BE(6),
    [Symbol.asyncDispose]: async () => client.close(),
  };
}

function wireName(text: string): Uint8Array {
  const name = nameFromText(text);
  if (name.kind === "error") throw new Error(name.reason);
  return name.name;
}

async function measureUpdates(servers: readonly PrimaryServer[], rounds: number, faults: string[]): Promise<string> {
  const updating = servers.filter(({ takesUpdates }) => takesUpdates);
  const all = new Map(updating.map(({ name }) => [name, { ms: [] as number[], cpuMs: 0 }]));
  for (let round = 0; round <= rounds; round++) {
    for (const server of updating) {
      const times = await timeUpdates(server, round === 0 ? WARM_UP_UPDATES : UPDATES_PER_ROUND, faults);
      console.error(`update, round ${round}: ${server.name} p99 ${quantile(times.ms, 0.99).toFixed(2)} ms`);
      const series = all.get(server.name);
      if (round === 0 || series === undefined) continue;
      series.ms.push(...times.ms);
      series.cpuMs += times.cpuMs;
    }
  }
  const rows = [...all].map(([name, { ms, cpuMs }]) => [
    name,
    ...[0.5, 0.9, 0.99, 1].map((share) => quantile(ms, share).toFixed(2)),
    (cpuMs / ms.length).toFixed(2),
  ]);
  const table = markdown(["server", "p50, ms", "p90, ms", "p99, ms", "longest, ms", "CPU an update, ms"], rows);
  const ours = all.get(OURS);
  if (ours === undefined) return table;
  const p99 = quantile(ours.ms, 0.99);
  return `${table}\n\nAn update answered and visible within ${UPDATE_P99_MS} ms p99: ${p99.toFixed(2)}, ${p99 <= UPDATE_P99_MS ? "kept" : "NOT KEPT"}.`;
}

async function timeUpdates(server: PrimaryServer, count: number, faults: string[]) {
  await using updater = await openUpdater(server);
  const ms: number[] = [];
  let invisible = 0;
  const before = server.cpu();
  for (let index = 0; index < count; index++) {
    const name = `update-${index >> 1}`;
    const kind = index % 2 === 0 ? "add" : "delete";
    const sinceMs = performance.now();
    await updater.send(kind, name, "10.98.0.1");
    ms.push(performance.now() - sinceMs);
    if ((await updater.look(name)) !== (kind === "add" ? 1 : 0)) invisible += 1;
  }
  const after = server.cpu();
  if (invisible > 0) faults.push(`update: ${server.name} answered ${invisible} updates that could not be seen yet`);
  return { ms, cpuMs: after.userMs + after.systemMs - before.userMs - before.systemMs };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
