/**
 * A domain name made ready for look-ups: lower-case wire form, where its labels start, and the hash of every suffix.
 *
 * The hash runs from the root leftwards, so that one pass gives the hash of the name and of each of its ancestors. A key
 * is a scratch object that a thread makes once and fills again for every name: filling allocates nothing.
 */
import { LOWER, NAME_BYTES_MAX } from "../dns/name.ts";

/** The most labels that a name can have, the root excluded. */
export const MAX_LABELS = 127;

export type NameKey = {
  /** Lower-case wire form without the root's zero byte: bytes [0, length). */
  readonly lower: Uint8Array;
  /** Over the bytes of `lower`, to compare several at once. */
  readonly data: DataView;
  /** offsets[i] is where label i starts (its length byte), label 0 leftmost; offsets[labels] is `length`. */
  readonly offsets: Uint8Array;
  /** hashes[i] is the hash of the suffix that starts at label i; hashes[labels] is the root's. */
  readonly hashes: Int32Array;
  labels: number;
  length: number;
};

export function createNameKey(): NameKey {
  const lower = new Uint8Array(NAME_BYTES_MAX + 1);
  return {
    lower,
    data: new DataView(lower.buffer),
    offsets: new Uint8Array(MAX_LABELS + 1),
    hashes: new Int32Array(MAX_LABELS + 1),
    labels: 0,
    length: 0,
  };
}

const BYTE_MULTIPLIER = 0x01000193;
const LABEL_MULTIPLIER = 0x9e3779b1;

/** The hash of a suffix from the hash of its first label (FNV-1a over its wire form) and that of the suffix below it. */
function joinHash(label: number, parent: number): number {
  const joined = Math.imul(parent ^ label, LABEL_MULTIPLIER);
  return joined ^ (joined >>> 15);
}

/** The hash of the label `*` below the suffix whose hash is `parent`. */
export function hashAsterisk(parent: number, seed: number): number {
  return joinHash(Math.imul(Math.imul(seed ^ 1, BYTE_MULTIPLIER) ^ 42, BYTE_MULTIPLIER), parent);
}

/**
 * Fills `key` from an uncompressed name in wire form at bytes[at], which must end before `end`.
 * Returns the offset behind the name, or -1 where it is no such name: cut off, over 255 bytes, a compression pointer or a
 * reserved label type.
 */
export function readNameKey(key: NameKey, bytes: Uint8Array, at: number, end: number, seed: number): number {
  const { lower, offsets, hashes } = key;
  let from = at;
  let length = 0;
  let labels = 0;
  for (;;) {
    if (from >= end) return -1;
    const size = bytes[from]!;
    if (size === 0) break;
    const stop = from + size + 1;
    if (size > 63 || stop >= end || length + size + 2 > NAME_BYTES_MAX) return -1;
    offsets[labels] = length;
    lower[length++] = size;
    let hash = Math.imul(seed ^ size, BYTE_MULTIPLIER);
    for (from++; from < stop; from++) {
      const byte = LOWER[bytes[from]!]!;
      lower[length++] = byte;
      hash = Math.imul(hash ^ byte, BYTE_MULTIPLIER);
    }
    hashes[labels++] = hash;
  }
  offsets[labels] = length;
  key.labels = labels;
  key.length = length;
  hashes[labels] = seed;
  joinHashes(hashes, labels);
  return from + 1;
}

/** Turns the hashes of the labels left of `known` into those of the suffixes that begin there; known's own is one already. */
function joinHashes(hashes: Int32Array, known: number): void {
  let hash = hashes[known]!;
  for (let label = known - 1; label >= 0; label--) {
    hash = joinHash(hashes[label]!, hash);
    hashes[label] = hash;
  }
}

/**
 * Fills `key` from a name inside published rdata: labels that end with the root, or with a compression pointer, which
 * means the suffix of `base` that starts at `suffixLabel`.
 * Returns how many labels are spelled out at `at`; -1 where the pointer would make the name too long (a published name
 * never is).
 */
export function readTargetKey(
  key: NameKey,
  bytes: Uint8Array,
  at: number,
  base: NameKey,
  suffixLabel: number,
  seed: number,
): number {
  const { lower, offsets, hashes } = key;
  let from = at;
  let length = 0;
  let labels = 0;
  let size = bytes[from]!;
  while (size !== 0 && size < 64) {
    if (length + size + 2 > NAME_BYTES_MAX) return -1;
    offsets[labels] = length;
    const stop = from + size + 1;
    lower[length++] = size;
    let hash = Math.imul(seed ^ size, BYTE_MULTIPLIER);
    for (from++; from < stop; from++) {
      const byte = LOWER[bytes[from]!]!;
      lower[length++] = byte;
      hash = Math.imul(hash ^ byte, BYTE_MULTIPLIER);
    }
    hashes[labels++] = hash;
    size = bytes[from]!;
  }
  const spelled = labels;
  if (size === 0) {
    hashes[labels] = seed;
  } else {
    const shift = length - base.offsets[suffixLabel]!;
    if (base.length + shift + 1 > NAME_BYTES_MAX) return -1;
    for (let source = base.offsets[suffixLabel]!; source < base.length; source++) lower[length++] = base.lower[source]!;
    for (let label = suffixLabel; label <= base.labels; label++) {
      hashes[labels] = base.hashes[label]!;
      offsets[labels++] = base.offsets[label]! + shift;
    }
    labels--;
  }
  offsets[labels] = length;
  key.labels = labels;
  key.length = length;
  joinHashes(hashes, spelled);
  return spelled;
}

/** True where the label is `*`. */
export function isAsterisk(key: NameKey, label: number): boolean {
  const at = key.offsets[label]!;
  return key.lower[at] === 1 && key.lower[at + 1] === 42;
}
