/**
 * Finding an answer without recursion: from the servers of a zone by referrals down to those that have it (RFC 1034 section
 * 5.3.3), believing each about nothing but its own zone.
 */
import { EDE } from "../dns/codes.ts";
import type { Message } from "../dns/message.ts";
import { isSubdomain, namesEqual } from "../dns/name.ts";
import { type Cut, cutKey, type Kept, type NameServer, nearestCut, serversOf, withGlue } from "./delegation.ts";
import type { ExchangeFault, ExchangeOutcome, Question } from "./exchange.ts";
import {
  ITERATION_MS,
  ITERATION_STEPS_MAX,
  LEARNED_SECONDS_MAX,
  LEARNED_SECONDS_MIN,
  STEP_MS,
} from "./resolver-limits.ts";
import { foldName } from "./resolver-names.ts";
import type { AskServers } from "./resolver-options.ts";
import type { Answer, Reading } from "./response.ts";

export type Iterated =
  | Answer
  | { readonly kind: "failure"; readonly extendedError: number; readonly fault: ExchangeFault | undefined };

/** Asks the servers of a zone one question. */
type AskZone = (
  question: Question,
  onDone: (outcome: ExchangeOutcome) => void,
  isLame: (message: Message) => boolean,
) => () => void;

export type Iteration = {
  readonly question: Question;
  readonly route: number;
  /** The zone to begin with: its servers can be asked, or are to be found. */
  readonly domain: Uint8Array;
  readonly from:
    | { readonly kind: "zone"; readonly ask: AskZone }
    | { readonly kind: "name-servers"; readonly servers: readonly NameServer[] };
  /** What a message of the servers of `domain` says. */
  readonly read: (message: Message, domain: Uint8Array) => Reading;
};

export type IterationTools = {
  readonly askServers: AskServers;
  readonly learned: Kept<Cut>;
  readonly after: (delayMs: number, run: () => void) => () => void;
  readonly nameServerPort: number;
  /** False: this question has caused enough. */
  readonly takeStep: () => boolean;
  /** The addresses of a name server; undefined: this question may cause no further look-up. */
  readonly findAddresses: (
    name: Uint8Array,
    onDone: (addresses: readonly Uint8Array[]) => void,
  ) => (() => void) | undefined;
};

type State = {
  readonly iteration: Iteration;
  readonly tools: IterationTools;
  readonly onDone: (result: Iterated) => void;
  steps: number;
  /** Began at a cut that had been learned before. */
  isShortcut: boolean;
  isDone: boolean;
  cancel: () => void;
  stopTimer: () => void;
};

/** Calls `onDone` once, never before this returns. What is returned ends it without a call. */
export function iterate(iteration: Iteration, tools: IterationTools, onDone: (result: Iterated) => void): () => void {
  const state: State = {
    iteration,
    tools,
    onDone,
    steps: 0,
    isShortcut: false,
    isDone: false,
    cancel: () => {},
    stopTimer: () => {},
  };
  state.stopTimer = tools.after(ITERATION_MS, () => finish(state, failed(EDE.NO_REACHABLE_AUTHORITY, "timeout")));
  const { route, domain, question } = iteration;
  const known = nearestCut(tools.learned, route, domain, question.name, question.type);
  if (known === undefined) begin(state);
  else {
    state.isShortcut = true;
    askCut(state, known);
  }
  return () => {
    state.isDone = true;
    state.cancel();
    state.stopTimer();
  };
}

function failed(extendedError: number, fault?: ExchangeFault): Iterated {
  return { kind: "failure", extendedError, fault };
}

function finish(state: State, result: Iterated): void {
  if (state.isDone) return;
  state.isDone = true;
  state.cancel();
  state.stopTimer();
  state.onDone(result);
}

function begin(state: State): void {
  const { from, domain } = state.iteration;
  if (from.kind === "zone") askZone(state, domain, from.ask);
  else reach(state, domain, from.servers, LEARNED_SECONDS_MIN);
}

function askCut(state: State, { cut, servers }: Cut): void {
  askZone(state, cut, (question, onDone, isLame) => state.tools.askServers(servers, question, STEP_MS, onDone, isLame));
}

function askZone(state: State, domain: Uint8Array, ask: AskZone): void {
  const { question, read } = state.iteration;
  state.steps++;
  if (state.steps > ITERATION_STEPS_MAX || !state.tools.takeStep()) {
    later(state, failed(EDE.OTHER));
    return;
  }
  state.cancel = ask(
    question,
    (outcome) => {
      if (state.isDone) return;
      state.cancel = () => {};
      if (outcome.kind === "fault") giveUp(state, domain, failed(EDE.NO_REACHABLE_AUTHORITY, outcome.fault));
      else follow(state, domain, outcome.message, read(outcome.message, domain));
    },
    (message) => read(message, domain).kind === "failure",
  );
}

function follow(state: State, domain: Uint8Array, message: Message, reading: Reading): void {
  if (reading.kind === "answer") finish(state, reading);
  else if (reading.kind === "failure") giveUp(state, domain, failed(reading.extendedError));
  else {
    const seconds = Math.min(Math.max(reading.ttlSeconds, LEARNED_SECONDS_MIN), LEARNED_SECONDS_MAX);
    reach(state, foldName(reading.cut), withGlue(reading.servers, message, domain), seconds);
  }
}

/** What was learned before may have changed since: once, the way is begun anew from the top. */
function giveUp(state: State, domain: Uint8Array, result: Iterated): void {
  if (!state.isShortcut) {
    finish(state, result);
    return;
  }
  state.isShortcut = false;
  state.tools.learned.remove(cutKey(state.iteration.route, domain));
  begin(state);
}

/** Goes on with the servers of a cut, whose addresses are there or have to be found. */
function reach(state: State, cut: Uint8Array, servers: readonly NameServer[], seconds: number): void {
  const addresses = servers.flatMap((server) => server.addresses);
  if (addresses.length > 0) {
    learn(state, cut, addresses, seconds);
    return;
  }
  // A server inside of the zone that it serves can only be found by glue.
  const names = servers.map(({ name }) => foldName(name)).filter((name) => !isSubdomain(name, cut));
  lookUp(state, cut, names, seconds);
}

function lookUp(state: State, cut: Uint8Array, names: readonly Uint8Array[], seconds: number): void {
  const [name, ...others] = names;
  const found = (addresses: readonly Uint8Array[]): void => {
    if (state.isDone) return;
    state.cancel = () => {};
    if (addresses.length > 0) learn(state, cut, addresses, seconds);
    else lookUp(state, cut, others, seconds);
  };
  const cancel = name === undefined ? undefined : state.tools.findAddresses(name, found);
  if (cancel === undefined) later(state, failed(EDE.NO_REACHABLE_AUTHORITY));
  else state.cancel = cancel;
}

function learn(state: State, cut: Uint8Array, addresses: readonly Uint8Array[], seconds: number): void {
  const { tools, iteration } = state;
  const known: Cut = { cut, servers: serversOf(addresses, tools.nameServerPort) };
  // Our own zone knows its cuts; what it says may change at any moment.
  if (!namesEqual(cut, iteration.domain)) tools.learned.put(cutKey(iteration.route, cut), known, seconds);
  askCut(state, known);
}

/** Nothing is done before `iterate` has returned. */
function later(state: State, result: Iterated): void {
  queueMicrotask(() => finish(state, result));
}
