/** Puts RRsets of the image into the answer. */
import { RRTYPE } from "../dns/codes.ts";
import { POINTER, pointerCount, RRSET, TAIL, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { copyBytes, type ImageView, refreshView } from "../image/view.ts";
import type { Query } from "./query.ts";
import { offsetOf, type Spelled } from "./spelled.ts";

const QUESTION_NAME_AT = 12;

/** What putting an RRset came to. */
export const PUT = {
  /** It does not fit; nothing was written. */
  NO_ROOM: 0,
  /** As the image has it: a name in its rdata stands in the message where the block has it. */
  AS_IS: 1,
  /** With names written out, because the message could not be pointed into. */
  EXPANDED: 2,
} as const;
export type Put = (typeof PUT)[keyof typeof PUT];

/** Number of RRs in an RRset. */
export function recordCount(view: ImageView, rrset: number): number {
  return view.words[rrset * UNIT_WORDS + RRSET.SIZE]! & 0xffff;
}

/** The label of a name that the pointer in an RRset's first record means, with the zone's apex at `apexLabel`. */
export function firstSuffix(view: ImageView, rrset: number, apexLabel: number): number {
  const pointers = pointerCount(view.words[rrset * UNIT_WORDS + RRSET.TYPE]!);
  return pointers === 0 ? apexLabel : apexLabel - pointerDepth(view, rrset, 0);
}

/** Labels above the apex of the suffix that pointer number `index` of an RRset means. */
function pointerDepth(view: ImageView, rrset: number, index: number): number {
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  return view.bytes[rrset * UNIT_BYTES + RRSET.WIRE_BYTE + length + index * POINTER.BYTES + POINTER.DEPTH]!;
}

/**
 * Appends an RRset. Its owner is the suffix of `name` at `ownerLabel`, its zone's apex the suffix at `apexLabel`. `exact`
 * says that `name` is the question and the owner in the image too, which is what the block's pointers are made for.
 */
export function putRRset(
  view: ImageView,
  query: Query,
  rrset: number,
  name: Spelled,
  ownerLabel: number,
  apexLabel: number,
  exact: boolean,
): Put {
  if (rrset >= view.limit) refreshView(view);
  if (exact) return copyRRset(view, query, rrset) ? PUT.AS_IS : PUT.NO_ROOM;
  const to = query.at;
  const owner = offsetOf(name, ownerLabel);
  if (owner >= 0) {
    if (!copyRRset(view, query, rrset)) return PUT.NO_ROOM;
    if (owner !== QUESTION_NAME_AT) pointOwners(query.data, to, query.at, owner);
    if (pointNames(view, query, rrset, to, name, apexLabel)) return PUT.AS_IS;
    query.at = to;
  }
  return putExpanded(view, query, rrset, name.key, ownerLabel, apexLabel) ? PUT.EXPANDED : PUT.NO_ROOM;
}

/** Sets the pointers of the RRset copied to `to`. Returns false where one has nothing to point to. */
function pointNames(
  view: ImageView,
  query: Query,
  rrset: number,
  to: number,
  name: Spelled,
  apexLabel: number,
): boolean {
  const pointers = pointerCount(view.words[rrset * UNIT_WORDS + RRSET.TYPE]!);
  let entry = rrset * UNIT_BYTES + RRSET.WIRE_BYTE + query.at - to;
  for (let index = 0; index < pointers; index++, entry += POINTER.BYTES) {
    const suffix = offsetOf(name, apexLabel - view.bytes[entry + POINTER.DEPTH]!);
    if (suffix < 0) return false;
    query.data.setUint16(to + view.data.getUint16(entry + POINTER.OFFSET), 0xc000 | suffix);
  }
  return true;
}

/** Appends an RRset without names in its rdata, owned by the name that the message has at `owner`. */
export function putRRsetOf(view: ImageView, query: Query, rrset: number, owner: number): boolean {
  const to = query.at;
  if (!copyRRset(view, query, rrset)) return false;
  pointOwners(query.data, to, query.at, owner);
  return true;
}

function copyRRset(view: ImageView, query: Query, rrset: number): boolean {
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  const to = query.at;
  if (to + length > query.limit) return false;
  // An RRset without RRs has nothing to copy.
  if (length > 0) copyBytes(query.data, to, view.data, rrset * UNIT_BYTES + RRSET.WIRE_BYTE, length);
  query.at = to + length;
  return true;
}

/**
 * Appends an RRset with its tail, answers and additional section both, to the answer for its own name. Returns false where
 * it has no tail, or not all of it fits; nothing was written then.
 */
export function putWithTail(view: ImageView, query: Query, rrset: number): boolean {
  const { words, data } = view;
  const typeWord = words[rrset * UNIT_WORDS + RRSET.TYPE]!;
  if ((typeWord & TAIL.FLAG) === 0) return false;
  const size = words[rrset * UNIT_WORDS + RRSET.SIZE]!;
  const length = size >>> 16;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const tailAt = from + length + pointerCount(typeWord) * POINTER.BYTES;
  const tail = data.getInt32(tailAt);
  const to = query.at;
  const end = to + length + (tail >>> 16);
  if (end > query.limit) return false;
  copyBytes(query.data, to, data, from, length);
  if (tail !== 0) copyBytes(query.data, to + length, data, tailAt + TAIL.HEADER_BYTES, tail >>> 16);
  query.at = end;
  query.answers += size & 0xffff;
  query.additionals += tail & 0xffff;
  return true;
}

function pointOwners(data: DataView, from: number, end: number, owner: number): void {
  for (let at = from; at < end; at += 12 + data.getUint16(at + 10)) data.setUint16(at, 0xc000 | owner);
}

/** Appends the RRset with every name written out. */
function putExpanded(
  view: ImageView,
  query: Query,
  rrset: number,
  key: NameKey,
  ownerLabel: number,
  apexLabel: number,
): boolean {
  const { bytes } = view;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  const pointers = pointerCount(view.words[rrset * UNIT_WORDS + RRSET.TYPE]!);
  if (query.at + expandedLength(view, rrset, key, ownerLabel, apexLabel) > query.limit) return false;
  let pointer = 0;
  let at = 0;
  while (at < length) {
    const end = at + 12 + u16(bytes, from + at + 10);
    const rdata = at + 12;
    putSuffix(query, key, ownerLabel);
    for (at += 2; at < rdata; at++) query.bytes[query.at++] = bytes[from + at]!;
    const rdataAt = query.at;
    while (at < end) {
      if (pointer < pointers && at === u16(bytes, from + length + pointer * POINTER.BYTES + POINTER.OFFSET)) {
        putSuffix(query, key, apexLabel - pointerDepth(view, rrset, pointer));
        pointer++;
        at += 2;
      } else query.bytes[query.at++] = bytes[from + at++]!;
    }
    query.bytes[rdataAt - 2] = (query.at - rdataAt) >>> 8;
    query.bytes[rdataAt - 1] = (query.at - rdataAt) & 0xff;
  }
  return true;
}

/** Bytes of the RRset with every name written out. */
function expandedLength(view: ImageView, rrset: number, key: NameKey, ownerLabel: number, apexLabel: number): number {
  const pointers = pointerCount(view.words[rrset * UNIT_WORDS + RRSET.TYPE]!);
  let length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  length += recordCount(view, rrset) * (suffixLength(key, ownerLabel) - 2);
  for (let index = 0; index < pointers; index++) {
    length += suffixLength(key, apexLabel - pointerDepth(view, rrset, index)) - 2;
  }
  return length;
}

/** Bytes of the name's suffix at a label, written out. */
export function suffixLength(key: NameKey, label: number): number {
  return key.length - key.offsets[label]! + 1;
}

function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Writes the name's suffix at a label out. */
export function putSuffix(query: Query, key: NameKey, label: number): void {
  for (let index = key.offsets[label]!; index < key.length; index++) query.bytes[query.at++] = key.lower[index]!;
  query.bytes[query.at++] = 0;
}

/** Lowers the TTL of the `count` RRs of one A or AAAA RRset that end the answer, from `start` on, to at most `ttl`. */
export function limitTtl(
  view: ImageView,
  query: Query,
  rrset: number,
  start: number,
  count: number,
  ttl: number,
): void {
  const at = rrset * UNIT_WORDS;
  if (view.words[at + RRSET.TTL]! <= ttl) return;
  const size = (query.at - start) / count;
  const rdata = (view.words[at + RRSET.TYPE]! & 0xffff) === RRTYPE.A ? 4 : 16;
  for (let end = start + size; end <= query.at; end += size) {
    const place = end - rdata - 6;
    query.bytes[place] = ttl >>> 24;
    query.bytes[place + 1] = (ttl >>> 16) & 0xff;
    query.bytes[place + 2] = (ttl >>> 8) & 0xff;
    query.bytes[place + 3] = ttl & 0xff;
  }
}
