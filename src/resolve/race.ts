/** One question to several servers: the best first, the next where that one says nothing in its time, or nothing of use. */
import { RCODE, RRTYPE } from "../dns/codes.ts";
import type { Message } from "../dns/message.ts";
import { ROOT_NAME } from "../dns/name.ts";
import type { ExchangeFault, ExchangeOutcome, Exchanger, Question, Server } from "./exchange.ts";
import { FAILING_ASKED_MAX, RTO_MAX_MS, TRIES_OF_QUESTION, TRIES_OF_SERVER } from "./limits.ts";
import {
  noteAlive,
  noteAnswer,
  noteFault,
  noteSilence,
  rank,
  type ServerState,
  takeAliveTurn,
  waitMs,
  wantsMeasuring,
} from "./server-state.ts";
import type { Timers } from "./timers.ts";

export type Runner = {
  readonly server: Server;
  readonly state: ServerState;
  readonly tally: Tally | undefined;
};

/** Of one upstream. */
export type Tally = {
  queries: number;
  answers: number;
  timeouts: number;
  networkErrors: number;
  failures: number;
  rejected: number;
  latencySumMs: number;
  readonly latencyCounts: number[];
};

export type RaceOptions = {
  readonly exchanger: Pick<Exchanger, "ask">;
  readonly timers: Timers;
  readonly countLatency: (tally: Tally, ms: number) => void;
};

type Entrant = {
  readonly runner: Runner;
  tries: number;
  /** It has answered or cannot: it is not asked again. */
  isOut: boolean;
};

type Race = {
  readonly options: RaceOptions;
  readonly question: Question;
  readonly deadlineMs: number;
  readonly entrants: readonly Entrant[];
  readonly isLame: (message: Message) => boolean;
  readonly onDone: (outcome: ExchangeOutcome) => void;
  readonly underWay: Set<() => void>;
  stopTimer: () => void;
  sent: number;
  answer: ExchangeOutcome | undefined;
  fault: ExchangeFault;
  isDone: boolean;
};

const nothing = (): void => {};

/** What a server that is there has some answer to, be it a refusal. */
const ALIVE_QUESTION: Question = {
  name: ROOT_NAME,
  type: RRTYPE.NS,
  flags: 0,
  recursionDesired: true,
  hardening: undefined,
};

/** The most telling comes last. */
const FAULTS: readonly ExchangeFault[] = ["closed", "timeout", "network", "garbage", "tls", "loop"];

/** `onDone` is called once, never before this returns. What is returned ends it without a call. */
export function startRace(
  options: RaceOptions,
  runners: readonly Runner[],
  question: Question,
  timeoutMs: number,
  onDone: (outcome: ExchangeOutcome) => void,
  isLame: (message: Message) => boolean,
): () => void {
  const race: Race = {
    options,
    question,
    deadlineMs: options.timers.nowMs() + timeoutMs,
    entrants: inOrder(runners),
    isLame,
    onDone,
    underWay: new Set(),
    stopTimer: nothing,
    sent: 0,
    answer: undefined,
    fault: "closed",
    isDone: false,
  };
  if (advance(race)) measureAnother(race);
  return () => finish(race);
}

function inOrder(runners: readonly Runner[]): readonly Entrant[] {
  const entrants = runners.map((runner) => ({ runner, tries: 0, isOut: false }));
  if (entrants.length < 2) return entrants;
  const ranks = new Map(entrants.map((entrant) => [entrant, rank(entrant.runner.state)]));
  return entrants.sort((left, right) => ranks.get(left)! - ranks.get(right)!);
}

function finish(race: Race): void {
  if (race.isDone) return;
  race.isDone = true;
  race.stopTimer();
  for (const stop of race.underWay) stop();
  race.underWay.clear();
}

function settle(race: Race, outcome: ExchangeOutcome): void {
  if (race.isDone) return;
  finish(race);
  race.onDone(outcome);
}

/** Asks the next one. False: there is none, and with nobody under way that was the end. */
function advance(race: Race): boolean {
  race.stopTimer();
  const entrant = nextOf(race);
  if (entrant !== undefined) {
    run(race, entrant, false);
    return true;
  }
  if (race.underWay.size > 0 && race.answer === undefined) return false;
  const outcome = race.answer ?? ({ kind: "fault", fault: race.fault } as const);
  // Where nobody could be asked at all, `startRace` has not returned yet.
  if (race.sent === 0) queueMicrotask(() => settle(race, outcome));
  else settle(race, outcome);
  return false;
}

/** The one with the fewest tries, of those the first; failing ones behind all tries of the others. */
function nextOf(race: Race): Entrant | undefined {
  if (race.sent >= TRIES_OF_QUESTION || race.options.timers.nowMs() >= race.deadlineMs) return undefined;
  let next: Entrant | undefined;
  for (const entrant of race.entrants) {
    const { state } = entrant.runner;
    if (entrant.isOut || entrant.tries >= TRIES_OF_SERVER) continue;
    // Who was let through asks again in its time, or nobody would find out that the server is back.
    if (state.isFailing && entrant.tries === 0 && state.asked >= FAILING_ASKED_MAX) {
      race.fault = worse(race.fault, state.lastFault);
      askWhetherAlive(race.options, entrant.runner);
      continue;
    }
    if (next === undefined || comesBefore(entrant, next)) next = entrant;
  }
  return next;
}

/**
 * What it does not answer may be all that it is asked just now, because somebody asks for names that nobody answers for:
 * who asks for others must not have to wait until one of them is let through.
 */
function askWhetherAlive({ exchanger, timers }: RaceOptions, { server, state }: Runner): void {
  if (!takeAliveTurn(state, timers.nowMs())) return;
  exchanger.ask(server, ALIVE_QUESTION, RTO_MAX_MS, ({ kind }) => {
    if (kind === "answer") noteAlive(state, timers.nowMs());
  });
}

function comesBefore(left: Entrant, right: Entrant): boolean {
  const isLeftFailing = left.runner.state.isFailing;
  if (isLeftFailing !== right.runner.state.isFailing) return !isLeftFailing;
  return left.tries < right.tries;
}

/** One that is new, failing or long unheard of has a question too, whose answer is as good as the other's. */
function measureAnother(race: Race): void {
  if (race.entrants.length < 2) return;
  const nowMs = race.options.timers.nowMs();
  const other = race.entrants.find((entrant) => entrant.tries === 0 && wantsMeasuring(entrant.runner.state, nowMs));
  // Of servers of which nothing is known the first one is measured by being asked.
  if (other === undefined || !race.entrants.some(({ tries, runner }) => tries > 0 && runner.state.isKnown)) return;
  run(race, other, true);
}

function run(race: Race, entrant: Entrant, isMeasuring: boolean): void {
  const { options, question } = race;
  const { server, state, tally } = entrant.runner;
  const startedMs = options.timers.nowMs();
  const ownWaitMs = waitMs(state, entrant.tries);
  entrant.tries++;
  race.sent++;
  state.asked++;
  if (isMeasuring) state.isMeasured = true;
  if (tally !== undefined) tally.queries++;
  let isSilent = false;
  let isOver = false;
  const noteItsSilence = (): void => {
    if (isSilent || isOver) return;
    isSilent = true;
    noteSilence(state, options.timers.nowMs());
    if (tally !== undefined) tally.timeouts++;
  };
  const leave = (): void => {
    isOver = true;
    state.asked--;
    if (isMeasuring) state.isMeasured = false;
  };
  const leftMs = Math.max(1, race.deadlineMs - startedMs);
  const stopExchange = options.exchanger.ask(
    server,
    question,
    isMeasuring ? Math.min(leftMs, RTO_MAX_MS) : leftMs,
    (outcome) => {
      if (outcome.kind === "fault" && outcome.fault === "timeout") noteItsSilence();
      leave();
      race.underWay.delete(stop);
      take(race, entrant, outcome);
    },
    () => {
      if (tally !== undefined) tally.rejected++;
    },
  );
  const stop = (): void => {
    // What is measured is measured to its end, although nobody waits for it any more.
    if (isMeasuring) return;
    if (options.timers.nowMs() - startedMs >= ownWaitMs) noteItsSilence();
    leave();
    stopExchange();
  };
  race.underWay.add(stop);
  if (isMeasuring) return;
  race.stopTimer = options.timers.after(ownWaitMs, () => {
    noteItsSilence();
    advance(race);
  });
}

function take(race: Race, entrant: Entrant, outcome: ExchangeOutcome): void {
  const { runner } = entrant;
  const { state, tally } = runner;
  const nowMs = race.options.timers.nowMs();
  entrant.isOut = true;
  if (outcome.kind === "answer") {
    const isOfUse = isUsable(outcome.message) && !race.isLame(outcome.message);
    noteAnswer(state, outcome.rttMs, isOfUse, nowMs);
    if (tally !== undefined) {
      tally.answers++;
      if (!isOfUse) tally.failures++;
      race.options.countLatency(tally, outcome.rttMs);
    }
    if (isOfUse) {
      settle(race, outcome);
      return;
    }
    race.answer = outcome;
  } else {
    const { fault } = outcome;
    race.fault = worse(race.fault, fault);
    if (fault === "network" || fault === "tls" || fault === "garbage" || fault === "loop")
      noteFault(state, fault, nowMs);
    if (tally !== undefined && (fault === "network" || fault === "tls")) tally.networkErrors++;
  }
  if (!race.isDone) advanceBehind(race);
}

/** Somebody who was waited for has nothing: the turn of one who was not asked yet; nobody is asked again before his time. */
function advanceBehind(race: Race): void {
  const next = nextOf(race);
  if (race.underWay.size === 0 || next?.tries === 0) advance(race);
}

function worse(left: ExchangeFault, right: ExchangeFault): ExchangeFault {
  return FAULTS.indexOf(right) > FAULTS.indexOf(left) ? right : left;
}

/** YXDOMAIN is what a DNAME makes of a name that becomes too long (RFC 6672 section 2.2). */
function isUsable({ rcode }: Message): boolean {
  return rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN || rcode === RCODE.YXDOMAIN;
}
