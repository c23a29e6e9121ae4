/**
 * Tables of networks: for an address, the value of the longest prefix that covers it. Prefixes nest or are apart, so they
 * flatten into intervals that a binary search finds. A table is one block that never changes, named by a word of `control`; a new
 * one replaces it.
 */
import { allocate } from "./arena.ts";
import { UNIT_BYTES, UNIT_WORDS } from "./layout.ts";
import { retire } from "./reclaim.ts";
import { CONTROL } from "./shared.ts";
import { type ImageView, refreshView } from "./view.ts";
import type { ImageWriter } from "./writer-state.ts";

/** The address bytes of a network (4 or 16, host bits 0), its prefix length, and what is said of it: at least 1. */
export type Prefix = { readonly address: Uint8Array; readonly prefixLength: number; readonly value: number };

/** The words of `control` that name a table. */
export const PREFIX_TABLES = [CONTROL.REGIONS, CONTROL.RECURSION] as const;
export type PrefixTable = (typeof PREFIX_TABLES)[number];

/**
 * Block: number of IPv4 intervals, number of IPv6 intervals, the epoch at which it was written, which no other table in the
 * same place has, then (start, value) with 1 and with 4 words of start.
 */
const EPOCH_AT = 2;
const V4_AT = 3;
const V4_WORDS = 2;
const V6_WORDS = 5;

const NO_ADDRESS = new Uint8Array(4);

type Interval = { readonly start: bigint; readonly value: number };

/** Replaces a table. An empty list removes it. */
export function putPrefixes(writer: ImageWriter, table: PrefixTable, prefixes: readonly Prefix[]): void {
  const v4 = flatten(prefixes.filter(({ address }) => address.length === 4));
  const v6 = flatten(prefixes.filter(({ address }) => address.length === 16));
  const { control } = writer.view;
  const former = control[table]!;
  Atomics.store(control, table, prefixes.length === 0 ? 0 : writeTable(writer, v4, v6));
  if (former !== 0) retire(writer.retired, control, former, prefixTableUnits(writer.view, former));
}

function writeTable(writer: ImageWriter, v4: readonly Interval[], v6: readonly Interval[]): number {
  const block = allocate(writer.arena, unitsFor(v4.length, v6.length));
  const { words } = writer.view;
  let at = block * UNIT_WORDS;
  words[at++] = v4.length;
  words[at++] = v6.length;
  words[at++] = Atomics.load(writer.view.control, CONTROL.EPOCH);
  for (const { start, value } of v4) {
    words[at++] = Number(BigInt.asIntN(32, start));
    words[at++] = value;
  }
  for (const { start, value } of v6) {
    for (let shift = 96n; shift >= 0n; shift -= 32n) words[at++] = Number(BigInt.asIntN(32, start >> shift));
    words[at++] = value;
  }
  return block;
}

function unitsFor(v4: number, v6: number): number {
  return Math.ceil(((V4_AT + v4 * V4_WORDS + v6 * V6_WORDS) * 4) / UNIT_BYTES);
}

/** Units of a table's block. */
export function prefixTableUnits(view: ImageView, block: number): number {
  return unitsFor(view.words[block * UNIT_WORDS]!, view.words[block * UNIT_WORDS + 1]!);
}

/** Turns nested prefixes into intervals: from each start on, up to the next, the value is the innermost prefix's. */
function flatten(prefixes: readonly Prefix[]): Interval[] {
  const sorted = prefixes.map(({ address, prefixLength, value }) => {
    const start = address.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
    return { start, end: start + (1n << BigInt(address.length * 8 - prefixLength)), value };
  });
  sorted.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : b.end > a.end ? 1 : b.end < a.end ? -1 : 0));
  const intervals: Interval[] = [];
  const space = 1n << BigInt((prefixes[0]?.address.length ?? 0) * 8);
  const open: { end: bigint; value: number }[] = [];
  const emit = (start: bigint, value: number): void => {
    // Behind the last address there is nothing, and its number does not fit into a start.
    if (start === space) return;
    if (intervals.at(-1)?.start === start) intervals.pop();
    if ((intervals.at(-1)?.value ?? 0) !== value) intervals.push({ start, value });
  };
  const closeUpTo = (start: bigint): void => {
    while (open.length > 0 && open.at(-1)!.end <= start) {
      const { end } = open.pop()!;
      emit(end, open.at(-1)?.value ?? 0);
    }
  };
  for (const { start, end, value } of sorted) {
    closeUpTo(start);
    emit(start, value);
    open.push({ end, value });
  }
  closeUpTo(1n << 128n);
  return intervals;
}

/**
 * What a thread remembers of one table: values of IPv4 addresses. The same resolvers ask again and again. An
 * address has one place, that of its hash.
 */
export type PrefixMemory = {
  /** The table that they were found in, and its epoch; 0 for none. */
  block: number;
  epoch: number;
  /** Pairs: address, value. */
  readonly pairs: Int32Array;
};

/** Pairs: all of them take a small part of a processor's first cache. */
const REMEMBERED_BITS = 9;

export function createPrefixMemory(): PrefixMemory {
  return { block: 0, epoch: 0, pairs: new Int32Array(2 << REMEMBERED_BITS) };
}

/** As `prefixValue`, from memory where the address is there. */
export function recallValue(
  memory: PrefixMemory,
  view: ImageView,
  table: PrefixTable,
  bytes: Uint8Array,
  at: number,
  length: number,
): number {
  const base = tableAt(view, table);
  if (base === 0) return 0;
  if (length !== 4) return prefixValue(view, table, bytes, at, length);
  const epoch = view.words[base + EPOCH_AT]!;
  if (memory.block !== base || memory.epoch !== epoch) forget(memory, view, table, base, epoch);
  const address = addressWord(bytes, at);
  const pair = (Math.imul(address, 0x9e3779b1) >>> (32 - REMEMBERED_BITS)) * 2;
  const { pairs } = memory;
  if (pairs[pair] === address) return pairs[pair + 1]!;
  const value = prefixValue(view, table, bytes, at, length);
  pairs[pair] = address;
  pairs[pair + 1] = value;
  return value;
}

/** Address 0 is what stands in an empty place: its value has to be right. */
function forget(memory: PrefixMemory, view: ImageView, table: PrefixTable, base: number, epoch: number): void {
  memory.block = base;
  memory.epoch = epoch;
  const { pairs } = memory;
  const value = prefixValue(view, table, NO_ADDRESS, 0, 4);
  for (let index = 0; index < pairs.length; index += 2) {
    pairs[index] = 0;
    pairs[index + 1] = value;
  }
}

/** What is said of the address in bytes[at, at + length), length 4 or 16; 0 where no prefix covers it. */
export function prefixValue(
  view: ImageView,
  table: PrefixTable,
  bytes: Uint8Array,
  at: number,
  length: number,
): number {
  const base = tableAt(view, table);
  if (base === 0) return 0;
  const { words } = view;
  const v4 = words[base]!;
  return length === 4
    ? search(words, base + V4_AT, v4, 1, bytes, at)
    : search(words, base + V4_AT + v4 * V4_WORDS, words[base + 1]!, 4, bytes, at);
}

/**
 * The first word of a table, 0 where there is none. All of it lies inside the view then, as no block lies across an
 * end that the arena once had; and what is read of it depends on the word that is read here.
 */
function tableAt(view: ImageView, table: PrefixTable): number {
  const block = view.control[table]!;
  if (block >= view.limit) refreshView(view);
  return block * UNIT_WORDS;
}

/** Finds the last of `count` sorted intervals whose start, of `width` words, is at most the address. */
function search(words: Int32Array, first: number, count: number, width: number, bytes: Uint8Array, at: number): number {
  const below = countUpTo(words, first, count, width, bytes, at);
  return below === 0 ? 0 : words[first + (below - 1) * (width + 1) + width]!;
}

/** How many of the sorted intervals start at the address or ahead of it. */
function countUpTo(
  words: Int32Array,
  first: number,
  count: number,
  width: number,
  bytes: Uint8Array,
  at: number,
): number {
  const stride = width + 1;
  const address = addressWord(bytes, at) >>> 0;
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const start = first + middle * stride;
    const word = words[start]! >>> 0;
    if (word > address || (word === address && width > 1 && restIsAbove(words, start, bytes, at))) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Of an IPv6 start whose first word is the address's. */
function restIsAbove(words: Int32Array, start: number, bytes: Uint8Array, at: number): boolean {
  for (let index = 1; index < 4; index++) {
    const address = addressWord(bytes, at + index * 4) >>> 0;
    const word = words[start + index]! >>> 0;
    if (word !== address) return word > address;
  }
  return false;
}

function addressWord(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/**
 * The shortest prefix, in bits, such that every address with the same prefix as the one in bytes[at, at + length) has the
 * same value as it; for answers that others may keep (RFC 7871 section 7.2.1).
 */
export function prefixScope(
  view: ImageView,
  table: PrefixTable,
  bytes: Uint8Array,
  at: number,
  length: number,
): number {
  const base = tableAt(view, table);
  if (base === 0) return 0;
  const { words } = view;
  const v4 = words[base]!;
  const width = length === 4 ? 1 : 4;
  const first = length === 4 ? base + V4_AT : base + V4_AT + v4 * V4_WORDS;
  const count = length === 4 ? v4 : words[base + 1]!;
  const below = countUpTo(words, first, count, width, bytes, at);
  // The interval ends ahead of the next one's start, and begins behind the address ahead of its own.
  const after = below === count ? 0 : commonBits(words, first + below * (width + 1), width, 0, bytes, at) + 1;
  const start = first + (below - 1) * (width + 1);
  const before = below === 0 || isZero(words, start, width) ? 0 : commonBits(words, start, width, 1, bytes, at) + 1;
  return Math.max(before, after);
}

function isZero(words: Int32Array, start: number, width: number): boolean {
  for (let index = 0; index < width; index++) if (words[start + index] !== 0) return false;
  return true;
}

/** How many leading bits the address has in common with the start of an interval less `minus`, 0 or 1. */
function commonBits(
  words: Int32Array,
  start: number,
  width: number,
  minus: number,
  bytes: Uint8Array,
  at: number,
): number {
  for (let index = 0; index < width; index++) {
    const borrows = minus === 1 && isZero(words, start + index + 1, width - index - 1);
    const difference = (words[start + index]! - (borrows ? 1 : 0)) ^ addressWord(bytes, at + index * 4);
    if (difference !== 0) return index * 32 + Math.clz32(difference);
  }
  return width * 32;
}
