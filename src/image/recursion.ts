/** The networks whose clients may have names resolved that are not ours: a table of their own, by the longest prefix. */
import type { Cidr } from "../base/ip.ts";
import { type PrefixMemory, putPrefixes, recallValue } from "./prefix-table.ts";
import { CONTROL } from "./shared.ts";
import type { ImageView } from "./view.ts";
import type { ImageWriter } from "./writer-state.ts";

const OFFERED = 1;

/** Offers recursion to these networks, host bits 0, and to nobody else. */
export function offerRecursion(writer: ImageWriter, networks: readonly Cidr[]): void {
  const prefixes = networks.map(({ address, prefixBits }) => ({ address, prefixLength: prefixBits, value: OFFERED }));
  putPrefixes(writer, CONTROL.RECURSION, prefixes);
}

/** Whether it is offered to the address in bytes[at, at + length), length 4 or 16. */
export function isOfferedTo(
  memory: PrefixMemory,
  view: ImageView,
  bytes: Uint8Array,
  at: number,
  length: number,
): boolean {
  return recallValue(memory, view, CONTROL.RECURSION, bytes, at, length) === OFFERED;
}
