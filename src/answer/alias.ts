/** ALIAS: a name that answers with the addresses of another, resolved when it is asked for. */
import { EDE, RCODE, RRTYPE } from "../dns/codes.ts";
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import { CONTROL } from "../image/shared.ts";
import { ALIAS_HIT, putAliasHit, readLastTarget, smallestTtl } from "./alias-hit.ts";
import { noteBlocked } from "./blocked.ts";
import { chosenPlace, isSelected, putChosen } from "./chosen.ts";
import { noteAnswered } from "./find-hit.ts";
import { FOUND, findOverride, findZone, foundOverride, lookUpName } from "./lookup.ts";
import { firstSuffix, limitTtl, PUT, putRRset, recordCount } from "./records.ts";
import { SOUGHT, type Sought, seek, seekDelegated } from "./seek.ts";
import { select } from "./select.ts";
import { type Spelled, spellTarget } from "./spelled.ts";
import { type AnswerState, CHAIN_MAX, lack, noteZone, reach, STEP, type Step, truncate } from "./state.ts";
import { traceCache, traceFollow, traceFound, traceRoute, traceRRset, traceStopped } from "./trace-names.ts";

/** Static RRsets begin with owner pointer and fixed fields; the ALIAS's target follows. */
const TARGET_AT = 12;

/** Where a target of the chain was found: among our own names, or what came of seeking it elsewhere. */
const OWN = -1;
const OWN_NOTHING = -2;

/**
 * Answers with the addresses of `type`, A or AAAA, for `name` from the target of its ALIAS RRset, which may be a CNAME or an ALIAS again. The TTL
 * is the smallest on the way. STEP.FOLLOW: the target has no such addresses, so that the answer is NODATA.
 */
export function answerAlias(state: AnswerState, name: Spelled, alias: number, type: number): Step {
  const { view } = state;
  let ttl = view.words[alias * UNIT_WORDS + RRSET.TTL]!;
  let target = state.target;
  spellNext(state, target, alias, name);
  for (let followed = 0; followed < CHAIN_MAX; followed++) {
    const next = target === state.target ? state.spare : state.target;
    if (state.trace !== undefined) traceFollow(state, "alias", target);
    const sought = findTarget(state, target, type);
    if (sought === OWN_NOTHING) return STEP.FOLLOW;
    if (sought === SOUGHT.BLOCKED) {
      noteBlocked(state);
      return STEP.FOLLOW;
    }
    if (sought === OWN) {
      const addresses = findAddresses(state, type);
      if (addresses === 0) return STEP.FOLLOW;
      if (state.trace !== undefined) traceRRset(state, addresses, target);
      ttl = Math.min(ttl, view.words[addresses * UNIT_WORDS + RRSET.TTL]!);
      if ((view.words[addresses * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === type) {
        return putAddresses(state, addresses, name, ttl) ? STEP.ANSWERED : truncate(state);
      }
      spellNext(state, next, addresses, target);
    } else {
      if (sought !== SOUGHT.HIT) return lackTarget(state, target, type, sought);
      if (state.trace !== undefined) traceCache(state);
      ttl = smallestTtl(state, ttl);
      if (!state.hit.isOpen) return answerWithHit(state, name, target, type, ttl);
      if (!readLastTarget(state, next)) return lackTarget(state, target, type, SOUGHT.MISS);
      noteAnswered(state);
    }
    target = next;
  }
  if (state.trace !== undefined) traceStopped(state, "length");
  return fail(state, target);
}

/** Fills `target` with that of a CNAME or ALIAS RRset at the name `base`, which was just found. */
function spellNext(state: AnswerState, target: Spelled, rrset: number, base: Spelled): void {
  const { view, lookup } = state;
  const at = rrset * UNIT_BYTES + RRSET.WIRE_BYTE + chosenOffset(state, rrset) + TARGET_AT;
  const suffix = firstSuffix(view, rrset, lookup.apexLabel);
  spellTarget(target, view.bytes, at, base, suffix, -1, view.control[CONTROL.HASH_SEED]!);
}

/** Where the RR stands whose target is followed: the first of several, unless one is selected. */
function chosenOffset(state: AnswerState, rrset: number): number {
  if (!isSelected(state.view, rrset)) return 0;
  select(state, state.chosen, rrset);
  return chosenPlace(state.view, state.chosen, 0) & 0xffff;
}

/**
 * Routes a target. What an ALIAS stands for is our own answer: whether the client wants recursion does not matter. Recursion
 * has to be offered for names that are delegated.
 */
function findTarget(state: AnswerState, target: Spelled, type: number): Sought | typeof OWN | typeof OWN_NOTHING {
  const { view, lookup } = state;
  const traced = state.trace !== undefined;
  if (isOverridden(state, target)) {
    if (traced) traceRoute(state, target, "override", 0);
    return OWN;
  }
  if (findZone(view, lookup, target.key, 0) === 0) {
    const sought = state.forwards ? seek(state, target.key, type, false) : SOUGHT.NONE;
    if (traced && sought === SOUGHT.BLOCKED) traceRoute(state, target, "blocklist", state.listed);
    else if (traced && sought !== SOUGHT.NONE) {
      traceRoute(state, target, lookup.route === 0 ? "default" : "route", lookup.apexLabel);
    }
    return sought;
  }
  noteZone(state, lookup.zone);
  lookUpName(view, lookup, target.key);
  if (traced) {
    traceRoute(state, target, "own", lookup.apexLabel);
    traceFound(state, target);
  }
  if (lookup.found === FOUND.NOTHING) return OWN_NOTHING;
  if (lookup.found !== FOUND.CUT) return OWN;
  if (state.defaultRoute === 0) return SOUGHT.NONE;
  if (traced) traceRoute(state, target, "delegation", lookup.cutLabel);
  return seekDelegated(state, target.key, type);
}

/** Answers with the addresses of the hit under another owner, the whole of `name`. */
function answerWithHit(state: AnswerState, name: Spelled, target: Spelled, type: number, ttl: number): Step {
  const { query } = state;
  switch (putAliasHit(state, name, type, ttl)) {
    case ALIAS_HIT.GONE:
      return lackTarget(state, target, type, SOUGHT.MISS);
    case ALIAS_HIT.NO_ROOM:
      return truncate(state);
    case ALIAS_HIT.DONE:
      return STEP.ANSWERED;
    case ALIAS_HIT.NO_DATA:
      return STEP.FOLLOW;
    default:
      query.rcode = RCODE.SERVFAIL;
      query.authoritative = false;
      return STEP.ANSWERED;
  }
}

function lackTarget(state: AnswerState, target: Spelled, type: number, sought: Sought): Step {
  if (sought !== SOUGHT.MISS) return fail(state, target);
  const step = lack(state, target.key, type, state.route);
  if (step === STEP.ANSWERED) state.query.authoritative = false;
  return step;
}

/** Answers with an A or AAAA RRset under another owner, the whole of `name`, and with at most the TTL `ttl`. */
function putAddresses(state: AnswerState, rrset: number, name: Spelled, ttl: number): boolean {
  const { view, query, chosen } = state;
  const start = query.at;
  const selected = isSelected(view, rrset);
  if (selected) select(state, chosen, rrset);
  const put = selected
    ? putChosen(view, query, rrset, chosen, name, 0, false)
    : putRRset(view, query, rrset, name, 0, 0, false);
  if (put === PUT.NO_ROOM) return false;
  const count = selected ? chosen.count : recordCount(view, rrset);
  limitTtl(view, query, rrset, start, count, ttl);
  query.answers += count;
  return true;
}

/** Whether the name has an override, which is what was found then. */
function isOverridden(state: AnswerState, { key }: Spelled): boolean {
  const { view, lookup, overrides } = state;
  const node = overrides === 0 ? 0 : findOverride(view, overrides, key);
  if (node === 0) return false;
  state.isOverridden = true;
  foundOverride(lookup, overrides, node, key);
  return true;
}

/** At the node just found: the RRset of the wanted type, else its CNAME or ALIAS, else 0. */
function findAddresses(state: AnswerState, wanted: number): number {
  const { view, lookup } = state;
  reach(view, lookup.node);
  let other = 0;
  let rrset = view.words[lookup.node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0) {
    reach(view, rrset);
    const type = view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff;
    if (type === wanted) return rrset;
    if (type === RRTYPE.CNAME || type === RRTYPE.ALIAS) other = rrset;
    rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  return other;
}

/** Nobody resolves the target, or it leads in a circle. */
function fail(state: AnswerState, target: Spelled): Step {
  const { query } = state;
  if (state.trace !== undefined) traceRoute(state, target, "none", 0);
  query.rcode = RCODE.SERVFAIL;
  query.extendedError = EDE.NO_REACHABLE_AUTHORITY;
  query.authoritative = false;
  return STEP.ANSWERED;
}
