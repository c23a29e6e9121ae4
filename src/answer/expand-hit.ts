/**
 * Puts an answer of the cache with all its names written out: where its pointers have nothing to point to, because the
 * name was not spelled for others, or lies further on in the message than a pointer reaches.
 */
import { labelAt, PUT_HIT, type PutHit, QUESTION_AT, TYPE_AND_CLASS, ttlNow } from "./hit.ts";
import type { Query } from "./query.ts";
import { putSuffix, suffixLength } from "./records.ts";
import { POINTER_MAX, type Spelled } from "./spelled.ts";
import type { AnswerState } from "./state.ts";

/** Type, class, TTL and length of an RR, counted from its TTL. */
const FIXED_AHEAD_OF_TTL = 4;
const RDATA_BEHIND_TTL = 6;
/** A label is at most that long; from here on it is a pointer. */
const LABEL_MAX = 63;
const POINTER_BITS = 0xc0;
/** Labels and pointers of one name: more than a name can have is no name. */
const NAME_STEPS_MAX = 256;

/** How far an answer is written out. One at a time: a thread has no more in hand. */
type Writing = { pointer: number; failure: PutHit };
const writing: Writing = { pointer: 0, failure: PUT_HIT.DONE };

/** As `putHit`. What was written counts only where it says DONE; `query.at` is moved in any case. */
export function expandHit(state: AnswerState, name: Spelled): PutHit {
  const { query, cache, hit } = state;
  const { data } = cache;
  const last = hit.targets === 0 ? -1 : data.getUint16(hit.targetsAt + (hit.targets - 1) * 2, true);
  hit.targetAt = -1;
  writing.pointer = 0;
  writing.failure = PUT_HIT.DONE;
  let at = 0;
  for (let index = 0; index < hit.ttls; index++) {
    const ttlAt = data.getUint16(hit.ttlsAt + index * 2, true);
    const rdataAt = ttlAt + RDATA_BEHIND_TTL;
    if (ttlAt < at + FIXED_AHEAD_OF_TTL || rdataAt > hit.length) return PUT_HIT.GONE;
    const end = rdataAt + data.getUint16(hit.from + rdataAt - 2);
    if (end > hit.length || !writeSpan(state, name, at, rdataAt)) return failure();
    const to = query.at;
    query.data.setInt32(to - RDATA_BEHIND_TTL, ttlNow(hit, query.data.getInt32(to - RDATA_BEHIND_TTL)));
    if (last === rdataAt) hit.targetAt = to - query.start;
    if (!writeSpan(state, name, rdataAt, end)) return failure();
    query.data.setUint16(to - 2, query.at - to);
    at = end;
  }
  return at === hit.length ? PUT_HIT.DONE : PUT_HIT.GONE;
}

function failure(): PutHit {
  return writing.failure === PUT_HIT.DONE ? PUT_HIT.GONE : writing.failure;
}

/** Writes the entry's bytes from one offset to another, each pointer among them as the name that it means. */
function writeSpan(state: AnswerState, name: Spelled, from: number, end: number): boolean {
  const { query, cache, hit } = state;
  for (let at = from; at < end; ) {
    if (at === nextPointer(state)) {
      if (at + 2 > end) return false;
      writing.pointer++;
      if (!writeName(state, name, cache.data.getUint16(hit.from + at) & POINTER_MAX)) return false;
      at += 2;
    } else {
      if (!hasRoom(query, 1)) return false;
      query.bytes[query.at++] = cache.bytes[hit.from + at++]!;
    }
  }
  return true;
}

/** The offset of the next pointer, -1 behind the last. */
function nextPointer({ cache, hit }: AnswerState): number {
  return writing.pointer < hit.pointers ? cache.data.getUint16(hit.pointersAt + writing.pointer * 2, true) : -1;
}

/** Writes out the name that a pointer to `means` stands for, in a message with the question's name and the entry behind it. */
function writeName(state: AnswerState, name: Spelled, means: number): boolean {
  const { query, cache, hit } = state;
  const behind = QUESTION_AT + name.key.length + 1 + TYPE_AND_CLASS;
  let at = means;
  for (let steps = 0; steps < NAME_STEPS_MAX; steps++) {
    if (at < behind) return writeSuffix(query, name, at);
    const offset = at - behind;
    if (offset + 2 > hit.length) return false;
    const size = cache.bytes[hit.from + offset]!;
    if (size >= POINTER_BITS) {
      at = cache.data.getUint16(hit.from + offset) & POINTER_MAX;
      continue;
    }
    if (size > LABEL_MAX || offset + size + 1 > hit.length || !hasRoom(query, size + 1)) return false;
    for (let index = 0; index <= size; index++) query.bytes[query.at++] = cache.bytes[hit.from + offset + index]!;
    if (size === 0) return true;
    at += size + 1;
  }
  return false;
}

function writeSuffix(query: Query, { key }: Spelled, at: number): boolean {
  const label = labelAt(key, at - QUESTION_AT);
  if (label < 0 || !hasRoom(query, suffixLength(key, label))) return false;
  putSuffix(query, key, label);
  return true;
}

function hasRoom(query: Query, bytes: number): boolean {
  if (query.at + bytes <= query.limit) return true;
  writing.failure = PUT_HIT.NO_ROOM;
  return false;
}
