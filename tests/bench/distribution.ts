import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { encodeQuery } from "../support/dns-message.ts";
import { DOWN, hostName, NAMES, placeOf, type SelectedZone, WEIGHTS, zoneName } from "./selected-zones.ts";

const ANSWERS = 1_000_000;
const SECONDS_MAX = 20;
/** Fewer than these would scatter by more than a fifth of the tolerance. */
const ANSWERS_MIN = 200_000;
const TOLERANCE = 0.005;
const SOCKETS = 8;
const OUTSTANDING_EACH = 64;
/** After so long without any answer what was sent is lost, and as many are sent again. */
const STALLED_MS = 100;

export type Distribution = { readonly line: string; readonly isKept: boolean };

type Tally = { readonly counts: Float64Array; answers: number; lastAt: number };

/** Sends the next query for each answer that comes, until nobody counts any more. */
async function openAsker(port: number, queries: readonly Uint8Array[], first: number, tally: Tally): Promise<Socket> {
  const socket = createSocket("udp4");
  let next = first;
  const send = () => {
    const query = queries[next % queries.length];
    next += SOCKETS;
    if (query !== undefined) socket.send(query, () => {});
  };
  socket.on("message", (response) => {
    // The one RR is the last of the message, and its rdata the last of it.
    const place = placeOf(response[response.length - 1] ?? 0);
    tally.counts[place] = (tally.counts[place] ?? 0) + 1;
    tally.answers += 1;
    tally.lastAt = performance.now();
    send();
  });
  socket.on("error", () => {});
  socket.connect(port, "127.0.0.1");
  await once(socket, "connect");
  for (let sent = 0; sent < OUTSTANDING_EACH; sent++) send();
  return socket;
}

async function count(port: number, queries: readonly Uint8Array[]): Promise<Tally> {
  const tally: Tally = { counts: new Float64Array(WEIGHTS.length), answers: 0, lastAt: performance.now() };
  const endAt = performance.now() + SECONDS_MAX * 1_000;
  const open = (first: number) => openAsker(port, queries, first, tally);
  let sockets: Socket[] = [];
  const closeAll = () => {
    for (const socket of sockets) socket.close();
  };
  while (tally.answers < ANSWERS && performance.now() < endAt) {
    if (sockets.length === 0 || performance.now() - tally.lastAt > STALLED_MS) {
      closeAll();
      sockets = await Promise.all(Array.from({ length: SOCKETS }, (_, index) => open(index)));
      tally.lastAt = performance.now();
    }
    await new Promise((resolve) => setTimeout(resolve, STALLED_MS / 10));
  }
  closeAll();
  return tally;
}

/** A million answers over sockets, or as many as come within 20 seconds: whether each value has its share of them. */
export async function measureDistribution(port: number, zone: SelectedZone): Promise<Distribution> {
  const queries = Array.from({ length: NAMES }, (_, index) =>
    encodeQuery({ name: `${hostName(index)}.${zoneName(zone)}`, type: 1 }),
  );
  const { counts, answers } = await count(port, queries);
  const weights: number[] = WEIGHTS.map((weight, place) => (zone.hasDown && place === DOWN ? 0 : weight));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const deviations = weights.map((weight, place) => Math.abs((counts[place] ?? 0) / answers - weight / sum));
  const most = Math.max(...deviations);
  const isDownSilent = !zone.hasDown || counts[DOWN] === 0;
  const isKept = answers >= ANSWERS_MIN && most < TOLERANCE && isDownSilent;
  const shares = weights.map((weight, place) => {
    const percent = (share: number) => (share * 100).toFixed(2);
    return `${percent((counts[place] ?? 0) / answers)} % of ${percent(weight / sum)} %`;
  });
  const what = `${zone.name}: ${answers.toLocaleString("en")} answers over sockets, shares ${shares.join(", ")}`;
  const promise = `promised within ${TOLERANCE * 100} percentage points, at most ${(most * 100).toFixed(3)} off`;
  return { line: `- ${what}; ${promise}: ${isKept ? "holds" : "MISSED"}`, isKept };
}
