/**
 * A client in a process of its own, which prints what it saw as one line of JSON. `flood PORT COUNT SECONDS` asks as many
 * distinct names within that time and waits for their answers; `steady PORT SECONDS` asks one name of ours at an even rate.
 */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { setPriority } from "node:os";
import { setTimeout } from "node:timers/promises";
import { encodeQuery } from "../support/dns-message.ts";

export type FloodSeen = {
  readonly sentMs: number;
  /** Answers by response code. */
  readonly rcodes: Readonly<Record<string, number>>;
  /** Milliseconds until half of the answers had come, 99 in 100, all of them. */
  readonly waitedMs: readonly [number, number, number];
};

export type SteadySeen = {
  readonly asked: number;
  readonly lost: number;
  /** Milliseconds: half of the answers took no longer, 99 in 100, all of them. */
  readonly latencyMs: readonly [number, number, number];
  /** The 99th percentile of the worst second. */
  readonly worstMs: number;
};

const SOCKETS = 16;
const STEP_MS = 2;
/** Clients give up after five seconds; the node does after eight. */
const PATIENCE_MS = 10_000;
const STEADY_RATE = 1_000;
const RECURSION_DESIRED = 0x100;
const TYPE_A = 1;
/**
 * Who measures goes ahead of everything else where that is allowed, and who floods stands back: a client is on another machine,
 * and what either of them waits for is none of the node's delay.
 */
const URGENT = -15;
const PATIENT = 10;

async function openSockets(port: number, count: number, onAnswer: (socket: number, response: Buffer) => void) {
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = createSocket({ type: "udp4", recvBufferSize: 2 ** 22 });
    socket.on("message", (response) => onAnswer(index, response));
    socket.on("error", () => {});
    socket.connect(port, "127.0.0.1");
    await once(socket, "connect");
    sockets.push(socket);
  }
  return sockets;
}

function quantiles(values: readonly number[]): [number, number, number] {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return [at(0.5), at(0.99), at(1)];
}

async function flood(port: number, count: number, seconds: number): Promise<FloodSeen> {
  setPriority(PATIENT);
  const rcodes: Record<string, number> = {};
  const sentAt = new Float64Array(count).fill(-1);
  const waited: number[] = [];
  const sockets = await openSockets(port, SOCKETS, (socket, response) => {
    // Ids count within a socket, which has every SOCKETS-th question.
    const index = response.readUInt16BE(0) * SOCKETS + socket;
    const since = sentAt[index] ?? -1;
    if (since < 0) return;
    sentAt[index] = -1;
    const rcode = String(response.readUInt16BE(2) & 0xf);
    rcodes[rcode] = (rcodes[rcode] ?? 0) + 1;
    waited.push(performance.now() - since);
  });
  const queries = Array.from({ length: count }, (_, index) => {
    const query = encodeQuery({ name: `n${index}.dead.example`, type: TYPE_A, flags: RECURSION_DESIRED });
    query.writeUInt16BE(Math.floor(index / SOCKETS), 0);
    return query;
  });
  const startMs = performance.now();
  for (let sent = 0; sent < count; ) {
    const due = Math.min(count, Math.ceil(((performance.now() - startMs) / (seconds * 1_000)) * count));
    for (; sent < due; sent++) {
      sentAt[sent] = performance.now();
      sockets[sent % SOCKETS]?.send(queries[sent] ?? "", () => {});
    }
    await setTimeout(STEP_MS);
  }
  const sentMs = performance.now() - startMs;
  const endMs = performance.now() + PATIENCE_MS;
  while (waited.length < count && performance.now() < endMs) await setTimeout(STEP_MS);
  for (const socket of sockets) socket.close();
  return { sentMs, rcodes, waitedMs: quantiles(waited) };
}

async function steady(port: number, seconds: number): Promise<SteadySeen> {
  try {
    setPriority(URGENT);
  } catch {
    // It is measured with what else the machine does.
  }
  const count = seconds * STEADY_RATE;
  const sentAt = new Float64Array(count).fill(-1);
  const latency = new Float64Array(count).fill(Number.NaN);
  const sockets = await openSockets(port, 1, (_, response) => {
    const index = response.readUInt16BE(0);
    const since = sentAt[index] ?? -1;
    if (since >= 0) latency[index] = performance.now() - since;
  });
  const query = encodeQuery({ name: "www.example.test", type: TYPE_A });
  const startMs = performance.now();
  for (let sent = 0; sent < count; ) {
    const due = Math.min(count, Math.ceil(((performance.now() - startMs) / 1_000) * STEADY_RATE));
    for (; sent < due; sent++) {
      const bytes = Buffer.from(query);
      bytes.writeUInt16BE(sent, 0);
      sentAt[sent] = performance.now();
      sockets[0]?.send(bytes, () => {});
    }
    await setTimeout(1);
  }
  await setTimeout(1_000);
  for (const socket of sockets) socket.close();
  const answered = [...latency].filter((ms) => !Number.isNaN(ms));
  const bySecond = Array.from({ length: seconds }, (_, second) =>
    [...latency.subarray(second * STEADY_RATE, (second + 1) * STEADY_RATE)].filter((ms) => !Number.isNaN(ms)),
  );
  const worstMs = Math.max(...bySecond.map((values) => quantiles(values)[1]));
  return { asked: count, lost: count - answered.length, latencyMs: quantiles(answered), worstMs };
}

const [mode, ...numbers] = process.argv.slice(2);
const [port = 0, first = 0, second = 0] = numbers.map(Number);
console.info(JSON.stringify(mode === "flood" ? await flood(port, first, second) : await steady(port, first)));
