/** The additional section: addresses of the names that MX, SRV and NS records point to, as far as we hold them. */
import { RRTYPE } from "../dns/codes.ts";
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS, ZONE } from "../image/layout.ts";
import { CONTROL } from "../image/shared.ts";
import { findNode } from "../image/view.ts";
import { FOUND, findZone, lookUpName } from "./lookup.ts";
import { PUT, putRRset, recordCount } from "./records.ts";
import { POINTER_MAX, type Spelled, spellTarget } from "./spelled.ts";
import { ADDITIONAL_MAX, type AnswerState, noteZone, reach } from "./state.ts";

/** Offset of the target's name in an RR of a static RRset: owner pointer, fixed fields, and what stands before the name. */
function targetOffset(type: number): number {
  return 12 + (type === RRTYPE.MX ? 2 : type === RRTYPE.SRV ? 6 : 0);
}

/**
 * Adds what is known of the targets of an RRset in the answer, as far as it fits. `name` and `apexLabel` say whose rdata it
 * is; `at` is where the message has the RRset, -1 where names in it were written out.
 */
export function putAdditionals(state: AnswerState, rrset: number, name: Spelled, apexLabel: number, at: number): void {
  forEachTarget(state, rrset, name, apexLabel, at, -1);
}

/**
 * Adds the addresses of a referral's name servers. Those at or below the cut are needed to follow it: returns false where
 * one of them does not fit (RFC 9471 section 3.1).
 */
export function putGlue(
  state: AnswerState,
  rrset: number,
  name: Spelled,
  apexLabel: number,
  cutLabel: number,
  at: number,
): boolean {
  return forEachTarget(state, rrset, name, apexLabel, at, cutLabel);
}

/** In-domain targets first, so that what is needed has the room. `cutLabel` -1: nothing is needed. */
function forEachTarget(
  state: AnswerState,
  rrset: number,
  name: Spelled,
  apexLabel: number,
  at: number,
  cutLabel: number,
): boolean {
  const { view } = state;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const length = view.words[rrset * UNIT_WORDS + RRSET.SIZE]! >>> 16;
  const into = targetOffset(view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff);
  const seed = view.control[CONTROL.HASH_SEED]!;
  let complete = true;
  for (let pass = cutLabel < 0 ? 1 : 0; pass < 2; pass++) {
    for (let offset = 0; offset < length; ) {
      const size = (view.bytes[from + offset + 10]! << 8) | view.bytes[from + offset + 11]!;
      const place = at + offset + into;
      const spelled = at < 0 || place > POINTER_MAX ? -1 : place;
      spellTarget(state.target, view.bytes, from + offset + into, name, apexLabel, spelled, seed);
      const needed = cutLabel >= 0 && isAtOrBelow(state.target, name, cutLabel);
      if (needed === (pass === 0) && !putTarget(state, needed) && needed) complete = false;
      offset += 12 + size;
    }
  }
  return complete;
}

function isAtOrBelow(target: Spelled, name: Spelled, label: number): boolean {
  const above = target.key.labels - (name.key.labels - label);
  return above >= 0 && target.key.hashes[above] === name.key.hashes[label];
}

/** Adds the A and AAAA RRsets of state.target. Returns false where one did not fit. */
function putTarget(state: AnswerState, glue: boolean): boolean {
  const { view, lookup, target } = state;
  const { key } = target;
  if (key.labels === 0 || findZone(view, lookup, key, 0) === 0) return true;
  noteZone(state, lookup.zone);
  const incarnation = view.words[lookup.zone * UNIT_WORDS + ZONE.INCARNATION]!;
  // Glue lies below a cut, where lookUpName does not look.
  let node = findNode(view, incarnation, key.hashes[0]!, key.lower, 0, key.offsets[lookup.apexLabel]!);
  if (node === 0 && !glue) {
    lookUpName(view, lookup, key);
    if (lookup.found === FOUND.WILDCARD) node = lookup.node;
  }
  if (node === 0) return true;
  reach(view, node);
  const a = putAddressType(state, node, RRTYPE.A, glue);
  return putAddressType(state, node, RRTYPE.AAAA, glue) && a;
}

/** Glue is complete; of other addresses there are no more than fit into state.added, which ends repetitions. */
function putAddressType(state: AnswerState, node: number, type: number, glue: boolean): boolean {
  const { view, query, target, added } = state;
  let rrset = view.words[node * UNIT_WORDS + NODE.RRSETS]!;
  for (; rrset !== 0; rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!) {
    reach(view, rrset);
    if ((view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === type) break;
  }
  const isFull = state.addedCount === ADDITIONAL_MAX;
  if (rrset === 0 || (isFull && !glue)) return true;
  const hash = target.key.hashes[0]!;
  for (let index = 0; index < state.addedCount; index++) {
    if (added[index * 2] === rrset && added[index * 2 + 1] === hash) return true;
  }
  if (putRRset(view, query, rrset, target, 0, 0, false) === PUT.NO_ROOM) return false;
  if (!isFull) {
    added[state.addedCount * 2] = rrset;
    added[state.addedCount * 2 + 1] = hash;
    state.addedCount++;
  }
  query.additionals += recordCount(view, rrset);
  return true;
}
