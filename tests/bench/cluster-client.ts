/**
 * A client in a process of its own, which asks each node at an even rate until SIGTERM, and prints what it saw as one line of
 * JSON, a `ClientSeen` a node in their order: `cluster-client.ts DNS_PORT,MANAGEMENT_URL,NAME ...`. NAME has an A record.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setPriority } from "node:os";
import { setTimeout } from "node:timers/promises";
import { Pool } from "undici";
import { openLibc } from "../../src/listen/linux/libc.ts";
import { askForSlices } from "../../src/listen/linux/scheduling.ts";
import { encodeQuery } from "../support/dns-message.ts";

/** Half took no longer, 99 in 100, all of them; milliseconds. */
export type Times = readonly [p50: number, p99: number, max: number];

export type ClientSeen = {
  readonly asked: number;
  readonly lost: number;
  /** Responses by response code. */
  readonly rcodes: Readonly<Record<string, number>>;
  readonly dnsMs: Times;
  /** Of `/healthz`, which the control thread answers. */
  readonly controlMs: Times;
};

const RATE = 1_000;
const IDS = 65_536;
const CONTROL_PAUSE_MS = 10;
const LATE_ANSWERS_MS = 1_000;
const TYPE_A = 1;
/** Who measures goes ahead of everything else where that is allowed: a client is on another machine. */
const URGENT = -15;
const SLICE_US = 100;

function quantiles(values: readonly number[]): Times {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return [at(0.5), at(0.99), at(1)];
}

async function watch(target: string, isOver: () => boolean): Promise<ClientSeen> {
  const [port = "", url = "", name = ""] = target.split(",");
  const [dns, controlMs] = await Promise.all([watchDns(Number(port), name, isOver), watchControl(url, isOver)]);
  return { ...dns, controlMs };
}

async function watchDns(port: number, name: string, isOver: () => boolean): Promise<Omit<ClientSeen, "controlMs">> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 2 ** 22 });
  const sentAt = new Float64Array(IDS).fill(-1);
  const rcodes: Record<string, number> = {};
  const took: number[] = [];
  socket.on("message", (response) => {
    const id = response.readUInt16BE(0);
    const since = sentAt[id] ?? -1;
    if (since < 0) return;
    sentAt[id] = -1;
    took.push(performance.now() - since);
    const rcode = String(response.readUInt16BE(2) & 0xf);
    rcodes[rcode] = (rcodes[rcode] ?? 0) + 1;
  });
  socket.on("error", () => {});
  socket.connect(port, "127.0.0.1");
  await once(socket, "connect");
  const query = encodeQuery({ name, type: TYPE_A });
  const startMs = performance.now();
  let asked = 0;
  while (!isOver()) {
    const due = Math.ceil(((performance.now() - startMs) / 1_000) * RATE);
    for (; asked < due; asked++) {
      const bytes = Buffer.from(query);
      bytes.writeUInt16BE(asked % IDS, 0);
      sentAt[asked % IDS] = performance.now();
      socket.send(bytes, () => {});
    }
    await setTimeout(1);
  }
  await setTimeout(LATE_ANSWERS_MS);
  socket.close();
  return { asked, lost: asked - took.length, rcodes, dnsMs: quantiles(took) };
}

async function watchControl(url: string, isOver: () => boolean): Promise<Times> {
  const pool = new Pool(url, { connections: 1 });
  const took: number[] = [];
  while (!isOver()) {
    const since = performance.now();
    await (await pool.request({ method: "GET", path: "/healthz" })).body.dump();
    took.push(performance.now() - since);
    await setTimeout(CONTROL_PAUSE_MS);
  }
  await pool.destroy();
  return quantiles(took);
}

try {
  setPriority(URGENT);
  const libc = openLibc();
  if (libc !== undefined) askForSlices(libc, SLICE_US);
} catch {
  // It is measured with what else the machine does.
}
let hasEnded = false;
process.once("SIGTERM", () => {
  hasEnded = true;
});
const watched = Promise.all(process.argv.slice(2).map((target) => watch(target, () => hasEnded)));
console.info("watching");
console.info(JSON.stringify(await watched));
