/** The hashes of TSIG (RFC 8945 section 6): their names on the wire, and the MAC itself (RFC 2104). */
import { createHmac, timingSafeEqual } from "node:crypto";
import { nameFromText, namesEqual } from "./name.ts";

export type TsigAlgorithm = "hmac-sha256" | "hmac-sha384" | "hmac-sha512" | "hmac-sha224" | "hmac-sha1" | "hmac-md5";

type TsigHash = {
  readonly algorithm: TsigAlgorithm;
  /** As node:crypto calls it. */
  readonly hash: string;
  /** Of the whole MAC. */
  readonly macBytes: number;
  /** Lower-case wire name. */
  readonly name: Uint8Array;
};

const HASHES: Readonly<Record<TsigAlgorithm, TsigHash>> = {
  "hmac-sha256": row("hmac-sha256", "sha256", 32),
  "hmac-sha384": row("hmac-sha384", "sha384", 48),
  "hmac-sha512": row("hmac-sha512", "sha512", 64),
  "hmac-sha224": row("hmac-sha224", "sha224", 28),
  "hmac-sha1": row("hmac-sha1", "sha1", 20),
  // It alone is not named as it is called (RFC 8945 section 6, table 3).
  "hmac-md5": row("hmac-md5", "md5", 16, "hmac-md5.sig-alg.reg.int."),
};
const ALL: readonly TsigHash[] = Object.values(HASHES);

function row(algorithm: TsigAlgorithm, hash: string, macBytes: number, text = `${algorithm}.`): TsigHash {
  const outcome = nameFromText(text);
  if (outcome.kind === "error") throw new Error(`${text}: ${outcome.reason}`);
  return { algorithm, hash, macBytes, name: outcome.name };
}

/** The algorithm that a wire name in any case stands for; undefined: none that is known here. */
export function tsigAlgorithmOf(name: Uint8Array): TsigAlgorithm | undefined {
  return ALL.find((hash) => namesEqual(hash.name, name))?.algorithm;
}

/** The algorithm's lower-case wire name. */
export function tsigAlgorithmName(algorithm: TsigAlgorithm): Uint8Array {
  return HASHES[algorithm].name;
}

/** Bytes of the whole MAC. */
export function tsigMacBytes(algorithm: TsigAlgorithm): number {
  return HASHES[algorithm].macBytes;
}

/** The MAC of the parts, one behind the other. */
export function tsigMac(algorithm: TsigAlgorithm, secret: Uint8Array, parts: readonly Uint8Array[]): Uint8Array {
  const hmac = createHmac(HASHES[algorithm].hash, secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

/** Whether `given` is how `whole` begins, in a time that does not depend on where they differ. */
export function macMatches(whole: Uint8Array, given: Uint8Array): boolean {
  return given.length <= whole.length && timingSafeEqual(whole.subarray(0, given.length), given);
}
