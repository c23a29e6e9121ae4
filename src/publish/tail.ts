/**
 * Puts RRsets into a zone and keeps their tails true. The tail of an MX, SRV or NS RRset is the additional section of its
 * answer: the addresses, in the same zone, of the names that it points to. It depends on nothing but the A and AAAA RRsets
 * of those names, because one of them that has none, or one that is selected, leaves the RRset without a tail: what is
 * answered then is looked up. A selected RRset has none itself: its answers differ.
 */
import { RRTYPE } from "../dns/codes.ts";
import { mixHash, NODE, POINTER, RRSET, SELECTED_FLAG, UNIT_BYTES, UNIT_WORDS, ZONE } from "../image/layout.ts";
import { type NameKey, readNameKey, readTargetKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import {
  beginChange,
  endChange,
  nodeOf,
  type Pointing,
  putRRset,
  removeRRset,
  rrsetOf,
  type ZoneHandle,
} from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { loadRRset, type RRsetBuffer, TAIL_BYTES_MAX } from "./rrset-wire.ts";

/** The most RRs of an RRset with a tail. */
const TAIL_TARGETS_MAX = 16;
/** How many RRsets are written again at most because one of another name changed. */
export const POINTING_TO_ONE_MAX = 256;
/** RRsets of one zone that may have a tail: the control thread keeps some hundred bytes for each. */
const POINTING_MAX = 65_536;

const HEADER_BYTES = 12;
const QUESTION_BYTES = 4;
const OWNER_TO_RDATA = 12;

/** The zone in whose incarnation something changes. */
export type ZoneInHand = {
  readonly writer: ImageWriter;
  readonly zone: ZoneHandle;
  readonly incarnation: number;
  readonly apex: NameKey;
  readonly buffer: RRsetBuffer;
};

/** Puts the RRset in the buffer, which is used up by that, at the node of `owner`. `cut` is as `putRRset` has it. */
export function placeRRset(hand: ZoneInHand, owner: NameKey, node: number, cut: boolean): void {
  const { writer, zone, buffer } = hand;
  const { type } = buffer;
  if (isPointing(type)) {
    forget(zone.pointing, pointingKey(node, type));
    const hasTail =
      buffer.selection === undefined && note(hand, owner, pointingKey(node, type)) && makeTail(hand, owner);
    if (!hasTail) buffer.tail.length = -1;
  }
  changeWithTails(hand, owner, type, () => putRRset(writer, zone, node, buffer, cut));
}

/** Takes an RRset away. `cut` is as `removeRRset` has it. */
export function takeRRset(hand: ZoneInHand, owner: NameKey, type: number, cut: boolean): void {
  const { writer, zone } = hand;
  const node = nodeOf(writer, zone, owner);
  if (node !== 0 && isPointing(type)) forget(zone.pointing, pointingKey(node, type));
  changeWithTails(hand, owner, type, () => removeRRset(writer, zone, owner, type, cut));
}

/** Makes a change and, with it, the tails that hold what has changed; no answer sees the one without the other. */
function changeWithTails(hand: ZoneInHand, owner: NameKey, type: number, change: () => void): void {
  const { writer, zone } = hand;
  const isAddress = type === RRTYPE.A || type === RRTYPE.AAAA;
  const pointing = isAddress ? zone.pointing.rrsets.get(mixHash(owner.hashes[0]!, hand.incarnation)) : undefined;
  if (pointing === undefined) {
    change();
    return;
  }
  const isBracketed = (writer.view.words[zone.body * UNIT_WORDS + ZONE.SEQUENCE]! & 1) !== 0;
  const brackets = zone.active && !isBracketed;
  if (brackets) beginChange(writer, zone);
  try {
    change();
    for (const key of pointing) renewTail(hand, key);
  } finally {
    if (brackets) endChange(writer, zone);
  }
}

function isPointing(type: number): boolean {
  return type === RRTYPE.MX || type === RRTYPE.SRV || type === RRTYPE.NS;
}

/** One number for the RRset of a type at a node: references have fewer than 30 bits, types 16. */
function pointingKey(node: number, type: number): number {
  return node * 65_536 + type;
}

/** Notes which names the RRset in the buffer points to. Returns false where it is to have no tail. */
function note(hand: ZoneInHand, owner: NameKey, key: number): boolean {
  const { buffer, zone } = hand;
  const { names, rrsets } = zone.pointing;
  if (buffer.count > TAIL_TARGETS_MAX || names.size >= POINTING_MAX) return false;
  const hashes = new Set<number>();
  for (let at = 0; at < buffer.length; at = nextRecord(buffer, at)) {
    if (readsInZone(hand, owner, at)) hashes.add(mixHash(buffer.target.hashes[0]!, hand.incarnation));
  }
  for (const hash of hashes) {
    if ((rrsets.get(hash)?.length ?? 0) >= POINTING_TO_ONE_MAX) return false;
  }
  if (hashes.size > 0) names.set(key, [...hashes]);
  for (const hash of hashes) {
    const pointing = rrsets.get(hash);
    if (pointing === undefined) rrsets.set(hash, [key]);
    else pointing.push(key);
  }
  return true;
}

function forget({ names, rrsets }: Pointing, key: number): void {
  for (const hash of names.get(key) ?? []) {
    const pointing = rrsets.get(hash) ?? [];
    pointing.splice(pointing.indexOf(key), 1);
    if (pointing.length === 0) rrsets.delete(hash);
  }
  names.delete(key);
}

/** Writes an RRset again, with the tail that it has now. */
function renewTail(hand: ZoneInHand, key: number): void {
  const { writer, zone, apex, buffer } = hand;
  const { view } = writer;
  const node = Math.floor(key / 65_536);
  const rrset = rrsetOf(writer, node, key % 65_536);
  const had = view.words[rrset * UNIT_WORDS + RRSET.TYPE]! < 0;
  loadRRset(buffer, view, rrset);
  const length = view.words[node * UNIT_WORDS + NODE.META]! & 0xff;
  const name = node * UNIT_BYTES + NODE.NAME_BYTE;
  const wire = Uint8Array.of(...view.bytes.subarray(name, name + length), ...apex.lower.subarray(0, apex.length), 0);
  readNameKey(buffer.owner, wire, 0, wire.length, view.control[CONTROL.HASH_SEED]!);
  const has = makeTail(hand, buffer.owner);
  if (!has) buffer.tail.length = -1;
  if (had || has) putRRset(writer, zone, node, buffer, false);
}

/**
 * Makes the tail of the RRset in the buffer: what `putAdditionals` of the answers comes to for a question that is `owner`.
 * Returns false where a name in the zone has no address, or where it becomes too long.
 */
function makeTail(hand: ZoneInHand, owner: NameKey): boolean {
  const { writer, zone, buffer } = hand;
  const { tail } = buffer;
  const answerAt = HEADER_BYTES + owner.length + 1 + QUESTION_BYTES;
  const nodes: number[] = [];
  tail.length = 0;
  tail.count = 0;
  if (answerAt + buffer.length > TAIL_BYTES_MAX * 2) return false;
  for (let at = 0; at < buffer.length; at = nextRecord(buffer, at)) {
    if (!readsInZone(hand, owner, at)) continue;
    const node = nodeOf(writer, zone, buffer.target);
    if (node === 0) return false;
    if (nodes.includes(node)) continue;
    nodes.push(node);
    const a = rrsetOf(writer, node, RRTYPE.A);
    const aaaa = rrsetOf(writer, node, RRTYPE.AAAA);
    if (a === 0 && aaaa === 0) return false;
    const ownerAt = answerAt + at + targetOffset(buffer.type);
    if (!addAddresses(writer, buffer, a, ownerAt) || !addAddresses(writer, buffer, aaaa, ownerAt)) return false;
  }
  return true;
}

/**
 * Appends an RRset of addresses to the tail, owned by the name that the message has at `ownerAt`. False where it is not the
 * same in every answer, or where the tail becomes too long.
 */
function addAddresses({ view }: ImageWriter, { tail }: RRsetBuffer, rrset: number, ownerAt: number): boolean {
  if (rrset === 0) return true;
  if ((view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & SELECTED_FLAG) !== 0) return false;
  const size = view.words[rrset * UNIT_WORDS + RRSET.SIZE]!;
  const end = tail.length + (size >>> 16);
  if (end > TAIL_BYTES_MAX) return false;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  tail.bytes.set(view.bytes.subarray(from, from + (size >>> 16)), tail.length);
  while (tail.length < end) {
    const at = tail.length;
    tail.bytes[at] = 0xc0 | (ownerAt >>> 8);
    tail.bytes[at + 1] = ownerAt & 0xff;
    tail.length = at + OWNER_TO_RDATA + ((tail.bytes[at + 10]! << 8) | tail.bytes[at + 11]!);
  }
  tail.count += size & 0xffff;
  return true;
}

/** Reads the name that the RR at `at` points to into buffer.target. Returns whether it lies in the zone. */
function readsInZone({ writer, apex, buffer }: ZoneInHand, owner: NameKey, at: number): boolean {
  const { wire, target, pointers, type } = buffer;
  const end = nextRecord(buffer, at);
  let suffix = owner.labels - apex.labels;
  for (let entry = 0; entry < buffer.pointerCount * POINTER.BYTES; entry += POINTER.BYTES) {
    const offset = (pointers[entry + POINTER.OFFSET]! << 8) | pointers[entry + POINTER.OFFSET + 1]!;
    if (offset > at && offset < end) suffix -= pointers[entry + POINTER.DEPTH]!;
  }
  readTargetKey(target, wire, at + targetOffset(type), owner, suffix, writer.view.control[CONTROL.HASH_SEED]!);
  return target.labels > 0 && isBelow(target, apex);
}

function isBelow(name: NameKey, apex: NameKey): boolean {
  const label = name.labels - apex.labels;
  if (label < 0 || name.hashes[label] !== apex.hashes[0]) return false;
  const from = name.offsets[label]!;
  const suffix = name.lower.subarray(from, name.length);
  return suffix.length === apex.length && suffix.every((byte, index) => byte === apex.lower[index]);
}

/** Offset of the target's name in an RR. */
function targetOffset(type: number): number {
  return OWNER_TO_RDATA + (type === RRTYPE.MX ? 2 : type === RRTYPE.SRV ? 6 : 0);
}

function nextRecord({ wire }: RRsetBuffer, at: number): number {
  return at + OWNER_TO_RDATA + ((wire[at + 10]! << 8) | wire[at + 11]!);
}
