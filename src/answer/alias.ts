/** ALIAS: a name that answers with the addresses of another, resolved when it is asked for. */
import { EDE, RCODE, RRTYPE } from "../dns/codes.ts";
import { NODE, RRSET, UNIT_BYTES, UNIT_WORDS } from "../image/layout.ts";
import { CONTROL, ROUTE } from "../image/shared.ts";
import { chosenPlace, isSelected, putChosen } from "./chosen.ts";
import { FOUND, findOverride, findZone, foundOverride, lookUpName } from "./lookup.ts";
import { firstSuffix, limitTtl, PUT, putRRset, recordCount } from "./records.ts";
import { select } from "./select.ts";
import { type Spelled, spellTarget } from "./spelled.ts";
import { type AnswerState, CHAIN_MAX, lack, noteZone, reach, STEP, type Step, truncate } from "./state.ts";
import { traceFollow, traceFound, traceRoute, traceRRset, traceStopped } from "./trace-names.ts";

/** Static RRsets begin with owner pointer and fixed fields; the ALIAS's target follows. */
const TARGET_AT = 12;

/**
 * Answers with the addresses of `type`, A or AAAA, for `name` from the target of its ALIAS RRset, which may be a CNAME or an ALIAS again. The TTL
 * is the smallest on the way. STEP.FOLLOW: the target has no such addresses, so that the answer is NODATA.
 */
export function answerAlias(state: AnswerState, name: Spelled, alias: number, type: number): Step {
  const { view, lookup } = state;
  const seed = view.control[CONTROL.HASH_SEED]!;
  let ttl = view.words[alias * UNIT_WORDS + RRSET.TTL]!;
  let base = name;
  let target = state.target;
  let from = alias;
  for (let followed = 0; followed < CHAIN_MAX; followed++) {
    const bytesAt = from * UNIT_BYTES + RRSET.WIRE_BYTE + chosenOffset(state, from) + TARGET_AT;
    spellTarget(target, view.bytes, bytesAt, base, firstSuffix(view, from, lookup.apexLabel), -1, seed);
    const traced = state.trace !== undefined;
    if (traced) traceFollow(state, "alias", target);
    if (isOverridden(state, target)) {
      if (traced) traceRoute(state, target, "override");
    } else {
      if (findZone(view, lookup, target.key, 0) === 0) return resolveTarget(state, target, type, lookup.route);
      noteZone(state, lookup.zone);
      lookUpName(view, lookup, target.key);
      if (traced) {
        traceRoute(state, target, "own");
        traceFound(state, target);
      }
      if (lookup.found === FOUND.CUT) return resolveTarget(state, target, type, ROUTE.DELEGATED);
      if (lookup.found === FOUND.NOTHING) return STEP.FOLLOW;
    }
    const addresses = findAddresses(state, type);
    if (addresses === 0) return STEP.FOLLOW;
    if (traced) traceRRset(state, addresses, target);
    ttl = Math.min(ttl, view.words[addresses * UNIT_WORDS + RRSET.TTL]!);
    if ((view.words[addresses * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === type) {
      return putAddresses(state, addresses, name, ttl) ? STEP.ANSWERED : truncate(state);
    }
    from = addresses;
    base = target;
    target = target === state.target ? state.spare : state.target;
  }
  if (state.trace !== undefined) {
    traceStopped(state, "length");
    traceRoute(state, target, "none");
  }
  return fail(state);
}

/** Where the RR stands whose target is followed: the first of several, unless one is selected. */
function chosenOffset(state: AnswerState, rrset: number): number {
  if (!isSelected(state.view, rrset)) return 0;
  select(state, state.chosen, rrset);
  return chosenPlace(state.view, state.chosen, 0) & 0xffff;
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
function isOverridden({ view, lookup, overrides }: AnswerState, { key }: Spelled): boolean {
  const node = overrides === 0 ? 0 : findOverride(view, overrides, key);
  if (node !== 0) foundOverride(lookup, overrides, node, key);
  return node !== 0;
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

/**
 * The target is not ours. What an ALIAS stands for is our own answer: whether the client wants recursion does not matter.
 * Recursion has to be offered for names that are delegated.
 */
function resolveTarget(state: AnswerState, target: Spelled, type: number, matched: number): Step {
  const { defaultRoute } = state;
  const route = matched === 0 || (matched === ROUTE.DELEGATED && defaultRoute === 0) ? defaultRoute : matched;
  if (state.forwards && route !== 0) {
    const step = lack(state, target.key, type, route);
    if (step === STEP.ANSWERED) state.query.authoritative = false;
    return step;
  }
  if (state.trace !== undefined) traceRoute(state, target, "none");
  return fail(state);
}

/** Nobody resolves the target, or it leads in a circle. */
function fail(state: AnswerState): Step {
  const { query } = state;
  query.rcode = RCODE.SERVFAIL;
  query.extendedError = EDE.NO_REACHABLE_AUTHORITY;
  query.authoritative = false;
  return STEP.ANSWERED;
}
