/** Answers for names that no zone of ours holds: the way of the default forwarder, conditional forwarders and stub zones. */
import { CLASS, EDE, FLAG, RCODE, RRTYPE } from "../dns/codes.ts";
import { findBlocked } from "../image/blocklist.ts";
import { putBlocked } from "./blocked.ts";
import { isRecursionOffered } from "./client.ts";
import { PUT_HIT } from "./hit.ts";
import { putHit, spellLast } from "./put-hit.ts";
import { SOUGHT, seek, seekDelegated } from "./seek.ts";
import type { Spelled } from "./spelled.ts";
import { type AnswerState, CHAIN_MAX, keepQuery, lack, STEP, type Step, truncate, wantsRecursion } from "./state.ts";
import { traceCache, traceFollow, traceRoute, traceStopped } from "./trace-names.ts";

/** Answers for a name that is routed away from us, or to nobody; `lookup.route` has the route that matched. */
export function answerElsewhere(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step {
  const { query, lookup } = state;
  const traced = state.trace !== undefined;
  if (!state.forwards || query.class !== CLASS.IN) return refuse(state, name, hops, EDE.NOT_AUTHORITATIVE);
  if (!isRecursionOffered(state)) return answerOutside(state, name, hops);
  const sought = seek(state, name.key, query.type, !wantsRecursion(state));
  if (hops === 0 && state.route !== 0) state.headerFlags |= FLAG.RA;
  switch (sought) {
    case SOUGHT.BLOCKED:
      if (traced) traceRoute(state, name, "blocklist", state.listed);
      return putBlocked(state, name, state.listed);
    case SOUGHT.NONE:
      return refuse(state, name, hops, EDE.NOT_AUTHORITATIVE);
    case SOUGHT.PROHIBITED:
      return refuse(state, name, hops, EDE.PROHIBITED);
    default:
      if (traced) traceRoute(state, name, lookup.route === 0 ? "default" : "route", lookup.apexLabel);
      return answerSought(state, name, next, hops, sought === SOUGHT.HIT);
  }
}

/** As `answerElsewhere`, for a sender that recursion is not offered to: the cache is not for it either. The blocklist is for everybody. */
function answerOutside(state: AnswerState, name: Spelled, hops: number): Step {
  state.listed = findBlocked(state.view, name.key);
  if (state.listed >= 0) {
    if (state.trace !== undefined) traceRoute(state, name, "blocklist", state.listed);
    return putBlocked(state, name, state.listed);
  }
  const isNobodys = state.lookup.route === 0 && state.defaultRoute === 0;
  if (isNobodys) return refuse(state, name, hops, EDE.NOT_AUTHORITATIVE);
  state.isRecursionRefused = wantsRecursion(state);
  return refuse(state, name, hops, EDE.PROHIBITED, "not-offered");
}

/** Answers for a name at or below a zone cut of ours, as the name servers do that the cut names. */
export function answerDelegated(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step {
  const sought = seekDelegated(state, name.key, state.query.type);
  if (state.trace !== undefined) traceRoute(state, name, "delegation", state.lookup.cutLabel);
  return answerSought(state, name, next, hops, sought === SOUGHT.HIT);
}

/** Answers with the hit, else tells what is lacking. Without RD nothing is asked for (RFC 1034 section 4.3.1). */
function answerSought(state: AnswerState, name: Spelled, next: Spelled, hops: number, isHit: boolean): Step {
  const { query, route } = state;
  if (isHit && state.trace !== undefined) traceCache(state);
  const step = isHit ? answerHit(state, name, next, hops) : undefined;
  if (step !== undefined) return step;
  if (!wantsRecursion(state)) return refuse(state, name, hops, EDE.NOT_AUTHORITATIVE);
  state.headerFlags |= query.flags & FLAG.CD;
  return lack(state, name.key, query.type, route);
}

/** Answers with the hit; undefined where it was overwritten meanwhile. The target of an open one becomes `next`. */
function answerHit(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step | undefined {
  const { query, hit, chain } = state;
  const hash = name.key.hashes[0]!;
  const { entry } = hit;
  // A CNAME is all that there is to say to a question for it, and ANY gets what is at the name (RFC 1034 section 3.6.2).
  const follows = hit.isOpen && query.type !== RRTYPE.CNAME && query.type !== RRTYPE.ANY;
  for (let index = 0; follows && index < hops; index++) {
    if (chain[index * 2] === -entry && chain[index * 2 + 1] === hash) return stopChain(state, "loop");
  }
  keepQuery(state);
  const put = putHit(state, name, hops === 0);
  if (put === PUT_HIT.GONE) return undefined;
  state.headerFlags |= query.flags & FLAG.CD;
  if (put === PUT_HIT.NO_ROOM) return truncate(state);
  if (!follows || !spellLast(state, next)) return STEP.ANSWERED;
  if (hops === CHAIN_MAX) return stopChain(state, "length");
  chain[hops * 2] = -entry;
  chain[hops * 2 + 1] = hash;
  if (state.trace !== undefined) traceFollow(state, "cname", next);
  return STEP.FOLLOW;
}

function stopChain(state: AnswerState, why: "loop" | "length"): Step {
  if (state.trace !== undefined) traceStopped(state, why);
  return STEP.ANSWERED;
}

/** Nobody answers for the name: a question is refused, a chain ends with what it has so far. */
function refuse(
  state: AnswerState,
  name: Spelled,
  hops: number,
  extendedError: number,
  stage: "none" | "not-offered" = "none",
): Step {
  const { query } = state;
  if (state.trace !== undefined) traceRoute(state, name, stage, 0);
  if (hops === 0) {
    query.rcode = RCODE.REFUSED;
    query.extendedError = extendedError;
  }
  return STEP.ANSWERED;
}
