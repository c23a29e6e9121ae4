/**
 * The life of a question, top to bottom: an override answers for its name; else route the name to a zone, look it up there,
 * answer; a CNAME's target begins again with routing.
 */
import { CLASS, FLAG, RCODE, RRTYPE } from "../dns/codes.ts";
import { NODE, RRSET, SELECTED_FLAG, UNIT_BYTES, UNIT_WORDS, ZONE } from "../image/layout.ts";
import { CONTROL } from "../image/shared.ts";
import type { ImageView } from "../image/view.ts";
import { putAdditionals, putChosenAdditionals, putGlue } from "./additional.ts";
import { answerAlias } from "./alias.ts";
import { chooseOnly, chosenPlace, isSelected, putChosen } from "./chosen.ts";
import { isRecursionOffered } from "./client.ts";
import { answerDelegated, answerElsewhere } from "./forwarded.ts";
import { FOUND, findOverride, foundOverride, lookUpName } from "./lookup.ts";
import { firstSuffix, PUT, type Put, putRRset, putWithTail, recordCount } from "./records.ts";
import { findOwnZone, isBelowCut } from "./route.ts";
import { followsCuts } from "./seek.ts";
import { select } from "./select.ts";
import { type Spelled, spelledAt, spellTarget } from "./spelled.ts";
import {
  type AnswerState,
  CHAIN_MAX,
  keepQuery,
  noteOverrides,
  noteZone,
  reach,
  STEP,
  type Step,
  truncate,
} from "./state.ts";
import { traceFollow, traceFound, traceName, traceRoute, traceRRset, traceStopped } from "./trace-names.ts";

const QUESTION_NAME_AT = 12;
const CNAME_TARGET_AT = 12;

/** Answers the question. Returns true where the cache lacks something, which `need` tells then. */
export function answerQuestion(state: AnswerState): boolean {
  const { question } = state.query;
  spelledAt(question, QUESTION_NAME_AT);
  state.zoneCount = 0;
  state.addedCount = 0;
  state.headerFlags = state.defaultRoute !== 0 && isRecursionOffered(state) ? FLAG.RA : 0;
  state.overrides = state.hasManagementView ? 0 : state.view.control[CONTROL.OVERRIDES]!;
  if (state.overrides !== 0) noteOverrides(state);
  let name = question;
  let step = answerName(state, name, state.odd, 0);
  for (let hops = 1; step === STEP.FOLLOW && hops <= CHAIN_MAX; hops++) {
    name = name === state.odd ? state.even : state.odd;
    step = answerName(state, name, name === state.odd ? state.even : state.odd, hops);
  }
  return step === STEP.TAKEN;
}

/** Answers for one name of the chain; where it is a CNAME, `next` becomes its target. */
function answerName(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step {
  const { query, lookup, view } = state;
  const traced = state.trace !== undefined;
  if (traced) traceName(state, name, hops);
  if (state.overrides !== 0) {
    const node = findOverride(view, state.overrides, name.key);
    if (node !== 0 && !isOfTheZone(state, name, node)) return answerOverride(state, name, next, node, hops);
  }
  if (hops === 0 && query.zone !== 0) {
    lookup.zone = query.zone;
    lookup.apexLabel = query.apexLabel;
  } else if (hops === 0 && query.elsewhere >= 0) {
    lookup.zone = 0;
    lookup.route = query.elsewhere;
    lookup.apexLabel = query.apexLabel;
    return answerElsewhere(state, name, next, hops);
  } else if (!findOwnZone(view, lookup, name.key, query.type)) return answerElsewhere(state, name, next, hops);
  noteZone(state, lookup.zone);
  lookUpName(view, lookup, name.key);
  if (traced) {
    traceRoute(state, name, "own", lookup.apexLabel);
    traceFound(state, name);
  }
  if (isBelowCut(lookup, query.type)) {
    const isResolved = followsCuts(state) && query.class === CLASS.IN;
    return isResolved ? answerDelegated(state, name, next, hops) : putReferral(state, name);
  }
  // AA speaks of the first owner (RFC 1034 section 6.2.7); no answer is authoritative for class ANY (RFC 1034 section 6.2.2).
  if (hops === 0) query.authoritative = query.class === CLASS.IN;
  if (lookup.found === FOUND.NOTHING) {
    query.rcode = RCODE.NXDOMAIN;
    return putNegative(state, name);
  }
  return answerNode(state, name, next, hops);
}

/**
 * Whether the question stays the zone's although its apex has an override: SOA, which no override can have, and NS where it has
 * none. Secondaries, update clients and resolvers take a zone that lacks them for none.
 */
function isOfTheZone({ view, lookup, query: { type } }: AnswerState, name: Spelled, override: number): boolean {
  if (type !== RRTYPE.SOA && (type !== RRTYPE.NS || findType(view, override, RRTYPE.NS) !== 0)) return false;
  return findOwnZone(view, lookup, name.key, type) && lookup.apexLabel === 0;
}

/** A name with an override has nothing else, whoever's zone it lies in, but for what `isOfTheZone` leaves to the zone. */
function answerOverride(state: AnswerState, name: Spelled, next: Spelled, node: number, hops: number): Step {
  const { query, lookup, overrides } = state;
  if (hops === 0) query.authoritative = query.class === CLASS.IN;
  foundOverride(lookup, overrides, node, name.key);
  state.isOverridden = true;
  if (state.trace !== undefined) traceRoute(state, name, "override", 0);
  return answerNode(state, name, next, hops);
}

/** Answers from a node that exists, or from the wildcard that stands for it. */
function answerNode(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step {
  const { view, lookup, query } = state;
  const type = query.type;
  let cname = 0;
  let alias = 0;
  let wanted = 0;
  reach(view, lookup.node);
  let rrset = view.words[lookup.node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0) {
    reach(view, rrset);
    const at = rrset * UNIT_WORDS;
    const has = view.words[at + RRSET.TYPE]! & 0xffff;
    if (has === RRTYPE.ALIAS) alias = rrset;
    else if (has === type || type === RRTYPE.ANY) {
      // One RRset is enough of an answer to ANY (RFC 8482 section 4.1).
      wanted = rrset;
      break;
    } else if (has === RRTYPE.CNAME) cname = rrset;
    rrset = view.words[at + RRSET.NEXT]!;
  }
  if (state.trace !== undefined && (wanted !== 0 || cname !== 0 || alias !== 0)) {
    traceRRset(state, wanted !== 0 ? wanted : cname !== 0 ? cname : alias, name);
  }
  if (wanted !== 0) return putAnswer(state, name, wanted, hops);
  if (cname !== 0) return followCname(state, name, next, cname, hops);
  // An ALIAS is no type that could be shown: ANY gets one of those that it stands for.
  const addressType = type === RRTYPE.ANY ? RRTYPE.A : type;
  if (alias !== 0 && (addressType === RRTYPE.A || addressType === RRTYPE.AAAA)) {
    const { zone, apexLabel } = lookup;
    const step = answerAlias(state, name, alias, addressType);
    if (step !== STEP.FOLLOW) return step;
    // The target has no such addresses: the zone of the ALIAS says so.
    lookup.zone = zone;
    lookup.apexLabel = apexLabel;
  }
  return putNegative(state, name);
}

function putAnswer(state: AnswerState, name: Spelled, rrset: number, hops: number): Step {
  const { view, lookup, query } = state;
  const exact = hops === 0 && lookup.found === FOUND.NODE;
  const typeWord = view.words[rrset * UNIT_WORDS + RRSET.TYPE]!;
  if ((typeWord & SELECTED_FLAG) !== 0) return putSelectedAnswer(state, name, rrset, exact);
  // A tail knows nothing of overrides.
  if (exact && state.overrides === 0 && putWithTail(view, query, rrset)) return STEP.ANSWERED;
  const at = query.at;
  const put = putRRset(view, query, rrset, name, 0, lookup.apexLabel, exact);
  if (put === PUT.NO_ROOM) return truncate(state);
  query.answers += recordCount(view, rrset);
  if (recordCount(view, rrset) === 0) return putNegative(state, name);
  const type = typeWord & 0xffff;
  if (type === RRTYPE.MX || type === RRTYPE.SRV || type === RRTYPE.NS) {
    putAdditionals(state, rrset, name, put === PUT.AS_IS ? at - query.start : -1);
  }
  return STEP.ANSWERED;
}

/** As `putAnswer`, of an RRset among whose RRs health or a policy selects. */
function putSelectedAnswer(state: AnswerState, name: Spelled, rrset: number, exact: boolean): Step {
  const { view, query, chosen } = state;
  select(state, chosen, rrset);
  const at = query.at;
  const put = putChosen(view, query, rrset, chosen, name, 0, exact);
  if (put === PUT.NO_ROOM) return truncate(state);
  query.answers += chosen.count;
  const type = view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff;
  if (type === RRTYPE.MX || type === RRTYPE.SRV) {
    putChosenAdditionals(state, chosen, rrset, name, put === PUT.AS_IS ? at - query.start : -1);
  }
  return STEP.ANSWERED;
}

function followCname(state: AnswerState, name: Spelled, next: Spelled, rrset: number, hops: number): Step {
  const { view, lookup, query, chain, chosen } = state;
  const hash = name.key.hashes[0]!;
  for (let index = 0; index < hops; index++) {
    if (chain[index * 2] === rrset && chain[index * 2 + 1] === hash) return stopChain(state, "loop");
  }
  if (hops === CHAIN_MAX) return stopChain(state, "length");
  chain[hops * 2] = rrset;
  chain[hops * 2 + 1] = hash;
  keepQuery(state);
  const at = query.at - query.start;
  const exact = hops === 0 && lookup.found === FOUND.NODE;
  let offset = 0;
  let put: Put;
  if (isSelected(view, rrset)) {
    select(state, chosen, rrset);
    // Two CNAMEs would be two answers (RFC 2181 section 10.1): one is followed whatever the method.
    if (chosen.count > 1) chooseOnly(chosen, chosen.first);
    offset = chosenPlace(view, chosen, 0) & 0xffff;
    put = putChosen(view, query, rrset, chosen, name, 0, exact);
  } else put = putRRset(view, query, rrset, name, 0, lookup.apexLabel, exact);
  if (put === PUT.NO_ROOM) return truncate(state);
  query.answers++;
  const target = rrset * UNIT_BYTES + RRSET.WIRE_BYTE + offset + CNAME_TARGET_AT;
  const targetAt = put === PUT.AS_IS ? at + CNAME_TARGET_AT : -1;
  const suffix = firstSuffix(view, rrset, lookup.apexLabel);
  spellTarget(next, view.bytes, target, name, suffix, targetAt, view.control[CONTROL.HASH_SEED]!);
  if (state.trace !== undefined) traceFollow(state, "cname", next);
  return STEP.FOLLOW;
}

function stopChain(state: AnswerState, why: "loop" | "length"): Step {
  if (state.trace !== undefined) traceStopped(state, why);
  return STEP.ANSWERED;
}

/** NODATA and NXDOMAIN carry the zone's SOA (RFC 2308 section 3). */
function putNegative(state: AnswerState, name: Spelled): Step {
  const { view, lookup, query } = state;
  // An override's name has the SOA of our zone that it lies in; where there is none it is the owner of one made for it.
  const isOverride = lookup.zone === state.overrides;
  if (isOverride && findOwnZone(view, lookup, name.key, query.type)) noteZone(state, lookup.zone);
  else if (isOverride) {
    lookup.zone = state.overrides;
    lookup.apexLabel = 0;
  }
  const soa = view.words[lookup.zone * UNIT_WORDS + ZONE.NEGATIVE_SOA]!;
  const put = putRRset(view, query, soa, name, lookup.apexLabel, lookup.apexLabel, false);
  if (put === PUT.NO_ROOM) return truncate(state);
  query.authorities++;
  return STEP.ANSWERED;
}

/** A referral: the NS RRset of the cut and the addresses below it (RFC 1034 section 4.3.2 step 3b). */
function putReferral(state: AnswerState, name: Spelled): Step {
  const { view, lookup, query } = state;
  const cut = lookup.node;
  const cutLabel = lookup.cutLabel;
  const apexLabel = lookup.apexLabel;
  const rrset = findType(view, cut, RRTYPE.NS);
  // The NS RRset went away since the cut was seen: the zone's sequence tells, and the answer is made again.
  if (rrset === 0) return STEP.ANSWERED;
  const at = query.at;
  const put = putRRset(view, query, rrset, name, cutLabel, apexLabel, false);
  if (put === PUT.NO_ROOM) return truncate(state);
  query.authorities += recordCount(view, rrset);
  if (!putGlue(state, rrset, name, cutLabel, put === PUT.AS_IS ? at - query.start : -1)) {
    query.truncated = true;
  }
  return STEP.ANSWERED;
}

function findType(view: ImageView, node: number, type: number): number {
  let rrset = view.words[node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0) {
    reach(view, rrset);
    if ((view.words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === type) return rrset;
    rrset = view.words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  return 0;
}
