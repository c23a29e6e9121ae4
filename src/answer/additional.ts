/**
 * The additional section: addresses of the names that MX, SRV and NS records point to, as far as the same zone has them. Of
 * a name with an override they are the override's, and the rdata of an override gets no others.
 */
import { RRTYPE } from "../dns/codes.ts";
import { LOWER } from "../dns/name.ts";
import { NODE, POINTER, pointerCount, RRSET, SEGMENT_SLOTS, UNIT_BYTES, UNIT_WORDS, ZONE } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { findNode, type ImageView, sameBytes, segmentAt } from "../image/view.ts";
import { type Chosen, chosenPlace, isSelected, putChosen, putChosenOf } from "./chosen.ts";
import { FOUND, findOverride, lookUpName } from "./lookup.ts";
import { PUT, putRRset, putRRsetOf, recordCount } from "./records.ts";
import { select } from "./select.ts";
import { POINTER_MAX, type Spelled, spellTarget } from "./spelled.ts";
import { ADDITIONAL_MAX, type AnswerState, reach } from "./state.ts";
import { traceAdditional } from "./trace-names.ts";

/** Offset of the target's name in an RR of a static RRset: owner pointer, fixed fields, and what stands before the name. */
function targetOffset(type: number): number {
  return 12 + (type === RRTYPE.MX ? 2 : type === RRTYPE.SRV ? 6 : 0);
}

/**
 * Adds what is known of the targets of an RRset in the answer, as far as it fits. `name` says whose rdata it is, in the
 * zone of state.lookup; `at` is where the message has the RRset, -1 where names in it were written out.
 */
export function putAdditionals(state: AnswerState, rrset: number, name: Spelled, at: number): void {
  putTargets(state, rrset, name, at, -1, false);
}

/** As `putAdditionals`, of the chosen RRs of a selected RRset, in whose rdata names are written out. */
export function putChosenAdditionals(
  state: AnswerState,
  chosen: Chosen,
  rrset: number,
  name: Spelled,
  at: number,
): void {
  const { view, lookup } = state;
  const { zone, apexLabel } = lookup;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const into = targetOffset(view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff);
  let place = at;
  for (let position = 0; position < chosen.count; position++) {
    const rr = chosenPlace(view, chosen, position);
    const spelledAt = at < 0 || place + into > POINTER_MAX ? -1 : place + into;
    lookup.zone = zone;
    lookup.apexLabel = apexLabel;
    putSpelled(state, name, from + (rr & 0xffff) + into, -1, spelledAt, false);
    place += rr >>> 16;
  }
}

/**
 * Adds the addresses of a referral's name servers. Those at or below the cut are needed to follow it and come first:
 * returns false where one of them does not fit (RFC 9471 section 3.1).
 */
export function putGlue(state: AnswerState, rrset: number, name: Spelled, cutLabel: number, at: number): boolean {
  const complete = putTargets(state, rrset, name, at, cutLabel, true);
  putTargets(state, rrset, name, at, cutLabel, false);
  return complete;
}

/** Of a referral (`cutLabel` not -1), only the targets that are needed, or only the others. False where one did not fit. */
function putTargets(
  state: AnswerState,
  rrset: number,
  name: Spelled,
  at: number,
  cutLabel: number,
  needed: boolean,
): boolean {
  const { view, lookup } = state;
  const zone = lookup.zone;
  const apexLabel = lookup.apexLabel;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  const pointers = pointerCount(view.words[rrset * UNIT_WORDS + RRSET.TYPE]!);
  const into = targetOffset(view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff);
  let pointer = 0;
  let complete = true;
  for (let offset = 0; offset < length; ) {
    const next = offset + 12 + view.data.getUint16(from + offset + 10);
    const entry = from + length + pointer * POINTER.BYTES;
    const pointed = pointer < pointers && view.data.getUint16(entry + POINTER.OFFSET) < next;
    const spelledAt = at < 0 || at + offset + into > POINTER_MAX ? -1 : at + offset + into;
    lookup.zone = zone;
    lookup.apexLabel = apexLabel;
    // The NS RRset of a cut and a target below it have the cut's whole name in common.
    const suffix = pointed ? apexLabel - view.bytes[entry + POINTER.DEPTH]! : -1;
    if (cutLabel < 0 || (suffix >= 0 && suffix <= cutLabel) === needed) {
      const nameAt = from + offset + into;
      const fits =
        pointed && spelledAt >= 0 && state.overrides === 0
          ? putPointed(state, name, nameAt, entry, suffix, spelledAt, needed)
          : putSpelled(state, name, nameAt, suffix, spelledAt, needed);
      complete &&= fits;
    }
    if (pointed) pointer++;
    offset = next;
  }
  // The next pass over a referral begins from the zone's own place again.
  lookup.zone = zone;
  lookup.apexLabel = apexLabel;
  return complete;
}

/** The target whose name ends with a pointer, found by the hash that its entry has. */
function putPointed(
  state: AnswerState,
  name: Spelled,
  nameAt: number,
  entry: number,
  suffix: number,
  spelledAt: number,
  glue: boolean,
): boolean {
  const { view, lookup } = state;
  const node = findPointed(view, lookup.zone, name.key, lookup.apexLabel, suffix, nameAt, entry);
  if (node === 0) return glue || putSpelled(state, name, nameAt, suffix, spelledAt, glue);
  return putNode(state, node, 0, spelledAt, glue);
}

/** The node of the name that is spelled at `nameAt` up to its pointer, and goes on like `base` at `suffix`; 0 for none. */
function findPointed(
  view: ImageView,
  zone: number,
  base: NameKey,
  apexLabel: number,
  suffix: number,
  nameAt: number,
  entry: number,
): number {
  const { words } = view;
  const spelled = spelledLength(view.bytes, nameAt);
  const start = base.offsets[suffix]!;
  const length = spelled + base.offsets[apexLabel]! - start;
  const incarnation = words[zone * UNIT_WORDS + ZONE.INCARNATION]!;
  const hash = pointedHash(view.data, entry);
  const segment = segmentAt(view, hash);
  for (let slot = hash & (SEGMENT_SLOTS - 1); segment >= 0; slot = (slot + 1) & (SEGMENT_SLOTS - 1)) {
    const node = view.words[segment + slot * 2 + 1]!;
    if (node === 0) return 0;
    if (node < 0 || view.words[segment + slot * 2] !== hash) continue;
    reach(view, node);
    const at = node * UNIT_WORDS;
    if (view.words[at + NODE.INCARNATION] !== incarnation || (view.words[at + NODE.META]! & 0xff) !== length) continue;
    if (isPointed(view, node * UNIT_BYTES + NODE.NAME_BYTE, length, nameAt, spelled, base, start)) return node;
  }
  return 0;
}

function isPointed(
  { bytes, data }: ImageView,
  nodeName: number,
  length: number,
  nameAt: number,
  spelled: number,
  base: NameKey,
  start: number,
): boolean {
  // Most names are in lower case as they stand.
  const isLower = sameBytes(data, nodeName, data, nameAt, spelled);
  for (let index = 0; !isLower && index < spelled; index++) {
    if (bytes[nodeName + index] !== LOWER[bytes[nameAt + index]!]) return false;
  }
  return sameBytes(data, nodeName + spelled, base.data, start, length - spelled);
}

/** Bytes of the labels before the pointer. */
function spelledLength(bytes: Uint8Array, nameAt: number): number {
  let at = nameAt;
  while (bytes[at]! < 64) at += bytes[at]! + 1;
  return at - nameAt;
}

/** The mixed hash in a pointer's entry. */
export function pointedHash(data: DataView, entry: number): number {
  return data.getInt32(entry + POINTER.HASH);
}

/** The target by its whole name: one that is written out, or is covered by a wildcard. */
function putSpelled(
  state: AnswerState,
  name: Spelled,
  nameAt: number,
  suffix: number,
  spelledAt: number,
  glue: boolean,
): boolean {
  const { view, lookup, target } = state;
  spellTarget(target, view.bytes, nameAt, name, suffix, spelledAt, view.control[CONTROL.HASH_SEED]!);
  const { key } = target;
  const apex = key.labels - (name.key.labels - lookup.apexLabel);
  if (key.labels === 0 || apex < 0 || !sameSuffix(key, apex, name.key, lookup.apexLabel)) return true;
  if (state.overrides !== 0) {
    const override = findOverride(view, state.overrides, key);
    if (override !== 0) return putNode(state, override, key.hashes[0]!, -1, glue);
    // There is no zone to look for more in.
    if (lookup.zone === state.overrides) return true;
  }
  lookup.apexLabel = apex;
  const incarnation = view.words[lookup.zone * UNIT_WORDS + ZONE.INCARNATION]!;
  // Glue lies below a cut, where lookUpName does not look.
  let node = findNode(view, incarnation, key.hashes[0]!, key, 0, key.offsets[apex]!);
  if (node === 0 && !glue) {
    lookUpName(view, lookup, key);
    if (lookup.found === FOUND.WILDCARD) node = lookup.node;
  }
  return node === 0 || putNode(state, node, key.hashes[0]!, -1, glue);
}

function sameSuffix(a: NameKey, aLabel: number, b: NameKey, bLabel: number): boolean {
  if (a.hashes[aLabel] !== b.hashes[bLabel]) return false;
  const from = a.offsets[aLabel]!;
  const other = b.offsets[bLabel]!;
  if (a.length - from !== b.length - other) return false;
  for (let index = from; index < a.length; index++) if (a.lower[index] !== b.lower[other + index - from]) return false;
  return true;
}

/**
 * Adds the A and AAAA RRsets of a node, under the name that the message has at `owner`, or under state.target where that is
 * -1. `hash` tells owners apart whose RRsets are the same. Returns false where one did not fit.
 */
function putNode(state: AnswerState, node: number, hash: number, owner: number, glue: boolean): boolean {
  const { view } = state;
  reach(view, node);
  let a = 0;
  let aaaa = 0;
  let rrset = view.words[node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0) {
    reach(view, rrset);
    const type = view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff;
    if (type === RRTYPE.A) a = rrset;
    else if (type === RRTYPE.AAAA) aaaa = rrset;
    rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  const fits = a === 0 || putOnce(state, a, hash, owner, glue);
  return (aaaa === 0 || putOnce(state, aaaa, hash, owner, glue)) && fits;
}

/** Glue is complete; of other addresses there are no more than fit into state.added, which ends repetitions. */
function putOnce(state: AnswerState, rrset: number, hash: number, owner: number, glue: boolean): boolean {
  const { view, query, added, addedCount } = state;
  if (addedCount === ADDITIONAL_MAX && !glue) return true;
  for (let index = 0; index < addedCount; index++) {
    if (added[index * 2] === rrset && added[index * 2 + 1] === hash) return true;
  }
  if (state.trace !== undefined) traceAdditional(state, rrset, owner);
  const count = isSelected(view, rrset) ? putSelected(state, rrset, owner) : putWhole(state, rrset, owner);
  if (count < 0) return false;
  if (addedCount < ADDITIONAL_MAX) {
    added[addedCount * 2] = rrset;
    added[addedCount * 2 + 1] = hash;
    state.addedCount++;
  }
  query.additionals += count;
  return true;
}

/** Puts an RRset under the name at `owner`, or under state.target. How many RRs it has, -1 where they do not fit. */
function putWhole({ view, query, target }: AnswerState, rrset: number, owner: number): number {
  const fits =
    owner >= 0
      ? putRRsetOf(view, query, rrset, owner)
      : putRRset(view, query, rrset, target, 0, 0, false) !== PUT.NO_ROOM;
  return fits ? recordCount(view, rrset) : -1;
}

/** As `putWhole`, of those that are selected. */
function putSelected(state: AnswerState, rrset: number, owner: number): number {
  const { view, query, target, beside } = state;
  select(state, beside, rrset);
  const fits =
    owner >= 0
      ? putChosenOf(view, query, rrset, beside, owner)
      : putChosen(view, query, rrset, beside, target, 0, false) !== PUT.NO_ROOM;
  return fits ? beside.count : -1;
}
