/**
 * Which values of a selected RRset an answer has: the unhealthy are dropped, the policy's method chooses among the others, and
 * where a client is to keep its value it draws its own. One pass, live for every query, without an allocation.
 */
import { HEALTH_WORD, latencyUsOf, oneIfUnhealthy } from "../image/health.ts";
import {
  affinityIn,
  METHOD_MASK,
  methodColumnIn,
  preferredIn,
  RRSET,
  SELECTION,
  SELECTION_FLAG,
  selectionAt,
  UNIT_WORDS,
} from "../image/layout.ts";
import { AFFINITY_PREFIX, chooseByClient, networkHash, periodOf } from "./affinity.ts";
import { drawBelow } from "./chance.ts";
import { type Chosen, chooseOnly } from "./chosen.ts";
import { clientRegion, narrowScope } from "./client.ts";
import type { AnswerState } from "./state.ts";
import { traceAffinity, traceChance, traceChosen, traceSelection, traceStep } from "./trace-selection.ts";
import { setTurn, turnAt } from "./turn.ts";

/** Narrows down what is left in `chosen`. `isAffine`: of those that the method chooses from, one is drawn by the client. */
type MethodFunction = (state: AnswerState, chosen: Chosen, isAffine: boolean) => void;

/** By METHOD of layout.ts: all, round-robin, failover, latency, region, geo-failover, weighted. */
const METHODS: readonly MethodFunction[] = [
  rotate,
  rotate,
  takeFirst,
  takeNearest,
  takeInRegion,
  takeInRegion,
  takeByWeight,
];

/** Fills `chosen` from the RRset: one candidate at least. */
export function select(state: AnswerState, chosen: Chosen, rrset: number): void {
  const { words } = state.view;
  const size = words[rrset * UNIT_WORDS + RRSET.SIZE]!;
  const table = selectionAt(rrset, size);
  const meta = words[table + SELECTION.META]!;
  chosen.table = table;
  chosen.meta = meta;
  chosen.total = size & 0xffff;
  if (state.hasManagementView) {
    takeAll(chosen);
    return;
  }
  const failOpen = takeHealthy(state, chosen);
  if (state.trace !== undefined) traceSelection(state, chosen, failOpen);
  METHODS[meta & METHOD_MASK]!(state, chosen, (meta & SELECTION_FLAG.AFFINITY) !== 0 && state.clientLength > 0);
  if ((meta & SELECTION_FLAG.SINGLE) !== 0 && chosen.count > 1) chooseOnly(chosen, chosen.first);
  if (state.trace !== undefined) traceChosen(state, chosen);
}

/** As they stand, and nothing is noted of it. */
function takeAll(chosen: Chosen): void {
  const { indexes, total } = chosen;
  for (let index = 0; index < total; index++) indexes[index] = index;
  chosen.first = 0;
  chosen.count = total;
}

/** Leaves the candidates that are not known to be unhealthy; all where none is. Returns whether it came to that. */
function takeHealthy({ view, health }: AnswerState, chosen: Chosen): boolean {
  const { words } = view;
  const { indexes, total } = chosen;
  let count = 0;
  const slots = chosen.table + SELECTION.HEALTH;
  for (let index = 0; index < total; index++) {
    indexes[count] = index;
    count += 1 - oneIfUnhealthy(health[HEALTH_WORD.VERDICT + words[slots + index]!]!);
  }
  chosen.first = 0;
  chosen.count = count === 0 ? total : count;
  if (count > 0) return false;
  for (let index = 0; index < total; index++) indexes[index] = index;
  return true;
}

/** All that are left, each answer beginning one further on. */
function rotate(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  if (isAffine) {
    drawByClient(state, chosen, false);
    return;
  }
  const at = chosen.table + SELECTION.TURN;
  const turn = turnAt(state, at);
  setTurn(state, at, (turn + 1) | 0);
  chosen.first = (turn & 0x7fff_ffff) % chosen.count;
}

/** 1 for 0, 0 for what is above, without a branch: what differs from query to query is what a processor guesses wrong. */
function oneIfZero(word: number): number {
  return (word - 1) >>> 31;
}

/** They stand in the order of failover. Whoever the client is, the first is meant. */
function takeFirst(state: AnswerState, chosen: Chosen): void {
  chooseOnly(chosen, 0);
  if (state.trace !== undefined) traceStep(state, chosen, "first", 0);
}

function takeInRegion(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  narrowToRegion(state, chosen);
  rotate(state, chosen, isAffine);
}

/** The client's region, then those preferred, in turn: the first that has one decides. Else all that are left stay. */
function narrowToRegion(state: AnswerState, chosen: Chosen): void {
  const { words } = state.view;
  const own = clientRegion(state);
  if (own !== 0 && keepRegion(state, chosen, own, true)) return;
  const first = chosen.table + preferredIn(chosen.meta, chosen.total);
  for (let at = first; at < first + (chosen.meta >>> 16); at++) {
    if (words[at] !== own && keepRegion(state, chosen, words[at]!, false)) return;
  }
  if (state.trace !== undefined) traceStep(state, chosen, "any-region", 0);
}

/** Leaves the candidates of a region; where there are none, all that were left stay. */
function keepRegion(state: AnswerState, chosen: Chosen, region: number, isOwn: boolean): boolean {
  const { words } = state.view;
  const { indexes, count } = chosen;
  const regions = chosen.table + methodColumnIn(chosen.meta, chosen.total);
  const head = indexes[0]!;
  let kept = 0;
  for (let position = 0; position < count; position++) {
    const index = indexes[position]!;
    indexes[kept] = index;
    kept += oneIfZero(words[regions + index]! ^ region);
  }
  // Each was written to the first place then.
  if (kept === 0) indexes[0] = head;
  else chosen.count = kept;
  if (state.trace !== undefined) {
    traceStep(state, chosen, isOwn ? "client-region" : "preferred-region", region, kept);
  }
  return kept > 0;
}

/** One value, in proportion to the weights of those that are left; where all of these are 0, each as likely. */
function takeByWeight(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  const { words } = state.view;
  const { indexes, count } = chosen;
  const weights = chosen.table + methodColumnIn(chosen.meta, chosen.total);
  let sum = 0;
  for (let position = 0; position < count; position++) sum += words[weights + indexes[position]!]!;
  if (isAffine) {
    drawByClient(state, chosen, sum > 0);
    return;
  }
  if (state.trace !== undefined) traceChance(state, chosen, sum);
  if (sum === 0) {
    chooseOnly(chosen, drawBelow(state.chance, count));
    return;
  }
  let left = drawBelow(state.chance, sum);
  let position = 0;
  for (; position < count - 1; position++) {
    left -= words[weights + indexes[position]!]!;
    if (left < 0) break;
  }
  chooseOnly(chosen, position);
}

/** Above every latency that was measured, also one less: what that is for a value that was not measured yet. */
const UNMEASURED = 0x7fff_ffff;

/**
 * The value with the lowest smoothed latency. The one that was answered last stays until another is over 10 % lower, so that
 * two that are equally near do not take turns. Values that were not measured yet stand behind; where none was, all rotate.
 */
function takeNearest(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  const { view, health } = state;
  const { words } = view;
  const { indexes, count, table } = chosen;
  const at = table + SELECTION.TURN;
  const turn = turnAt(state, at);
  let lowest = UNMEASURED;
  let nearest = 0;
  let keptLatency = UNMEASURED;
  let kept = 0;
  // Latencies are one less here, and all ones stand for what holds: which value it is, no processor can guess.
  for (let position = 0; position < count; position++) {
    const index = indexes[position]!;
    const verdict = health[HEALTH_WORD.VERDICT + words[table + SELECTION.HEALTH + index]!]!;
    const latency = (latencyUsOf(verdict) - 1) & UNMEASURED;
    const isLower = (latency - lowest) >> 31;
    lowest += (latency - lowest) & isLower;
    nearest += (position - nearest) & isLower;
    const isLast = -oneIfZero((index + 1) ^ turn);
    keptLatency += (latency - keptLatency) & isLast;
    kept += (position - kept) & isLast;
  }
  if (lowest === UNMEASURED) {
    rotateByChance(state, chosen, isAffine);
    return;
  }
  if (isAffine) {
    keepNear(state, chosen, lowest + 1);
    drawByClient(state, chosen, false);
    return;
  }
  // Never where the one that was answered last is not left, or was not measured.
  const isKept = (lowest + 1) * 10 >= (keptLatency + 1) * 9;
  chooseOnly(chosen, isKept ? kept : nearest);
  const next = indexes[0]! + 1;
  if (next !== turn) setTurn(state, at, next);
  if (state.trace !== undefined) traceStep(state, chosen, isKept ? "kept" : "nearest", 0);
}

/** Leaves the values within 10 % of the lowest. */
function keepNear(state: AnswerState, chosen: Chosen, lowestUs: number): void {
  const { view, health } = state;
  const { indexes, count, table } = chosen;
  let kept = 0;
  for (let position = 0; position < count; position++) {
    const index = indexes[position]!;
    const latencyUs = latencyUsOf(health[HEALTH_WORD.VERDICT + view.words[table + SELECTION.HEALTH + index]!]!);
    if (latencyUs > 0 && latencyUs * 10 <= lowestUs * 11) indexes[kept++] = index;
  }
  chosen.count = kept;
  if (state.trace !== undefined) traceStep(state, chosen, "nearest", 0);
}

/** As `rotate`, without TURN, which has the value that was answered last. */
function rotateByChance(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  if (state.trace !== undefined) traceStep(state, chosen, "unmeasured", 0);
  if (isAffine) drawByClient(state, chosen, false);
  else chosen.first = drawBelow(state.chance, chosen.count);
}

/** Leaves the one value that is the client's. */
function drawByClient(state: AnswerState, chosen: Chosen, byWeight: boolean): void {
  const { view, client, clientAt, clientLength, nowSeconds } = state;
  narrowScope(state, clientLength === 4 ? AFFINITY_PREFIX.V4 : AFFINITY_PREFIX.V6);
  const network = networkHash(client, clientAt, clientLength);
  const periodSeconds = Math.max(1, view.words[chosen.table + affinityIn(chosen.meta, chosen.total)]!);
  const period = periodOf(network, periodSeconds, nowSeconds);
  if (state.trace !== undefined) traceAffinity(state, chosen, network, periodSeconds, period);
  chooseByClient(view.words, chosen, network, period, byWeight);
}
