/**
 * Client affinity without a memory: every value draws a number from the client's network, the value and the time, and the
 * highest is answered. All threads and nodes draw the same, and where a value goes only its own clients move (rendezvous
 * hashing: Thaler, Ravishankar 1998; with weights: Schindelhauer, Schomaker 2005).
 */
import { affinityIn, methodColumnIn, mixHash } from "../image/layout.ts";
import { type Chosen, chooseOnly } from "./chosen.ts";

/** The network that counts as one client: /24 of IPv4, /56 of IPv6, which is what one site has. */
export const AFFINITY_PREFIX = { V4: 24, V6: 56 } as const;

/** A hash of the network of the address in bytes[at, at + length), length 4 or 16. */
export function networkHash(bytes: Uint8Array, at: number, length: number): number {
  const low = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length === 4) return mixHash(low, 4);
  return mixHash(
    (bytes[at + 3]! << 24) | (bytes[at + 4]! << 16) | (bytes[at + 5]! << 8) | bytes[at + 6]!,
    mixHash(low, 6),
  );
}

/** How far into the period that began at second 0 a client's own periods begin: not all clients move in one moment. */
function shiftOf(client: number, periodSeconds: number): number {
  // The upper part of a product instead of a remainder, which takes a processor several times as long.
  return Math.floor(((mixHash(client, periodSeconds) >>> 0) * periodSeconds) / 2 ** 32);
}

/** Number of the client's period at a time in seconds since 1970. */
export function periodOf(client: number, periodSeconds: number, nowSeconds: number): number {
  return Math.floor((nowSeconds + shiftOf(client, periodSeconds)) / periodSeconds);
}

/** The second since 1970 at which a period of the client ends. */
export function periodEnd(client: number, periodSeconds: number, period: number): number {
  return (period + 1) * periodSeconds - shiftOf(client, periodSeconds);
}

/** Leaves the one candidate that is the client's own in this period. `byWeight`: in proportion to the weights, unless all are 0. */
export function chooseByClient(
  words: Int32Array,
  chosen: Chosen,
  client: number,
  period: number,
  byWeight: boolean,
): void {
  const draw = mixHash(client, period | 0);
  chooseOnly(chosen, byWeight ? drawByWeight(words, chosen, draw) : drawEvenly(words, chosen, draw));
}

/** The position of the candidate that draws the highest number, the first of several. */
function drawEvenly(words: Int32Array, { indexes, count, table, meta, total }: Chosen, draw: number): number {
  const hashes = table + affinityIn(meta, total) + 1;
  let best = 0;
  let highest = -1;
  for (let position = 0; position < count; position++) {
    const number = mixHash(words[hashes + indexes[position]!]!, draw) >>> 2;
    // All ones where it is higher: which of them is, no processor can guess.
    const isHigher = (highest - number) >> 31;
    highest += (number - highest) & isHigher;
    best += (position - best) & isHigher;
  }
  return best;
}

/** As drawEvenly, in proportion to the weights: what draws the shortest time is first (an exponential of that rate). */
function drawByWeight(words: Int32Array, { indexes, count, table, meta, total }: Chosen, draw: number): number {
  const hashes = table + affinityIn(meta, total) + 1;
  const weights = table + methodColumnIn(meta, total);
  let best = 0;
  let lowest = Number.POSITIVE_INFINITY;
  for (let position = 0; position < count; position++) {
    const index = indexes[position]!;
    // Never 0, of which there is no logarithm; the same on every machine, since V8 brings its own.
    const number = ((mixHash(words[hashes + index]!, draw) >>> 0) + 1) / (2 ** 32 + 1);
    // Of weight 0: infinite, and so never lower.
    const score = -Math.log(number) / words[weights + index]!;
    if (score < lowest) {
      lowest = score;
      best = position;
    }
  }
  return best;
}
