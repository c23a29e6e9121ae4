/** Puts RRsets of the image into the answer. */
import { RRTYPE } from "../dns/codes.ts";
import { RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { type ImageView, refreshView } from "../image/view.ts";
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
  const at = rrset * UNIT_WORDS;
  const length = view.words[at + RRSET.SIZE]! >>> 16;
  const pointers = view.words[at + RRSET.TYPE]! >>> 16;
  const owner = exact ? QUESTION_NAME_AT : offsetOf(name, ownerLabel);
  const apex = pointers === 0 ? 0 : offsetOf(name, apexLabel);
  if (owner < 0 || apex < 0) return putExpanded(view, query, rrset, name.key, ownerLabel, apexLabel);
  const to = query.at;
  if (to + length > query.limit) return PUT.NO_ROOM;
  const { bytes } = query;
  const source = view.bytes;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  for (let index = 0; index < length; index++) bytes[to + index] = source[from + index]!;
  query.at = to + length;
  if (exact) return PUT.AS_IS;
  if (owner !== QUESTION_NAME_AT) pointOwners(bytes, to, query.at, owner);
  for (let index = 0; index < pointers; index++) {
    const pointer = from + length + index * 2;
    const place = to + ((source[pointer]! << 8) | source[pointer + 1]!);
    bytes[place] = 0xc0 | (apex >>> 8);
    bytes[place + 1] = apex & 0xff;
  }
  return PUT.AS_IS;
}

function pointOwners(bytes: Uint8Array, from: number, end: number, owner: number): void {
  for (let at = from; at < end; at += 12 + ((bytes[at + 10]! << 8) | bytes[at + 11]!)) {
    bytes[at] = 0xc0 | (owner >>> 8);
    bytes[at + 1] = owner & 0xff;
  }
}

/** Appends the RRset with every name written out. */
function putExpanded(
  view: ImageView,
  query: Query,
  rrset: number,
  key: NameKey,
  ownerLabel: number,
  apexLabel: number,
): Put {
  const { bytes } = view;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  const pointers = view.words[rrset * UNIT_WORDS + RRSET.TYPE]! >>> 16;
  const ownerLength = key.length - key.offsets[ownerLabel]! + 1;
  const apexLength = key.length - key.offsets[apexLabel]! + 1;
  const growth = recordCount(view, rrset) * (ownerLength - 2) + pointers * (apexLength - 2);
  if (query.at + length + growth > query.limit) return PUT.NO_ROOM;
  let pointer = 0;
  let at = 0;
  while (at < length) {
    const size = (bytes[from + at + 10]! << 8) | bytes[from + at + 11]!;
    const end = at + 12 + size;
    putSuffix(query, key, ownerLabel);
    for (at += 2; at < end - size; at++) query.bytes[query.at++] = bytes[from + at]!;
    const rdataAt = query.at;
    while (at < end) {
      const place = pointer < pointers ? u16(bytes, from + length + pointer * 2) : -1;
      if (at === place) {
        putSuffix(query, key, apexLabel);
        pointer++;
        at += 2;
      } else query.bytes[query.at++] = bytes[from + at++]!;
    }
    query.bytes[rdataAt - 2] = (query.at - rdataAt) >>> 8;
    query.bytes[rdataAt - 1] = (query.at - rdataAt) & 0xff;
  }
  return PUT.EXPANDED;
}

function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function putSuffix(query: Query, key: NameKey, label: number): void {
  for (let index = key.offsets[label]!; index < key.length; index++) query.bytes[query.at++] = key.lower[index]!;
  query.bytes[query.at++] = 0;
}

/**
 * Appends the addresses of an A or AAAA RRset under another owner, the whole of `name`, and with at most the TTL `ttl`.
 */
export function putAddresses(view: ImageView, query: Query, rrset: number, name: Spelled, ttl: number): boolean {
  const at = rrset * UNIT_WORDS;
  const start = query.at;
  const put = putRRset(view, query, rrset, name, 0, 0, false);
  if (put === PUT.NO_ROOM) return false;
  const ownTtl = view.words[at + RRSET.TTL]!;
  if (ownTtl <= ttl) return true;
  const size = (query.at - start) / recordCount(view, rrset);
  const rdata = (view.words[at + RRSET.TYPE]! & 0xffff) === RRTYPE.A ? 4 : 16;
  for (let end = start + size; end <= query.at; end += size) {
    const place = end - rdata - 6;
    query.bytes[place] = ttl >>> 24;
    query.bytes[place + 1] = (ttl >>> 16) & 0xff;
    query.bytes[place + 2] = (ttl >>> 8) & 0xff;
    query.bytes[place + 3] = ttl & 0xff;
  }
  return true;
}
