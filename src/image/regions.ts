/** The region table: which region a client's address belongs to, by the longest prefix that covers it. */
import { createHash } from "node:crypto";
import { type PrefixMemory, prefixScope, prefixValue, putPrefixes, recallValue } from "./prefix-table.ts";
import { CONTROL } from "./shared.ts";
import type { ImageView } from "./view.ts";
import type { ImageWriter } from "./writer-state.ts";

/** A mapping: the address bytes of a network (4 or 16, host bits 0), its prefix length, and a region number from 1 on. */
export type RegionPrefix = { readonly address: Uint8Array; readonly prefixLength: number; readonly region: number };

/** The number of a region: 31 bits of a hash of its name, never 0, so that every thread and every start has the same. */
export function regionNumber(name: string): number {
  return createHash("sha256").update(name).digest().readInt32BE() >>> 1 || 1;
}

/** Says in which region this node is: that of clients that no prefix covers. 0: in none. */
export function setOwnRegion({ view }: ImageWriter, region: number): void {
  Atomics.store(view.control, CONTROL.OWN_REGION, region);
}

/** Replaces the region table. An empty list removes it. */
export function putRegions(writer: ImageWriter, prefixes: readonly RegionPrefix[]): void {
  const table = prefixes.map(({ address, prefixLength, region }) => ({ address, prefixLength, value: region }));
  putPrefixes(writer, CONTROL.REGIONS, table);
}

/** The region of the address in bytes[at, at + length), length 4 or 16; 0 where no prefix covers it. */
export function regionOf(view: ImageView, bytes: Uint8Array, at: number, length: number): number {
  return prefixValue(view, CONTROL.REGIONS, bytes, at, length);
}

/** As `regionOf`, from memory where the address is there. */
export function recallRegion(
  memory: PrefixMemory,
  view: ImageView,
  bytes: Uint8Array,
  at: number,
  length: number,
): number {
  return recallValue(memory, view, CONTROL.REGIONS, bytes, at, length);
}

/**
 * The shortest prefix, in bits, such that every address with the same prefix as the one in bytes[at, at + length) is in the
 * same region as it; for answers that others may keep (RFC 7871 section 7.2.1).
 */
export function regionScope(view: ImageView, bytes: Uint8Array, at: number, length: number): number {
  return prefixScope(view, CONTROL.REGIONS, bytes, at, length);
}
