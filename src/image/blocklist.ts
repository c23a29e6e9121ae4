/**
 * The blocklist: names that are answered with NXDOMAIN, with all that lies below them.
 *
 * CONTROL.BLOCKLIST names its root, which names 256 shards. Which shard a name is in depends on the name alone
 * (`blocklistShard`), as it does in the store, so that a change of one shard there is a change of one block here. Root and
 * shards never change; a new root takes the place of the one before with one store. Only the thread that holds the image
 * writer writes.
 */
import { addLabel, finishHash, nameHash, ROOT_HASH } from "../dns/name-hash.ts";
import { allocate, release } from "./arena.ts";
import { mixHash, UNIT_BYTES, UNIT_WORDS } from "./layout.ts";
import { createNameKey, type NameKey, readNameKey } from "./name-key.ts";
import { retire } from "./reclaim.ts";
import { CONTROL } from "./shared.ts";
import { type ImageView, refreshView, sameBytes } from "./view.ts";
import type { ImageWriter } from "./writer-state.ts";

export const BLOCKLIST_SHARDS = 256;

/** Words of the root. */
const ROOT = {
  /** Bit n set: a listed name has n labels (bit 31: 31 or more). */
  DEPTHS: 0,
  COUNT: 1,
  /** For each shard a SHARD_ENTRY. */
  SHARDS_AT: 4,
} as const;

/** Words of a shard in the root: its block, 0 where it has no names, and the fingerprint of its content. */
const SHARD_ENTRY = { REFERENCE: 0, FINGERPRINT: 1, WORDS: 3 } as const;

const ROOT_UNITS = Math.ceil((ROOT.SHARDS_AT + BLOCKLIST_SHARDS * SHARD_ENTRY.WORDS) / UNIT_WORDS);

/**
 * Words of a shard: then its slots, then its names in lower-case wire form with the root's zero byte. A slot is 0, or has the
 * place of a name in bytes from the block's start (bits 0 to 23) and bits of its hash (24 to 31).
 */
const SHARD = { MASK: 0, COUNT: 1, DEPTHS: 2, UNITS: 3, SLOTS_AT: 4 } as const;

const PLACE_BITS = 24;
const PLACE_MASK = 2 ** PLACE_BITS - 1;

/** A name is compared over its whole length, also with what lies behind the last listed name. */
const PADDING_BYTES = 256;
/** Blocks have few different sizes, so that a shard fits into the place of an earlier one. */
const SHARD_UNITS_STEP = 64;

/** The most bytes of names in one shard, so that their places fit into slots. */
export const BLOCKLIST_SHARD_BYTES_MAX = 2 ** 22;

/** The shard of the name bytes[from, to): lower-case wire form without the root's zero byte. */
export function blocklistShard(bytes: Uint8Array, from: number, to: number): number {
  return nameHash(bytes, from, to) >>> 24;
}

/**
 * The label at which the shortest listed name begins that `key` is at or below; -1 where there is none. To be called between
 * `enterImage` and `leaveImage`. Never wrong: names are compared.
 */
export function findBlocked(view: ImageView, key: NameKey): number {
  const root = view.control[CONTROL.BLOCKLIST]!;
  if (root === 0) return -1;
  if (root >= view.limit) refreshView(view);
  const rootAt = root * UNIT_WORDS;
  const depths = view.words[rootAt + ROOT.DEPTHS]!;
  let hash = ROOT_HASH;
  for (let label = key.labels - 1; label >= 0; label--) {
    const depth = Math.min(key.labels - label, 31);
    if (depths >>> depth === 0) return -1;
    hash = addLabel(hash, key.lower, key.offsets[label]!, key.offsets[label + 1]!);
    if (((depths >>> depth) & 1) !== 0 && isListed(view, rootAt, finishHash(hash) >>> 24, key, label)) return label;
  }
  return -1;
}

function isListed(view: ImageView, rootAt: number, shard: number, key: NameKey, label: number): boolean {
  const block = view.words[rootAt + ROOT.SHARDS_AT + shard * SHARD_ENTRY.WORDS + SHARD_ENTRY.REFERENCE]!;
  if (block === 0) return false;
  if (block >= view.limit) refreshView(view);
  const { words, bytes, data } = view;
  const at = block * UNIT_WORDS;
  const mask = words[at + SHARD.MASK]!;
  const mixed = mixHash(key.hashes[label]!, 0);
  const from = key.offsets[label]!;
  const length = key.length - from;
  for (let slot = mixed & mask; ; slot = (slot + 1) & mask) {
    const word = words[at + SHARD.SLOTS_AT + slot]!;
    if (word === 0) return false;
    if (word >>> PLACE_BITS !== mixed >>> PLACE_BITS) continue;
    const name = block * UNIT_BYTES + (word & PLACE_MASK);
    // The names' labels are as long as each other, so the longer of two has a length where the shorter has its zero byte.
    if (bytes[name + length] === 0 && sameBytes(data, name, key.data, from, length)) return true;
  }
}

/** Number of listed names. */
export function blocklistCount(view: ImageView): number {
  const root = view.control[CONTROL.BLOCKLIST]!;
  if (root >= view.limit) refreshView(view);
  return root === 0 ? 0 : view.words[root * UNIT_WORDS + ROOT.COUNT]!;
}

/** Calls `visit` with every block that a root keeps, the root's own among them. */
export function forEachBlocklistBlock(view: ImageView, visit: (reference: number, units: number) => void): void {
  const root = view.control[CONTROL.BLOCKLIST]!;
  if (root === 0) return;
  visit(root, ROOT_UNITS);
  for (let shard = 0; shard < BLOCKLIST_SHARDS; shard++) {
    const block = view.words[entryAt(root, shard) + SHARD_ENTRY.REFERENCE]!;
    if (block !== 0) visit(block, view.words[block * UNIT_WORDS + SHARD.UNITS]!);
  }
}

function entryAt(root: number, shard: number): number {
  return root * UNIT_WORDS + ROOT.SHARDS_AT + shard * SHARD_ENTRY.WORDS;
}

/** What tells the content of a shard from any other: 64 bits of a hash of it. Zeros: the shard is empty. */
export type ShardFingerprint = readonly [number, number];

/** A list in the making. What it does not replace is taken over from the list in force. */
export type BlocklistDraft = {
  readonly references: Int32Array;
  /** Two words for each shard. */
  readonly fingerprints: Int32Array;
  /** Blocks that no reader has seen. */
  readonly made: Set<number>;
};

/** Begins a new list. Until it is shown or discarded no other may be begun. */
export function beginBlocklist({ view }: ImageWriter): BlocklistDraft {
  const references = new Int32Array(BLOCKLIST_SHARDS);
  const fingerprints = new Int32Array(BLOCKLIST_SHARDS * 2);
  const root = view.control[CONTROL.BLOCKLIST]!;
  for (let shard = 0; root !== 0 && shard < BLOCKLIST_SHARDS; shard++) {
    const at = entryAt(root, shard);
    references[shard] = view.words[at + SHARD_ENTRY.REFERENCE]!;
    fingerprints[shard * 2] = view.words[at + SHARD_ENTRY.FINGERPRINT]!;
    fingerprints[shard * 2 + 1] = view.words[at + SHARD_ENTRY.FINGERPRINT + 1]!;
  }
  return { references, fingerprints, made: new Set() };
}

/** Whether the draft has this content in a shard already. */
export function hasShard(draft: BlocklistDraft, shard: number, fingerprint: ShardFingerprint): boolean {
  const { fingerprints } = draft;
  return fingerprints[shard * 2] === fingerprint[0] && fingerprints[shard * 2 + 1] === fingerprint[1];
}

const scratch = createNameKey();

/**
 * Gives a shard its content: names one behind the other in lower-case wire form, each with the root's zero byte, none twice,
 * all of them of this shard. Throws a RangeError where they are more than BLOCKLIST_SHARD_BYTES_MAX, are no such names, or
 * the image is full.
 */
export function putShard(
  writer: ImageWriter,
  draft: BlocklistDraft,
  shard: number,
  fingerprint: ShardFingerprint,
  names: Uint8Array,
): void {
  const reference = names.length === 0 ? 0 : writeShard(writer, names);
  const former = draft.references[shard]!;
  if (draft.made.delete(former)) release(writer.arena, former, shardUnits(writer.view, former));
  if (reference !== 0) draft.made.add(reference);
  draft.references[shard] = reference;
  draft.fingerprints.set(fingerprint, shard * 2);
}

function shardUnits(view: ImageView, block: number): number {
  return view.words[block * UNIT_WORDS + SHARD.UNITS]!;
}

function writeShard(writer: ImageWriter, names: Uint8Array): number {
  if (names.length > BLOCKLIST_SHARD_BYTES_MAX) throw new RangeError("a shard of the blocklist is too large");
  const { view } = writer;
  const count = countNames(names);
  // At most three slots in four are taken: the search for a name that is not listed ends after a few.
  const slots = 2 ** Math.ceil(Math.log2((count * 4) / 3 + 1));
  const namesAt = (SHARD.SLOTS_AT + slots) * 4;
  const needed = (namesAt + names.length + PADDING_BYTES) / UNIT_BYTES;
  const units = Math.ceil(needed / SHARD_UNITS_STEP) * SHARD_UNITS_STEP;
  const block = allocate(writer.arena, units);
  const at = block * UNIT_WORDS;
  const slotsAt = at + SHARD.SLOTS_AT;
  view.words.fill(0, slotsAt, slotsAt + slots);
  view.bytes.set(names, block * UNIT_BYTES + namesAt);
  const seed = view.control[CONTROL.HASH_SEED]!;
  let depths = 0;
  for (let from = 0; from < names.length; ) {
    const next = readNameKey(scratch, names, from, names.length, seed);
    const mixed = mixHash(scratch.hashes[0]!, 0);
    let slot = mixed & (slots - 1);
    while (view.words[slotsAt + slot] !== 0) slot = (slot + 1) & (slots - 1);
    view.words[slotsAt + slot] = (mixed & ~PLACE_MASK) | (namesAt + from);
    depths |= 1 << Math.min(scratch.labels, 31);
    from = next;
  }
  view.words[at + SHARD.MASK] = slots - 1;
  view.words[at + SHARD.COUNT] = count;
  view.words[at + SHARD.DEPTHS] = depths;
  view.words[at + SHARD.UNITS] = units;
  return block;
}

function countNames(names: Uint8Array): number {
  let count = 0;
  for (let from = 0; from < names.length; count++) {
    const next = readNameKey(scratch, names, from, names.length, 0);
    if (next < 0 || scratch.labels === 0) throw new RangeError(`no listed name at ${from} of a blocklist's shard`);
    from = next;
  }
  return count;
}

/**
 * Puts the draft in force: one store. Names may be routed elsewhere from then on, which the caller tells. A list without
 * names is none.
 */
export function showBlocklist(writer: ImageWriter, draft: BlocklistDraft): void {
  const { view, retired } = writer;
  const kept = new Set(draft.references);
  const gone: [reference: number, units: number][] = [];
  forEachBlocklistBlock(view, (reference, units) => {
    if (!kept.has(reference)) gone.push([reference, units]);
  });
  Atomics.store(
    view.control,
    CONTROL.BLOCKLIST,
    draft.references.some((block) => block !== 0) ? writeRoot(writer, draft) : 0,
  );
  for (const [reference, units] of gone) retire(retired, view.control, reference, units);
  draft.made.clear();
}

function writeRoot(writer: ImageWriter, draft: BlocklistDraft): number {
  const root = allocate(writer.arena, ROOT_UNITS);
  const { words } = writer.view;
  let depths = 0;
  let count = 0;
  for (let shard = 0; shard < BLOCKLIST_SHARDS; shard++) {
    const block = draft.references[shard]!;
    const at = entryAt(root, shard);
    words[at + SHARD_ENTRY.REFERENCE] = block;
    words[at + SHARD_ENTRY.FINGERPRINT] = draft.fingerprints[shard * 2]!;
    words[at + SHARD_ENTRY.FINGERPRINT + 1] = draft.fingerprints[shard * 2 + 1]!;
    if (block === 0) continue;
    depths |= words[block * UNIT_WORDS + SHARD.DEPTHS]!;
    count += words[block * UNIT_WORDS + SHARD.COUNT]!;
  }
  words[root * UNIT_WORDS + ROOT.DEPTHS] = depths;
  words[root * UNIT_WORDS + ROOT.COUNT] = count;
  return root;
}

/** Gives up a draft: its blocks are free at once, as no reader has seen them. */
export function discardBlocklist(writer: ImageWriter, draft: BlocklistDraft): void {
  for (const block of draft.made) release(writer.arena, block, shardUnits(writer.view, block));
  draft.made.clear();
}
