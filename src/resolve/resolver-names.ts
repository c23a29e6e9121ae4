/** Names as the resolver compares and keeps them: wire form, uncompressed, with the root's zero byte. */
import { LOWER, NAME_BYTES_MAX } from "../dns/name.ts";

const scratch = Buffer.alloc(NAME_BYTES_MAX);

/** A copy in lower case. */
export function foldName(name: Uint8Array): Uint8Array {
  const folded = new Uint8Array(name.length);
  for (let at = 0; at < name.length; at++) folded[at] = LOWER[name[at]!]!;
  return folded;
}

/** One text for all spellings of a name from `from` on, to be a key of a map. */
export function nameText(name: Uint8Array, from = 0): string {
  const length = name.length - from;
  for (let at = 0; at < length; at++) scratch[at] = LOWER[name[from + at]!]!;
  return scratch.toString("latin1", 0, length);
}
