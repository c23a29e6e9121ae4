/** Answers of the cache under another owner: the addresses of an ALIAS's target that is not ours. */
import { CLASS, RCODE, RRTYPE } from "../dns/codes.ts";
import { isIntact } from "../image/cache-view.ts";
import { readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { copyBytes } from "../image/view.ts";
import { noteAnswered } from "./find-hit.ts";
import { ttlNow } from "./hit.ts";
import { putSuffix, suffixLength } from "./records.ts";
import { offsetOf, type Spelled } from "./spelled.ts";
import { type AnswerState, keepQuery } from "./state.ts";

export const ALIAS_HIT = {
  /** The entry was overwritten meanwhile: there is nothing. */
  GONE: 0,
  NO_ROOM: 1,
  /** The target has such addresses, and the answer too. */
  DONE: 2,
  /** It has none. */
  NO_DATA: 3,
  FAILED: 4,
} as const;
export type AliasHit = (typeof ALIAS_HIT)[keyof typeof ALIAS_HIT];

/** Type and class stand ahead of an RR's TTL, length and rdata behind it. */
const TYPE_AHEAD = 4;
const LENGTH_BEHIND = 4;
const RDATA_BEHIND = 6;
const FIXED_BYTES = 10;

/** Appends the hit's addresses of `type`, A or AAAA, owned by the whole of `name`, with a TTL of at most `ttl`. */
export function putAliasHit(state: AnswerState, name: Spelled, type: number, ttl: number): AliasHit {
  const { query, cache, hit } = state;
  const to = query.at;
  let put: AliasHit =
    hit.rcode === RCODE.NOERROR || hit.rcode === RCODE.NXDOMAIN ? ALIAS_HIT.NO_DATA : ALIAS_HIT.FAILED;
  if (hit.rcode === RCODE.NOERROR) {
    keepQuery(state);
    put = copyAddresses(state, name, type, ttl);
  }
  if (isIntact(cache, hit.start) && put !== ALIAS_HIT.GONE) {
    if (put !== ALIAS_HIT.NO_ROOM) noteAnswered(state);
    return put;
  }
  query.at = to;
  return ALIAS_HIT.GONE;
}

function copyAddresses(state: AnswerState, name: Spelled, type: number, ttl: number): AliasHit {
  const { query, cache, hit } = state;
  const { data } = cache;
  const size = type === RRTYPE.A ? 4 : 16;
  const owner = offsetOf(name, 0);
  const ownerBytes = owner >= 0 ? 2 : suffixLength(name.key, 0);
  let count = 0;
  for (let index = 0; index < Math.min(hit.answers, hit.ttls); index++) {
    const ttlAt = data.getUint16(hit.ttlsAt + index * 2, true);
    if (ttlAt < TYPE_AHEAD || ttlAt + RDATA_BEHIND + size > hit.length) continue;
    const at = hit.from + ttlAt;
    if (data.getInt32(at - TYPE_AHEAD) !== ((type << 16) | CLASS.IN) || data.getUint16(at + LENGTH_BEHIND) !== size)
      continue;
    if (query.at + ownerBytes + FIXED_BYTES + size > query.limit) return ALIAS_HIT.NO_ROOM;
    if (owner < 0) putSuffix(query, name.key, 0);
    else {
      query.data.setUint16(query.at, 0xc000 | owner);
      query.at += 2;
    }
    copyBytes(query.data, query.at, data, at - TYPE_AHEAD, FIXED_BYTES + size);
    query.data.setInt32(query.at + TYPE_AHEAD, ttl);
    query.at += FIXED_BYTES + size;
    count++;
  }
  query.answers += count;
  return count === 0 ? ALIAS_HIT.NO_DATA : ALIAS_HIT.DONE;
}

/** The smallest TTL of the hit's answers, at most `ttl`. */
export function smallestTtl({ cache, hit }: AnswerState, ttl: number): number {
  let smallest = ttl;
  for (let index = 0; index < Math.min(hit.answers, hit.ttls); index++) {
    const ttlAt = cache.data.getUint16(hit.ttlsAt + index * 2, true);
    if (ttlAt + 4 <= hit.length) smallest = Math.min(smallest, ttlNow(hit, cache.data.getInt32(hit.from + ttlAt)));
  }
  return smallest;
}

/** Fills `target` with the target of the hit's last CNAME, which nobody may point to. False: there is none, or it is gone. */
export function readLastTarget({ cache, hit, view }: AnswerState, target: Spelled): boolean {
  if (hit.targets === 0) return false;
  const at = hit.from + cache.data.getUint16(hit.targetsAt + (hit.targets - 1) * 2, true);
  const seed = view.control[CONTROL.HASH_SEED]!;
  if (readNameKey(target.key, cache.bytes, at, hit.from + hit.length, seed) < 0) return false;
  target.at = -1;
  target.literal = target.key.labels;
  target.restAt = 0;
  target.reach = 0;
  return isIntact(cache, hit.start);
}
