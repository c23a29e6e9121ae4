/**
 * Finds answers in the cache. An entry may be overwritten while it is read: until `isIntact` has spoken nothing of it is
 * trusted, and every place and length in it is held against where it could lead.
 */
import { EDE, RCODE } from "../dns/codes.ts";
import { ENTRY, ENTRY_OPEN } from "../image/cache.ts";
import {
  cameSince,
  findCached,
  isIntact,
  isRoutedAt,
  noteRefreshing,
  noteRouting,
  noteUsed,
  useCount,
} from "../image/cache-view.ts";
import { type NameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { CACHE_USE } from "./hit.ts";
import { questionFlags } from "./query.ts";
import { routeOf } from "./route.ts";
import type { AnswerState } from "./state.ts";

/** An answer that was given so often is fetched anew in the last tenth of its time, if that is a second at least. */
const POPULAR_USES = 3;
const REFRESH_PART = 10;

/**
 * Finds an answer that counts for a name by a route into `state.hit`; false where there is none. `freshOnly`: none whose
 * time is over, whatever came of fetching another.
 */
export function findHit(state: AnswerState, key: NameKey, type: number, route: number, freshOnly: boolean): boolean {
  const { cache, hit, nowSeconds, acceptedFrom } = state;
  const entry = findCached(cache, key, type, questionFlags(state.query));
  if (entry === 0) return false;
  const { words } = cache;
  const { start } = cache;
  if (words[entry + ENTRY.ROUTE] !== route) return false;
  hit.isStale = false;
  if (
    ((words[entry + ENTRY.EXPIRES]! - nowSeconds) | 0) <= 0 &&
    !(acceptedFrom >= 0 && cameSince(start, acceptedFrom))
  ) {
    if (freshOnly || ((words[entry + ENTRY.STALE_UNTIL]! - nowSeconds) | 0) <= 0) return false;
    hit.isStale = true;
  }
  hit.entry = entry;
  hit.start = start;
  return readHit(state);
}

/** Reads what the entry says of itself. False: it is gone. */
function readHit({ cache, hit, nowSeconds }: AnswerState): boolean {
  const { words } = cache;
  const { entry } = hit;
  const result = words[entry + ENTRY.RESULT]!;
  const counts = words[entry + ENTRY.COUNTS]!;
  const bytes = words[entry + ENTRY.BYTES]!;
  const places = words[entry + ENTRY.PLACES]!;
  hit.rcode = result & 0xfff;
  hit.isOpen = (result & ENTRY_OPEN) !== 0;
  hit.extendedError = (result >>> 16) - 1;
  hit.answers = counts & 0xffff;
  hit.authorities = counts >>> 16;
  hit.ageSeconds = Math.max((nowSeconds - words[entry + ENTRY.STORED]!) | 0, 0);
  hit.from = (entry + ENTRY.BYTES_AT) * 4;
  hit.length = bytes & 0xffff;
  hit.ttlsAt = hit.from + hit.length;
  hit.ttls = bytes >>> 16;
  hit.pointersAt = hit.ttlsAt + hit.ttls * 2;
  hit.pointers = places & 0xffff;
  hit.targetsAt = hit.pointersAt + hit.pointers * 2;
  hit.targets = places >>> 16;
  // With this every byte of it lies in the cache, whatever is written there meanwhile.
  return hit.targetsAt + hit.targets * 2 <= cache.data.byteLength && isIntact(cache, hit.start);
}

/** Whether the names of the hit are known to have been routed as when it came, as of a CONTROL.ROUTING. */
export function isRouted({ cache, hit }: AnswerState, routing: number): boolean {
  return isRoutedAt(cache, hit.start, routing);
}

/**
 * Routes the names of the hit's chain again, but for the question, which the caller has routed, and the last of an open
 * one, which is the next question; `routing` was read before that. False: one is routed elsewhere now, and the hit does not count.
 */
export function routeAgain(state: AnswerState, route: number, routing: number): boolean {
  const { cache, hit, view, probe, query } = state;
  const targets = hit.isOpen ? hit.targets - 1 : hit.targets;
  const end = hit.from + hit.length;
  for (let index = 0; index < targets; index++) {
    const at = hit.from + cache.data.getUint16(hit.targetsAt + index * 2, true);
    if (readNameKey(probe.key, cache.bytes, at, end, view.control[CONTROL.HASH_SEED]!) < 0) return false;
    if (routeOf(view, probe, query.type) !== route) return false;
  }
  if (!isIntact(cache, hit.start)) return false;
  if (!state.isFrozen) noteRouting(cache, hit.start, routing);
  return true;
}

/** Notes that a hit was answered: for those who count, and for whoever is to fetch it anew. */
export function noteAnswered(state: AnswerState): void {
  const { query, hit } = state;
  if (hit.isStale) {
    state.cacheUse = CACHE_USE.STALE;
    query.extendedError = hit.rcode === RCODE.NXDOMAIN ? EDE.STALE_NXDOMAIN_ANSWER : EDE.STALE_ANSWER;
  } else {
    if (state.cacheUse === CACHE_USE.NONE) state.cacheUse = CACHE_USE.FRESH;
    if (hit.extendedError >= 0) query.extendedError = hit.extendedError;
  }
  if (!state.isFrozen) noteUse(state);
}

function noteUse(state: AnswerState): void {
  const { cache, hit, nowSeconds } = state;
  noteUsed(cache);
  if (hit.isStale) return;
  const { words } = cache;
  const expires = words[hit.entry + ENTRY.EXPIRES]!;
  const total = (expires - words[hit.entry + ENTRY.STORED]!) | 0;
  if (total < REFRESH_PART || ((expires - nowSeconds) | 0) * REFRESH_PART > total) return;
  if (useCount(cache) >= POPULAR_USES && !noteRefreshing(cache)) state.refresh = hit.entry;
}
