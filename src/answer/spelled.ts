/**
 * A name of the answer and where the message spells it, so that later records can point there (RFC 1035 section 4.1.4).
 * Offsets count from the message's start.
 */
import { createNameKey, type NameKey, readTargetKey } from "../image/name-key.ts";

/** Pointers have 14 bits. */
export const POINTER_MAX = 0x3fff;

export type Spelled = {
  readonly key: NameKey;
  /** Where the leftmost label stands; -1 where nobody may point to the name. */
  at: number;
  /** Labels spelled there; then follows the root, or a pointer to the rest. */
  literal: number;
  /** Where the rest is spelled. */
  restAt: number;
  /** Suffixes up to the one at this label can be pointed to. */
  reach: number;
};

export function createSpelled(): Spelled {
  return { key: createNameKey(), at: 0, literal: 0, restAt: 0, reach: 0 };
}

/** The key was filled from bytes that spell all of it at `at`. */
export function spelledAt(name: Spelled, at: number): void {
  name.at = at;
  name.literal = name.key.labels;
  name.restAt = 0;
  name.reach = name.key.labels;
}

/** Where a message spells the suffix that starts at `label`; -1 where it cannot be pointed to. */
export function offsetOf(name: Spelled, label: number): number {
  if (name.at < 0 || label > name.reach) return -1;
  const { offsets } = name.key;
  const offset =
    label < name.literal || name.literal === name.key.labels
      ? name.at + offsets[label]!
      : name.restAt + offsets[label]! - offsets[name.literal]!;
  return offset > POINTER_MAX ? -1 : offset;
}

/**
 * Fills `name` from a name in published rdata at bytes[from], where a pointer means the suffix of `base` at `suffixLabel`;
 * `at` is where the message has that name, -1 where it was written in another form.
 */
export function spellTarget(
  name: Spelled,
  bytes: Uint8Array,
  from: number,
  base: Spelled,
  suffixLabel: number,
  at: number,
  seed: number,
): void {
  const literal = readTargetKey(name.key, bytes, from, base.key, suffixLabel, seed);
  if (literal === name.key.labels) {
    spelledAt(name, at);
    return;
  }
  name.at = at;
  name.literal = literal;
  name.restAt = offsetOf(base, suffixLabel);
  // Behind the labels that `base` spells itself stands a pointer: suffixes beyond it lie elsewhere.
  const baseReach = suffixLabel < base.literal ? base.literal : base.reach;
  name.reach = literal + baseReach - suffixLabel;
  if (name.restAt < 0) name.at = -1;
}
