/**
 * Which values of a selected RRset an answer has: the unhealthy are dropped, the policy's method chooses among the others, and
 * where a client is to keep its value it draws its own. One pass, live for every query, without an allocation.
 */
import { HEALTH, HEALTH_WORD } from "../image/health.ts";
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
    const slot = words[slots + index]!;
    const state = health[HEALTH_WORD.STATE + slot]!;
    indexes[count] = index;
    // The words of slot 0, which stands for no probe, hold something else.
    count += 1 - (oneIfZero(state ^ HEALTH.UNHEALTHY) & (1 - oneIfZero(slot)));
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

/** 1 for 0, else 0, without a branch: what differs from query to query is what a processor guesses wrong. */
function oneIfZero(word: number): number {
  return 1 + ((word | -word) >> 31);
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

/** Above every latency that was measured. */
const UNMEASURED = 0x7fff_ffff;

/**
 * The value with the lowest smoothed latency. The one that was answered last stays until another is over 10 % lower, so that
 * two that are equally near do not take turns. Values that were not measured yet stand behind; where none was, all rotate.
 */
function takeNearest(state: AnswerState, chosen: Chosen, isAffine: boolean): void {
  const { indexes, count } = chosen;
  let lowest = UNMEASURED;
  let nearest = 0;
  for (let position = 0; position < count; position++) {
    const latencyUs = latencyOf(state, chosen, indexes[position]!);
    // All ones where it is lower: which of them is, no processor can guess.
    const isLower = (((latencyUs | -oneIfZero(latencyUs)) & UNMEASURED) - lowest) >> 31;
    lowest += (latencyUs - lowest) & isLower;
    nearest += (position - nearest) & isLower;
  }
  if (lowest === UNMEASURED) {
    rotateByChance(state, chosen, isAffine);
    return;
  }
  if (isAffine) {
    keepNear(state, chosen, lowest);
    drawByClient(state, chosen, false);
    return;
  }
  const kept = positionToKeep(state, chosen, lowest);
  chooseOnly(chosen, kept < 0 ? nearest : kept);
  const at = chosen.table + SELECTION.TURN;
  const turn = indexes[0]! + 1;
  if (turnAt(state, at) !== turn) setTurn(state, at, turn);
  if (state.trace !== undefined) traceStep(state, chosen, kept < 0 ? "nearest" : "kept", 0);
}

/** Where the value that was answered last stands among those that are left, if it is near enough; else -1. */
function positionToKeep(state: AnswerState, chosen: Chosen, lowestUs: number): number {
  const last = turnAt(state, chosen.table + SELECTION.TURN) - 1;
  let kept = -1;
  for (let position = 0; position < chosen.count; position++) {
    kept += (position - kept) & -oneIfZero(chosen.indexes[position]! ^ last);
  }
  if (kept < 0) return -1;
  const latencyUs = latencyOf(state, chosen, last);
  return latencyUs > 0 && lowestUs * 10 >= latencyUs * 9 ? kept : -1;
}

/** Leaves the values within 10 % of the lowest. */
function keepNear(state: AnswerState, chosen: Chosen, lowestUs: number): void {
  const { indexes, count } = chosen;
  let kept = 0;
  for (let position = 0; position < count; position++) {
    const index = indexes[position]!;
    const latencyUs = latencyOf(state, chosen, index);
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

/** Smoothed, in microseconds; 0: not measured. */
function latencyOf({ view, health }: AnswerState, chosen: Chosen, index: number): number {
  const slot = view.words[chosen.table + SELECTION.HEALTH + index]!;
  return slot === 0 ? 0 : health[HEALTH_WORD.LATENCY_US + slot]!;
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
