/** The RRs of a selected RRset that one answer takes, and how they come into the message. */
import { evenBytes, MAX_RRSET_BYTES, placesIn, RRSET, SELECTED_FLAG, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import { copyBytes, type ImageView } from "../image/view.ts";
import type { Query } from "./query.ts";
import { PUT, type Put, putSuffix, suffixLength } from "./records.ts";
import { offsetOf, type Spelled } from "./spelled.ts";

const QUESTION_NAME_AT = 12;
/** Owner pointer, type, class, TTL and length of rdata. */
const RR_BYTES_MIN = 12;

/** A thread fills it again for every selection. */
export type Chosen = {
  /** The first word of the RRset's table, what stands there (SELECTION.META), and how many candidates there are. */
  table: number;
  meta: number;
  total: number;
  /** The candidates that are left, by their places in the table: the first `count`. */
  readonly indexes: Int32Array;
  count: number;
  /** The answer begins with this one of them and goes round. */
  first: number;
};

export function createChosen(): Chosen {
  const indexes = new Int32Array(Math.floor(MAX_RRSET_BYTES / RR_BYTES_MIN));
  return { table: 0, meta: 0, total: 0, indexes, count: 0, first: 0 };
}

/** Whether health or a policy selects among the RRs. */
export function isSelected(view: ImageView, rrset: number): boolean {
  return (view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & SELECTED_FLAG) !== 0;
}

/** The candidate that the answer has at `position`, from 0 on. */
export function chosenIndex(chosen: Chosen, position: number): number {
  const at = chosen.first + position;
  return chosen.indexes[at < chosen.count ? at : at - chosen.count]!;
}

/** The place of the RR that the answer has at `position`: bits 0 to 15 its offset among the RRs, bits 16 to 31 its bytes. */
export function chosenPlace(view: ImageView, chosen: Chosen, position: number): number {
  const index = chosenIndex(chosen, position);
  const bytes = evenBytes(chosen.meta);
  return bytes === 0 ? view.words[chosen.table + placesIn(chosen.total) + index]! : (bytes << 16) | (index * bytes);
}

/** Leaves only the candidate at `position` of those that are left. */
export function chooseOnly(chosen: Chosen, position: number): void {
  chosen.indexes[0] = chosen.indexes[position]!;
  chosen.count = 1;
  chosen.first = 0;
}

/**
 * Appends the chosen RRs. Their owner is the suffix of `name` at `ownerLabel`; `exact` says that this is the question.
 */
export function putChosen(
  view: ImageView,
  query: Query,
  rrset: number,
  chosen: Chosen,
  name: Spelled,
  ownerLabel: number,
  exact: boolean,
): Put {
  const owner = exact ? QUESTION_NAME_AT : offsetOf(name, ownerLabel);
  if (owner >= 0) return putChosenOf(view, query, rrset, chosen, owner) ? PUT.AS_IS : PUT.NO_ROOM;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const start = query.at;
  const ownerBytes = suffixLength(name.key, ownerLabel);
  for (let position = 0; position < chosen.count; position++) {
    const place = chosenPlace(view, chosen, position);
    const rest = (place >>> 16) - 2;
    if (query.at + ownerBytes + rest > query.limit) {
      query.at = start;
      return PUT.NO_ROOM;
    }
    putSuffix(query, name.key, ownerLabel);
    copyBytes(query.data, query.at, view.data, from + (place & 0xffff) + 2, rest);
    query.at += rest;
  }
  return PUT.EXPANDED;
}

/** Appends the chosen RRs under the name that the message has at `owner`. Returns false where they do not fit. */
export function putChosenOf(view: ImageView, query: Query, rrset: number, chosen: Chosen, owner: number): boolean {
  const { words } = view;
  const { data, limit } = query;
  const { indexes, count } = chosen;
  const from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  const places = chosen.table + placesIn(chosen.total);
  const bytes = evenBytes(chosen.meta);
  let to = query.at;
  let position = chosen.first;
  for (let left = count; left > 0; left--) {
    const index = indexes[position]!;
    const place = bytes === 0 ? words[places + index]! : (bytes << 16) | (index * bytes);
    const length = place >>> 16;
    if (to + length > limit) return false;
    copyBytes(data, to, view.data, from + (place & 0xffff), length);
    if (owner !== QUESTION_NAME_AT) data.setUint16(to, 0xc000 | owner);
    to += length;
    position += 1;
    // 0 at the end, without a branch: where a rotation has its seam is what a processor guesses wrong.
    position &= (position - count) >> 31;
  }
  query.at = to;
  return true;
}
