/** Puts an answer of the cache behind what the answer in hand has. */
import { isIntact } from "../image/cache-view.ts";
import { readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { copyBytes } from "../image/view.ts";
import { expandHit } from "./expand-hit.ts";
import { noteAnswered } from "./find-hit.ts";
import { type Hit, labelAt, PUT_HIT, type PutHit, QUESTION_AT, TYPE_AND_CLASS, ttlNow } from "./hit.ts";
import { offsetOf, POINTER_MAX, type Spelled, spelledAt } from "./spelled.ts";
import type { AnswerState } from "./state.ts";

/** Appends the RRs of the hit; `name` is the name that it was found for. `exact`: that is the question, and nothing is ahead. */
export function putHit(state: AnswerState, name: Spelled, exact: boolean): PutHit {
  const { query, cache, hit } = state;
  const to = query.at;
  let put: PutHit = PUT_HIT.NO_ROOM;
  if (to + hit.length <= query.limit) put = copyHit(state, name, exact);
  if (put === PUT_HIT.NO_ROOM && !exact) put = expandHit(state, name);
  if (!isIntact(cache, hit.start) || put === PUT_HIT.GONE) {
    query.at = to;
    return PUT_HIT.GONE;
  }
  if (put === PUT_HIT.DONE) noteHit(state);
  return put;
}

/** As the cache has them, with pointers set for where they land. NO_ROOM: a pointer cannot be set. */
function copyHit({ query, cache, hit }: AnswerState, name: Spelled, exact: boolean): PutHit {
  const { from, length } = hit;
  const to = query.at;
  if (length >= 4) copyBytes(query.data, to, cache.data, from, length);
  if (!countDown(query.data, cache.data, hit, to)) return PUT_HIT.GONE;
  if (!exact) {
    const behind = QUESTION_AT + name.key.length + 1 + TYPE_AND_CLASS;
    for (let index = 0; index < hit.pointers; index++) {
      const place = cache.data.getUint16(hit.pointersAt + index * 2, true);
      if (place + 2 > length) return PUT_HIT.GONE;
      const means = cache.data.getUint16(from + place) & POINTER_MAX;
      const at = means < behind ? offsetInName(name, means) : means - behind + to - query.start;
      if (at < 0 || at > POINTER_MAX) return PUT_HIT.NO_ROOM;
      query.data.setUint16(to + place, 0xc000 | at);
    }
  }
  hit.targetAt = -1;
  if (hit.targets > 0) {
    hit.targetAt = to - query.start + cache.data.getUint16(hit.targetsAt + (hit.targets - 1) * 2, true);
  }
  query.at = to + length;
  return PUT_HIT.DONE;
}

/** Where the message has what a pointer into the question's name means, for the name that stands there in its place. */
function offsetInName(name: Spelled, means: number): number {
  const label = labelAt(name.key, means - QUESTION_AT);
  return label < 0 ? -1 : offsetOf(name, label);
}

/** Lowers the TTLs of the RRs copied to `to` by their age. False: a place is none. */
function countDown(target: DataView, source: DataView, hit: Hit, to: number): boolean {
  const { ageSeconds, isStale, ttls, ttlsAt } = hit;
  if (ageSeconds === 0 && !isStale) return true;
  const last = hit.length - 4;
  for (let index = 0; index < ttls; index++) {
    const place = source.getUint16(ttlsAt + index * 2, true);
    if (place > last) return false;
    target.setInt32(to + place, ttlNow(hit, target.getInt32(to + place)));
  }
  return true;
}

/** What came of the hit goes into the answer in hand, but for its RRs. */
function noteHit(state: AnswerState): void {
  const { query, hit } = state;
  query.answers += hit.answers;
  query.authorities += hit.authorities;
  noteAnswered(state);
  query.rcode = hit.rcode;
}

/** Fills `next` with the target of the hit's last CNAME, from where the answer has it now. False: it is no name. */
export function spellLast({ hit, view, query }: AnswerState, next: Spelled): boolean {
  const at = hit.targetAt;
  if (at < 0) return false;
  const seed = view.control[CONTROL.HASH_SEED]!;
  if (readNameKey(next.key, query.bytes, query.start + at, query.at, seed) < 0) return false;
  spelledAt(next, at);
  return true;
}
