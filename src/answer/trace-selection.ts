/** Tells of a selection. Nothing here runs but for an explanation. */
import { HEALTH_WORD, healthOf, latencyUsOf } from "../image/health.ts";
import { METHOD, METHOD_MASK, methodColumnIn, SELECTION, SELECTION_FLAG } from "../image/layout.ts";
import { periodEnd } from "./affinity.ts";
import { type Chosen, chosenIndex } from "./chosen.ts";
import type { AnswerState } from "./state.ts";
import type { TraceCandidate, TraceEvent } from "./trace.ts";

type SelectionStep = Extract<TraceEvent, { kind: "step" }>["step"];

function leftOf({ indexes, count }: Chosen): number[] {
  return [...indexes.subarray(0, count)];
}

function candidateOf({ view, health }: AnswerState, chosen: Chosen, index: number): TraceCandidate {
  const { table, meta, total } = chosen;
  const slot = view.words[table + SELECTION.HEALTH + index]!;
  const verdict = health[HEALTH_WORD.VERDICT + slot]!;
  const method = meta & METHOD_MASK;
  const word = method < METHOD.REGION ? 0 : view.words[table + methodColumnIn(meta, total) + index]!;
  return {
    slot,
    health: healthOf(verdict),
    latencyUs: latencyUsOf(verdict),
    region: method === METHOD.WEIGHTED ? 0 : word,
    weight: method === METHOD.WEIGHTED ? word : 0,
  };
}

export function traceSelection(state: AnswerState, chosen: Chosen, failOpen: boolean): void {
  const { meta } = chosen;
  state.trace?.({
    kind: "select",
    method: meta & METHOD_MASK,
    hasAffinity: (meta & SELECTION_FLAG.AFFINITY) !== 0,
    isSingle: (meta & SELECTION_FLAG.SINGLE) !== 0,
    candidates: Array.from({ length: chosen.total }, (_, index) => candidateOf(state, chosen, index)),
    failOpen,
    left: leftOf(chosen),
  });
}

/** `kept` of them fitted; where it is 0 the step left all as they were. */
export function traceStep(
  state: AnswerState,
  chosen: Chosen,
  step: SelectionStep,
  region: number,
  kept = chosen.count,
): void {
  state.trace?.({ kind: "step", step, region, left: kept === 0 ? [] : leftOf(chosen) });
}

export function traceChance(state: AnswerState, chosen: Chosen, sum: number): void {
  const left = leftOf(chosen);
  const shares = left.map((index) => {
    return sum === 0 ? 1 / left.length : candidateOf(state, chosen, index).weight / sum;
  });
  state.trace?.({ kind: "chance", left, shares });
}

export function traceAffinity(
  state: AnswerState,
  chosen: Chosen,
  network: number,
  periodSeconds: number,
  period: number,
): void {
  const untilSeconds = periodEnd(network, periodSeconds, period);
  state.trace?.({ kind: "affinity", left: leftOf(chosen), period, periodSeconds, untilSeconds });
}

export function traceChosen(state: AnswerState, chosen: Chosen): void {
  const indexes = Array.from({ length: chosen.count }, (_, position) => chosenIndex(chosen, position));
  state.trace?.({ kind: "chosen", chosen: indexes });
}
