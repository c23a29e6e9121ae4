/** How fast a server answers, and whether it does (RFC 6298 for the time to wait). Pure, but for the state that is changed. */
import type { ExchangeFault } from "./exchange.ts";
import {
  ALIVE_ASKED_MS,
  ANSWERED_LATELY_MS,
  BACKOFF_FIRST_MS,
  BACKOFF_LAST_MS,
  MEASURED_MS,
  RTO_MAX_MS,
  RTO_MIN_MS,
  SILENCES_MAX,
  UNKNOWN_RTO_MS,
  UNKNOWN_TLS_RTO_MS,
  UNUSABLE_MAX,
} from "./limits.ts";

export type ServerState = {
  readonly unknownRtoMs: number;
  isKnown: boolean;
  smoothedMs: number;
  variationMs: number;
  /** Silences since it last answered, and unusable answers since the last usable one. */
  silences: number;
  unusable: number;
  isFailing: boolean;
  backoffMs: number;
  retryAtMs: number;
  /** Questions that it has now, and whether one of them is there to see how it is. */
  asked: number;
  isMeasured: boolean;
  lastAnswerMs: number;
  /** When it was last asked whether it is there. */
  aliveAskedMs: number;
  lastFault: ExchangeFault;
};

export function createServerState(isSecure: boolean): ServerState {
  return {
    unknownRtoMs: isSecure ? UNKNOWN_TLS_RTO_MS : UNKNOWN_RTO_MS,
    isKnown: false,
    smoothedMs: 0,
    variationMs: 0,
    silences: 0,
    unusable: 0,
    isFailing: false,
    backoffMs: 0,
    retryAtMs: 0,
    asked: 0,
    isMeasured: false,
    lastAnswerMs: 0,
    aliveAskedMs: Number.NEGATIVE_INFINITY,
    lastFault: "timeout",
  };
}

/** An answer took so long, usable or not. */
export function noteAnswer(state: ServerState, rttMs: number, isUsable: boolean, nowMs: number): void {
  if (state.isKnown) {
    state.variationMs += (Math.abs(state.smoothedMs - rttMs) - state.variationMs) / 4;
    state.smoothedMs += (rttMs - state.smoothedMs) / 8;
  } else {
    state.isKnown = true;
    state.smoothedMs = rttMs;
    state.variationMs = rttMs / 2;
  }
  state.silences = 0;
  state.unusable = isUsable ? 0 : state.unusable + 1;
  state.isFailing = false;
  state.backoffMs = 0;
  state.lastAnswerMs = nowMs;
}

/** It said nothing in its time. */
export function noteSilence(state: ServerState, nowMs: number): void {
  state.silences++;
  const isHeard = state.isKnown && nowMs - state.lastAnswerMs < ANSWERED_LATELY_MS;
  if (state.silences >= SILENCES_MAX && !isHeard) noteFault(state, "timeout", nowMs);
}

/** It has said something, whatever it was, of which nothing follows for the time that others take. */
export function noteAlive(state: ServerState, nowMs: number): void {
  if (!state.isKnown) state.smoothedMs = state.unknownRtoMs / 2;
  state.isKnown = true;
  state.silences = 0;
  state.isFailing = false;
  state.backoffMs = 0;
  state.lastAnswerMs = nowMs;
}

/** Whether to ask it for nothing but a sign of life; true once in a while. */
export function takeAliveTurn(state: ServerState, nowMs: number): boolean {
  if (!state.isFailing || state.lastFault !== "timeout" || nowMs - state.aliveAskedMs < ALIVE_ASKED_MS) return false;
  state.aliveAskedMs = nowMs;
  return true;
}

/** It cannot be reached, or what it says is no answer. */
export function noteFault(state: ServerState, fault: ExchangeFault, nowMs: number): void {
  state.lastFault = fault;
  // Of many questions that fail together the first one counts.
  if (state.isFailing && nowMs < state.retryAtMs) return;
  state.isFailing = true;
  state.backoffMs = state.backoffMs === 0 ? BACKOFF_FIRST_MS : Math.min(BACKOFF_LAST_MS, state.backoffMs * 2);
  state.retryAtMs = nowMs + state.backoffMs;
}

/** Milliseconds to wait before another server is asked too; `tries` of this one for the same question went before. */
export function waitMs(state: ServerState, tries: number): number {
  const usualMs = state.isKnown ? state.smoothedMs + 4 * state.variationMs : state.unknownRtoMs;
  return Math.min(RTO_MAX_MS, Math.max(RTO_MIN_MS, usualMs) * 2 ** tries);
}

/** The lower, the sooner it is asked. */
export function rank(state: ServerState): number {
  const failing = state.isFailing ? 1e9 + state.retryAtMs : 0;
  const unusable = state.unusable >= UNUSABLE_MAX ? 1e6 : 0;
  return failing + unusable + (state.isKnown ? state.smoothedMs : state.unknownRtoMs);
}

/** Whether a question should go to it beside the one that is asked, to see how it is. */
export function wantsMeasuring(state: ServerState, nowMs: number): boolean {
  if (state.isMeasured) return false;
  if (state.isFailing) return nowMs >= state.retryAtMs;
  return !state.isKnown || nowMs - state.lastAnswerMs >= MEASURED_MS;
}
