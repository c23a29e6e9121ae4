/**
 * What the control thread says to the health thread, and what it asks. The health thread may be replaced at any moment: one
 * that begins is told everything anew, and a question that nobody answers ends by itself.
 */
import type { FromHealth, HealthPort, KnownState, ToHealth } from "./messages.ts";
import type { ProbeFigures, ProbePolicy, ProbeSpec, ProbeStatus, Transition } from "./probe.ts";

/** Probes in one message, so that neither thread stands still for long. */
export const PROBES_PER_MESSAGE = 1000;
/** How long an answer is waited for. A health thread that is alive answers within milliseconds. */
export const ASK_TIMEOUT_MS = 2000;
/** Questions under way; a further one counts as not answered. */
export const ASKS_MAX = 1000;

export type OutboxOptions = {
  readonly port: HealthPort<ToHealth, FromHealth>;
  /** All that is to be probed at this moment. */
  readonly specs: () => Iterable<ProbeSpec>;
  readonly onTransitions: (transitions: readonly Transition[]) => void;
  readonly onKnown: (states: readonly KnownState[]) => void;
  readonly timeoutMs?: number;
};

export type Outbox = Disposable & {
  /** Begins or changes a probe, or ends one, with the next message. */
  readonly start: (spec: ProbeSpec) => void;
  readonly stop: (key: string) => void;
  readonly setPolicy: (policy: ProbePolicy) => void;
  /** Everything that is stored has been named. */
  readonly complete: () => void;
  /** At most STATUSES_ASKED_MAX keys. Undefined: nobody answers. */
  readonly ask: (keys: readonly string[]) => Promise<readonly ProbeStatus[] | undefined>;
  readonly askFigures: () => Promise<ProbeFigures | undefined>;
};

type Told = readonly ProbeStatus[] | ProbeFigures | undefined;

type State = {
  readonly options: OutboxOptions;
  isComplete: boolean;
  policy: ProbePolicy | undefined;
  readonly starts: Map<string, ProbeSpec>;
  readonly stops: Set<string>;
  next: NodeJS.Immediate | undefined;
  lastId: number;
  readonly asks: Map<number, (told: Told) => void>;
};

/** Begins: what is started up to `complete` is all that there is to probe. */
export function openOutbox(options: OutboxOptions): Outbox {
  const state: State = {
    options,
    isComplete: false,
    policy: undefined,
    starts: new Map(),
    stops: new Set(),
    next: undefined,
    lastId: 0,
    asks: new Map(),
  };
  const { port } = options;
  port.onMessage((message) => hear(state, message));
  port.post({ kind: "begin" });
  return {
    start: (spec) => {
      state.stops.delete(spec.key);
      state.starts.set(spec.key, spec);
      schedule(state);
    },
    stop: (key) => {
      state.starts.delete(key);
      state.stops.add(key);
      schedule(state);
    },
    setPolicy: (policy) => {
      state.policy = policy;
      port.post({ kind: "policy", policy });
    },
    complete: () => {
      state.isComplete = true;
      flush(state);
      port.post({ kind: "complete" });
    },
    ask: async (keys) => {
      const told = await question(state, (id) => ({ kind: "ask", id, keys }));
      return told !== undefined && !("probes" in told) ? told : undefined;
    },
    askFigures: async () => {
      const told = await question(state, (id) => ({ kind: "ask-figures", id }));
      return told !== undefined && "probes" in told ? told : undefined;
    },
    [Symbol.dispose]: () => {
      clearImmediate(state.next);
      giveUp(state);
    },
  };
}

function hear(state: State, message: FromHealth): void {
  switch (message.kind) {
    case "ready":
      giveUp(state);
      tellAll(state);
      break;
    case "known":
      state.options.onKnown(message.states);
      break;
    case "transitions":
      state.options.onTransitions(message.transitions);
      break;
    case "told":
      state.asks.get(message.id)?.(message.statuses);
      break;
    case "told-figures":
      state.asks.get(message.id)?.(message.figures);
      break;
  }
}

/** Whoever was asked is gone. */
function giveUp(state: State): void {
  for (const answer of [...state.asks.values()]) answer(undefined);
}

function tellAll(state: State): void {
  const { port, specs } = state.options;
  state.starts.clear();
  state.stops.clear();
  port.post({ kind: "begin" });
  if (state.policy !== undefined) port.post({ kind: "policy", policy: state.policy });
  sendProbes(state, [...specs()], []);
  if (state.isComplete) port.post({ kind: "complete" });
}

function schedule(state: State): void {
  state.next ??= setImmediate(() => flush(state));
}

function flush(state: State): void {
  clearImmediate(state.next);
  state.next = undefined;
  const starts = [...state.starts.values()];
  const stops = [...state.stops];
  state.starts.clear();
  state.stops.clear();
  sendProbes(state, starts, stops);
}

function sendProbes({ options }: State, starts: readonly ProbeSpec[], stops: readonly string[]): void {
  for (let at = 0; at < Math.max(starts.length, stops.length); at += PROBES_PER_MESSAGE) {
    const start = starts.slice(at, at + PROBES_PER_MESSAGE);
    const stop = stops.slice(at, at + PROBES_PER_MESSAGE);
    options.port.post({ kind: "probes", start, stop });
  }
}

function question(state: State, messageOf: (id: number) => ToHealth): Promise<Told> {
  const { asks, options } = state;
  if (asks.size >= ASKS_MAX) return Promise.resolve(undefined);
  state.lastId += 1;
  const id = state.lastId;
  // It is asked about all that was named before.
  flush(state);
  return new Promise((resolve) => {
    const answer = (told: Told): void => {
      asks.delete(id);
      clearTimeout(timer);
      resolve(told);
    };
    const timer = setTimeout(answer, options.timeoutMs ?? ASK_TIMEOUT_MS, undefined);
    asks.set(id, answer);
    options.port.post(messageOf(id));
  });
}
