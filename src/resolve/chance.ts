/** Chance that nobody outside can foresee, drawn in batches: one call into the cryptographic source serves many queries. */
import { randomFillSync } from "node:crypto";

export type Chance = {
  readonly uint16: () => number;
  readonly uint32: () => number;
  /** A port between PORT_MIN and 65535. */
  readonly port: () => number;
};

/** Fills an array with random bytes. */
export type FillRandom = (words: Uint32Array<ArrayBuffer>) => void;

/** Below it are the ports of services (RFC 6335 section 6). */
export const PORT_MIN = 1024;
const PORTS = 65_536 - PORT_MIN;
const BATCH_WORDS = 1024;

export function createChance(fill: FillRandom = (words) => void randomFillSync(words)): Chance {
  const words = new Uint32Array(BATCH_WORDS);
  let at = BATCH_WORDS;
  const uint32 = (): number => {
    if (at === BATCH_WORDS) {
      fill(words);
      at = 0;
    }
    const word = words[at]!;
    // What was used cannot be read again.
    words[at] = 0;
    at++;
    return word;
  };
  return {
    uint32,
    uint16: () => uint32() >>> 16,
    // The remainder of 2^32 by the number of ports favours some by one in 65,000: nothing that helps to guess.
    port: () => PORT_MIN + (uint32() % PORTS),
  };
}
