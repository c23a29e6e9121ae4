/**
 * A hash of names that is the same on every node, in every version and process: lists that are kept in parts by it stay
 * apart in the same way everywhere. It runs from the root leftwards, so that one pass gives the hash of each suffix.
 */

/** The hash of the root, on its way: `addLabel` goes on with it, `nameHash` ends it. */
export const ROOT_HASH = 0x811c9dc5 | 0;
const MULTIPLIER = 0x01000193;

/** Goes on over the label in front of a suffix: bytes[from, to) with its length octet, in lower case. */
export function addLabel(hash: number, bytes: Uint8Array, from: number, to: number): number {
  let joined = hash;
  for (let index = to - 1; index >= from; index--) joined = Math.imul(joined ^ bytes[index]!, MULTIPLIER);
  return joined;
}

/** The hash, 32 bits unsigned; all of its bits depend on all of the name. */
export function finishHash(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** The hash of the name bytes[from, to): lower-case wire form without the root's zero byte. */
export function nameHash(bytes: Uint8Array, from: number, to: number): number {
  return finishHash(addLabel(ROOT_HASH, bytes, from, to));
}
