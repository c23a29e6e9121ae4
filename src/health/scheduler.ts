/**
 * Runs every probe once an interval and keeps what came of it. One thread owns a scheduler: it writes the states and latencies
 * of the shared health words, first of all, and says afterwards what has changed.
 */
import type { Log } from "../base/log.ts";
import { addDue, type Due, type DueQueue, removeDue } from "./due-queue.ts";
import { clearPlace, createHistory, freePlace, type History, noteOutcome, outcomesAt, takePlace } from "./history.ts";
import { failuresAllowed, judge, type Standing, smoothLatency, UNJUDGED } from "./judgement.ts";
import { createLateness, type Lateness, latenessAt, noteLateness } from "./lateness.ts";
import type { KnownState } from "./messages.ts";
import { createPlaces, type Pace, type Places, paceOf } from "./places.ts";
import {
  asksTheSame,
  type ProbeError,
  type ProbeFigures,
  type ProbeOutcome,
  type ProbeSpec,
  type ProbeStatus,
  type Transition,
} from "./probe.ts";
import { hashText, nextDue, phaseOf, phasePoint } from "./schedule.ts";
import {
  COMPLAINT_MS,
  FIRST_RUN_APART_MS,
  FIRST_RUN_MS,
  FRESH_INTERVALS,
  PROBES_MAX,
  RUN_GRACE_MS,
  STALE_INTERVALS,
  STARTS_A_LOOK,
  STARTS_A_TICK,
  STARTS_MS,
  TICK_MS,
  TRANSITIONS_A_MESSAGE,
  WATCH_MS,
} from "./scheduler-limits.ts";
import { readSlot, writeSlot } from "./slot-words.ts";
import { type Remembered, remember } from "./state-text.ts";

/** Time, for the scheduler. */
export type SchedulerClock = {
  /** Milliseconds that only rise. */
  readonly now: () => number;
  /** Milliseconds since 1970; they may jump. */
  readonly wallMs: () => number;
  /** Calls back once, after at least `delayMs`; the result calls it off. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
};

export type SchedulerOptions = {
  readonly clock: SchedulerClock;
  /** The shared health words. */
  readonly words: Int32Array;
  /** Runs one probe; it is expected to settle within the probe's timeout. */
  readonly run: (spec: ProbeSpec) => Promise<ProbeOutcome>;
  /** Tells this node from others, so that not all of them probe in the same moment. */
  readonly seed: number;
  readonly inFlightMax: number;
  /** What is known from before the start, by key; the scheduler takes what it needs and puts back what ends. */
  readonly remembered: Map<string, Remembered>;
  readonly onTransitions: (transitions: readonly Transition[]) => void;
  readonly log: Log;
};

export type Scheduler = {
  /** Begins probes, or changes those whose key is known. Returns the states that are known from before. */
  readonly start: (specs: readonly ProbeSpec[]) => readonly KnownState[];
  readonly stop: (keys: readonly string[]) => void;
  /** What is not started between `begin` and `complete` ends at `complete`. */
  readonly begin: () => void;
  readonly complete: () => void;
  readonly statuses: (keys: readonly string[]) => readonly ProbeStatus[];
  readonly figures: () => ProbeFigures;
  /** What is to be remembered: each probe that has a state, and what it did not take of `remembered`. */
  readonly states: () => Iterable<readonly [key: string, Remembered]>;
  /** Rise with every run that ended, and with every change of a state. */
  readonly done: () => number;
  readonly changes: () => number;
  /** Begins nothing more; what still runs is without consequence. */
  readonly close: () => void;
};

type Run = { readonly probe: Probe; readonly startedMs: number; readonly pace: Pace };

type Probe = Due & {
  spec: ProbeSpec;
  standing: Standing;
  sinceMs: number | undefined;
  checkedMs: number | undefined;
  latencyUs: number;
  /** When its last run ended, or when it began to be probed, on the clock that only rises. */
  aliveMs: number;
  run: Run | undefined;
  pace: Pace;
  /** The next run is one of the first: the phase begins after it. */
  isFirstRun: boolean;
  readonly historyPlace: number;
  /** The last `begin` that it was named after. */
  session: number;
};

type State = SchedulerOptions & {
  readonly probes: Map<string, Probe>;
  readonly queue: DueQueue<Probe>;
  /** Due, and waiting for a place among those of their pace. */
  readonly waiting: { readonly [P in Pace]: Set<Probe> };
  readonly inFlight: Set<Run>;
  readonly places: Places;
  readonly history: History;
  readonly lateness: Lateness;
  /** Of the clock that only rises, when phases were anchored: `wallMs` minus `now` at the start. */
  readonly wallOffsetMs: number;
  nextFirstRunMs: number;
  transitions: Transition[];
  readonly failed: { [E in ProbeError]?: number };
  readonly complaints: Map<string, number>;
  done: number;
  changes: number;
  session: number;
  /** When the next tick is due, Infinity without one. */
  tickMs: number;
  cancelTick: () => void;
  cancelWatch: () => void;
  isClosed: boolean;
};

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { clock } = options;
  const state: State = {
    ...options,
    probes: new Map(),
    queue: [],
    waiting: { quick: new Set(), new: new Set(), slow: new Set() },
    inFlight: new Set(),
    places: createPlaces(options.inFlightMax),
    history: createHistory(),
    lateness: createLateness(),
    wallOffsetMs: Math.round(clock.wallMs() - clock.now()),
    nextFirstRunMs: clock.now(),
    transitions: [],
    failed: {},
    complaints: new Map(),
    done: 0,
    changes: 0,
    session: 0,
    tickMs: Number.POSITIVE_INFINITY,
    cancelTick: () => {},
    cancelWatch: () => {},
    isClosed: false,
  };
  watch(state);
  return {
    start: (specs) => start(state, specs),
    stop: (keys) => {
      for (const key of keys) stop(state, key);
    },
    begin: () => {
      state.session += 1;
    },
    complete: () => {
      for (const [key, { session }] of state.probes) if (session !== state.session) stop(state, key);
    },
    statuses: (keys) => keys.flatMap((key) => statusOf(state, key)),
    figures: () => figuresOf(state),
    states: () => statesOf(state),
    done: () => state.done,
    changes: () => state.changes,
    close: () => {
      state.isClosed = true;
      state.cancelTick();
      state.cancelWatch();
    },
  };
}

function start(state: State, specs: readonly ProbeSpec[]): KnownState[] {
  const known: KnownState[] = [];
  for (const spec of specs) {
    const probe = state.probes.get(spec.key);
    if (probe === undefined && state.probes.size >= PROBES_MAX) {
      complain(state, "many", `more than ${PROBES_MAX} probes are asked for; the others are not run`);
      continue;
    }
    const current = probe === undefined ? add(state, spec) : change(state, probe, spec);
    current.session = state.session;
    const { standing, sinceMs } = current;
    if (sinceMs !== undefined) known.push({ key: spec.key, state: standing.state, sinceMs });
  }
  arm(state);
  return known;
}

function add(state: State, spec: ProbeSpec): Probe {
  const { clock, remembered, words } = state;
  const nowMs = clock.now();
  const before = rememberedOf(state, spec);
  remembered.delete(spec.key);
  const probe: Probe = {
    spec,
    standing: before ?? UNJUDGED,
    sinceMs: before?.sinceMs,
    checkedMs: before?.checkedMs,
    latencyUs: before?.latencyUs ?? 0,
    aliveMs: nowMs,
    run: undefined,
    pace: before?.state === "healthy" ? "quick" : "new",
    isFirstRun: true,
    historyPlace: takePlace(state.history),
    session: state.session,
    dueMs: 0,
    place: -1,
  };
  state.probes.set(spec.key, probe);
  if (before !== undefined) writeSlot(words, spec, before.state, before.latencyUs);
  const ageMs = before === undefined ? Number.POSITIVE_INFINITY : clock.wallMs() - before.checkedMs;
  if (ageMs >= 0 && ageMs < spec.intervalMs * FRESH_INTERVALS) takeTurn(state, probe, nowMs);
  else runSoon(state, probe);
  return probe;
}

/** The shared words are what answers follow, so they go before the file; the file knows the ages. */
function rememberedOf({ clock, words, remembered }: State, spec: ProbeSpec): Remembered | undefined {
  const written = readSlot(words, spec);
  const filed = remembered.get(spec.key);
  if (written === undefined || written.state === filed?.state) return filed;
  const wallMs = clock.wallMs();
  const isHealthy = written.state === "healthy";
  return {
    ...written,
    sinceMs: wallMs,
    checkedMs: wallMs,
    seenMs: wallMs,
    failures: isHealthy ? 0 : spec.failureThreshold,
    successes: isHealthy ? 1 : 0,
  };
}

/** What asks the same keeps its state and history, however often it is asked and judged; what asks another thing begins anew. */
function change(state: State, probe: Probe, spec: ProbeSpec): Probe {
  const before = probe.spec;
  probe.spec = spec;
  if (!asksTheSame(before, spec)) {
    leaveQueues(state, probe);
    probe.run = undefined;
    probe.standing = UNJUDGED;
    probe.sinceMs = undefined;
    probe.checkedMs = undefined;
    probe.latencyUs = 0;
    probe.aliveMs = state.clock.now();
    probe.pace = "new";
    clearPlace(state.history, probe.historyPlace);
    writeSlot(state.words, spec, "unknown", 0);
    runSoon(state, probe);
    return probe;
  }
  // The slot may be another, or the same and begun anew.
  writeSlot(state.words, spec, probe.standing.state, probe.latencyUs);
  if (before.intervalMs === spec.intervalMs) return probe;
  if (probe.run !== undefined) probe.isFirstRun = true;
  else {
    leaveQueues(state, probe);
    takeTurn(state, probe, state.clock.now());
  }
  return probe;
}

/** The next moment of the probe's own phase, which is anchored in the time of day, so that a restart keeps it. */
function takeTurn(state: State, probe: Probe, fromMs: number): void {
  const { key, intervalMs } = probe.spec;
  const phaseMs = phaseOf(key, state.seed, intervalMs) - state.wallOffsetMs;
  probe.isFirstRun = false;
  probe.dueMs = phasePoint(fromMs, phaseMs, intervalMs);
  addDue(state.queue, probe);
}

/** Soon, and not all that are new in the same moment. */
function runSoon(state: State, probe: Probe): void {
  const nowMs = state.clock.now();
  const { key, intervalMs } = probe.spec;
  const spreadMs = hashText(key, state.seed) % Math.min(intervalMs, FIRST_RUN_MS);
  state.nextFirstRunMs = Math.max(state.nextFirstRunMs, nowMs) + FIRST_RUN_APART_MS;
  probe.isFirstRun = true;
  probe.dueMs = Math.max(nowMs + spreadMs, state.nextFirstRunMs);
  addDue(state.queue, probe);
}

function leaveQueues(state: State, probe: Probe): void {
  removeDue(state.queue, probe);
  state.waiting[probe.pace].delete(probe);
}

function stop(state: State, key: string): void {
  const probe = state.probes.get(key);
  if (probe === undefined) return;
  state.probes.delete(key);
  leaveQueues(state, probe);
  // Its outcome will be nobody's.
  probe.run = undefined;
  freePlace(state.history, probe.historyPlace);
  const remembered = toRemember(state, probe);
  if (remembered !== undefined) remember(state.remembered, key, remembered);
}

/** Begins what is due as far as there are places, and sets the timer for what comes next. */
function tick(state: State): void {
  state.tickMs = Number.POSITIVE_INFINITY;
  const { places, waiting, queue } = state;
  const nowMs = state.clock.now();
  let left = STARTS_A_TICK;
  for (const pace of ["new", "slow"] as const) {
    for (const probe of waiting[pace]) {
      if (left === 0 || !places.has(pace)) break;
      waiting[pace].delete(probe);
      begin(state, probe, nowMs);
      left -= 1;
    }
  }
  while (left > 0 && places.has("quick")) {
    const probe = queue[0];
    if (probe === undefined || probe.dueMs > nowMs) break;
    removeDue(queue, probe);
    if (!places.has(probe.pace)) {
      waiting[probe.pace].add(probe);
      continue;
    }
    begin(state, probe, nowMs);
    left -= 1;
    if (left % STARTS_A_LOOK === 0 && state.clock.now() - nowMs > STARTS_MS) break;
  }
  arm(state);
}

/** Sets the timer for the first probe that can begin; where all places are taken, the next one that ends sets it. */
function arm(state: State): void {
  const { places, waiting, queue } = state;
  if (state.isClosed || !places.has("quick")) return;
  const nowMs = state.clock.now();
  const canBegin = (["new", "slow"] as const).some((pace) => waiting[pace].size > 0 && places.has(pace));
  const dueMs = canBegin ? nowMs : (queue[0]?.dueMs ?? Number.POSITIVE_INFINITY);
  const atMs = Math.max(dueMs, nowMs + TICK_MS);
  if (atMs >= state.tickMs) return;
  state.cancelTick();
  state.tickMs = atMs;
  state.cancelTick = state.clock.after(atMs - nowMs, () => tick(state));
}

function begin(state: State, probe: Probe, nowMs: number): void {
  const run: Run = { probe, startedMs: nowMs, pace: probe.pace };
  probe.run = run;
  state.inFlight.add(run);
  state.places.take(run.pace);
  noteLateness(state.lateness, nowMs, nowMs - probe.dueMs);
  state.run(probe.spec).then(
    (outcome) => settle(state, run, outcome),
    (error: unknown) => {
      // A fault of ours says nothing about what is probed.
      complain(state, "failed", `a probe could not be run: ${error instanceof Error ? error.message : String(error)}`);
      settle(state, run, undefined);
    },
  );
}

function settle(state: State, run: Run, outcome: ProbeOutcome | undefined): void {
  if (!state.inFlight.delete(run)) return;
  state.places.free(run.pace);
  const { probe } = run;
  if (state.isClosed) return;
  if (probe.run === run) {
    probe.run = undefined;
    if (outcome !== undefined) note(state, probe, outcome);
    const nowMs = state.clock.now();
    const { intervalMs, timeoutMs } = probe.spec;
    probe.pace = paceOf(nowMs - run.startedMs, timeoutMs);
    // Half an interval at least lies between the first run and the first of the phase.
    if (probe.isFirstRun) takeTurn(state, probe, nowMs + intervalMs / 2);
    else {
      probe.dueMs = nextDue(probe.dueMs, nowMs, intervalMs);
      addDue(state.queue, probe);
    }
  }
  arm(state);
}

/** What comes of a run: the shared words first, because answers follow them. */
function note(state: State, probe: Probe, outcome: ProbeOutcome): void {
  const { clock, words, history } = state;
  const { spec } = probe;
  const isSuccess = outcome.error === undefined;
  const from = probe.standing.state;
  probe.standing = judge(probe.standing, isSuccess, failuresAllowed(outcome.error, spec.failureThreshold));
  const to = probe.standing.state;
  if (isSuccess) probe.latencyUs = smoothLatency(probe.latencyUs, outcome.latencyUs);
  writeSlot(words, spec, to, probe.latencyUs);
  const atMs = clock.wallMs();
  probe.aliveMs = clock.now();
  probe.checkedMs = atMs;
  noteOutcome(history, probe.historyPlace, atMs, outcome);
  state.done += 1;
  if (outcome.error !== undefined) state.failed[outcome.error] = (state.failed[outcome.error] ?? 0) + 1;
  if (from === to) return;
  probe.sinceMs = atMs;
  state.changes += 1;
  if (state.transitions.length === 0) clock.after(0, () => tellTransitions(state));
  state.transitions.push({ key: spec.key, from, to, atMs });
}

function tellTransitions(state: State): void {
  const { transitions } = state;
  state.transitions = [];
  for (let first = 0; first < transitions.length; first += TRANSITIONS_A_MESSAGE) {
    state.onTransitions(transitions.slice(first, first + TRANSITIONS_A_MESSAGE));
  }
}

/** Once a second: gives up runs that did not end in time, and looks for probes that are late. */
function watch(state: State): void {
  state.cancelWatch = state.clock.after(WATCH_MS, () => watch(state));
  const nowMs = state.clock.now();
  for (const run of state.inFlight) {
    const { timeoutMs } = run.probe.spec;
    const tookMs = nowMs - run.startedMs;
    if (tookMs <= timeoutMs + RUN_GRACE_MS) continue;
    settle(state, run, { latencyUs: tookMs * 1_000, error: "read_timeout", detail: "it did not end in time" });
  }
  const stale = countStale(state);
  if (stale > 0) complain(state, "stale", `${stale} of ${state.probes.size} probes are three intervals late`);
}

function countStale(state: State): number {
  const nowMs = state.clock.now();
  let stale = 0;
  for (const probe of state.probes.values()) if (isStale(probe, nowMs)) stale += 1;
  return stale;
}

function isStale({ aliveMs, spec }: Probe, nowMs: number): boolean {
  return nowMs - aliveMs > spec.intervalMs * STALE_INTERVALS;
}

function complain({ complaints, clock, log }: State, about: string, message: string): void {
  const nowMs = clock.now();
  if (nowMs - (complaints.get(about) ?? Number.NEGATIVE_INFINITY) < COMPLAINT_MS) return;
  complaints.set(about, nowMs);
  log("warn", message);
}

function statusOf(state: State, key: string): ProbeStatus[] {
  const probe = state.probes.get(key);
  if (probe === undefined) return [];
  const nowMs = state.clock.now();
  const { spec, standing, sinceMs, checkedMs, latencyUs, run, dueMs, historyPlace } = probe;
  const nextMs = run === undefined ? dueMs : nextDue(dueMs, nowMs, spec.intervalMs);
  return [
    {
      key,
      ...standing,
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(checkedMs === undefined ? {} : { checkedMs }),
      nextMs: Math.round(state.clock.wallMs() + nextMs - nowMs),
      isStale: isStale(probe, nowMs),
      latencyUs,
      history: outcomesAt(state.history, historyPlace),
    },
  ];
}

function figuresOf(state: State): ProbeFigures {
  const probes = { unknown: 0, healthy: 0, unhealthy: 0 };
  for (const { standing } of state.probes.values()) probes[standing.state] += 1;
  const late = (share: number) => latenessAt(state.lateness, state.clock.now(), share);
  return {
    probes,
    stale: countStale(state),
    inFlight: state.inFlight.size,
    done: state.done,
    failed: { ...state.failed },
    latenessMs: { "0.5": late(0.5), "0.99": late(0.99), "1": late(1) },
  };
}

function toRemember({ clock }: State, { standing, sinceMs, checkedMs, latencyUs }: Probe): Remembered | undefined {
  const { state, failures, successes } = standing;
  if (state === "unknown" || sinceMs === undefined || checkedMs === undefined) return undefined;
  return { state, failures, successes, sinceMs, checkedMs, seenMs: Math.round(clock.wallMs()), latencyUs };
}

function* statesOf(state: State): Generator<readonly [string, Remembered]> {
  for (const [key, probe] of state.probes) {
    const remembered = toRemember(state, probe);
    if (remembered !== undefined) yield [key, remembered];
  }
  yield* state.remembered;
}
