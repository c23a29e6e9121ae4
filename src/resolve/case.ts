/** Letters of a name in random case, as one more secret that an answer must repeat (draft-vixie-dnsext-dns0x20). */
import { LOWER } from "../dns/name.ts";
import type { Chance } from "./chance.ts";

/** A copy of a wire name whose letters have each the case that a random bit says. */
export function randomizeCase(name: Uint8Array, chance: Chance): Uint8Array {
  const cased = new Uint8Array(name.length);
  let bits = 0;
  let left = 0;
  for (let at = 0; at < name.length; at++) {
    const lower = LOWER[name[at]!]!;
    // Length octets are below the letters, so that a wire name can be walked byte by byte.
    if (lower < 0x61 || lower > 0x7a) {
      cased[at] = lower;
      continue;
    }
    if (left === 0) {
      bits = chance.uint32();
      left = 32;
    }
    cased[at] = lower ^ ((bits & 1) << 5);
    bits >>>= 1;
    left--;
  }
  return cased;
}
