/**
 * The hash of the digest: two lanes of 32 bits over characters below 256 or bytes. It guards against accidents, not against
 * an attacker: who holds the cluster's key may write what he likes.
 */

/** The hash in the making; used again and again, for a million of them are made at once. */
export type Lanes = { high: number; low: number };

const HIGH_FACTOR = 0x9e3779b1;
const LOW_FACTOR = 0x85ebca77;

export function beginHash(lanes: Lanes): void {
  lanes.high = 0x243f6a88;
  lanes.low = 0x13198a2e;
}

export function absorbText(lanes: Lanes, text: string): void {
  let { high, low } = lanes;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, HIGH_FACTOR);
    high ^= high >>> 15;
    low = Math.imul(low ^ code, LOW_FACTOR);
    low ^= low >>> 13;
  }
  lanes.high = high;
  lanes.low = low;
}

/** 16 bits of what was absorbed; what is absorbed next goes on behind it. */
export function leafOf({ high, low }: Lanes): number {
  return mix(low ^ Math.imul(high, LOW_FACTOR)) & 0xffff;
}

/** The last step: 64 bits in which each depends on all that was absorbed. */
export function endHash(lanes: Lanes): void {
  const { high, low } = lanes;
  lanes.high = mix(high ^ Math.imul(low ^ (low >>> 16), LOW_FACTOR));
  lanes.low = mix(low ^ Math.imul(high ^ (high >>> 16), HIGH_FACTOR) ^ lanes.high);
}

/** The finalizer of MurmurHash3. */
function mix(half: number): number {
  let mixed = Math.imul(half ^ (half >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
