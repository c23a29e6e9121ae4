/**
 * When this node compares itself with whom: at once with a peer that has just connected or whose queue was dropped, with a
 * random one each interval, and before all else its first sync, which a node has that never agreed with another.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { RemoteOptions } from "../store/merge.ts";
import type { Agreements, ReplicaStore } from "../store/replica.ts";
import type { ExchangeOutcome } from "./exchange.ts";
import type { Counters } from "./figures.ts";
import { EXCHANGES_AT_ONCE } from "./limits.ts";
import type { StoreStatus } from "./messages.ts";
import { markMet, type Peer } from "./peer.ts";
import { agreementsWith, currentOf, knownTo, type StatusOf } from "./staleness.ts";

export type ConductorParts = {
  readonly store: Pick<ReplicaStore, "lastAgreementMs" | "agreements" | "setAgreement" | "startOver"> & {
    readonly nodeId: string;
  };
  readonly timers: Timers;
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly intervalMs: number;
  readonly log: Log;
  readonly peers: ReadonlyMap<string, Peer>;
  readonly counters: Counters;
  readonly exchange: (peer: Peer, isFirstSync: boolean) => Promise<ExchangeOutcome>;
  readonly takeEverything: (peer: Peer) => Promise<void>;
  readonly askStatus: (peer: Peer) => Promise<StoreStatus>;
  readonly staleSide: (theirs: StoreStatus, nodeId: string) => "mine" | "theirs" | "none";
  readonly onCompared: (peer: Peer) => void;
  /** The first sync is over. */
  readonly onComplete: () => void;
};

export type Conductor = {
  /** Compares with that peer after so long, or earlier where that was agreed on before. */
  readonly compare: (peer: Peer, delayMs: number) => void;
  /** The roots were found to be equal, whoever asked. */
  readonly agreed: (peer: Peer) => void;
  readonly isComplete: () => boolean;
  /** How what arrives is to be merged now: before the last page of a first sync no zone is whole. */
  readonly merging: () => RemoteOptions;
  /** By node id: up to when this store has all that this node had. */
  readonly agreements: () => Agreements;
  /** From now on complete only after agreement with a peer; nothing changes where this store has agreed with one before. */
  readonly expectFirstSync: () => void;
  /** Of the timers' clock: when the last comparison was complete; the start where there was none. */
  readonly lastExchangeMs: () => number;
  /** Resolves when nothing is under way. */
  readonly stop: () => Promise<void>;
};

type State = {
  phase: "first-sync" | "starting-over" | "complete";
  isSyncing: boolean;
  /** All pages were taken once: what is lacking still, comparing brings. */
  hasPages: boolean;
  readonly running: Set<Promise<void>>;
  lastExchangeMs: number;
  persistedMs: number;
  /** How often a first sync has ended with a difference. */
  fruitless: number;
  agreements: Agreements;
  firstPeerMs: number | undefined;
  isStopped: boolean;
  cancelRun: (() => void) | undefined;
  cancelTick: (() => void) | undefined;
};

const RETRY_MS = 1_000;
const FRUITLESS_MAX_MS = 600_000;
const FIRST_SYNC_PAUSE_MAX_MS = 30_000;
const PERSIST_MS = 60_000;
/** So long a node without data waits for a peer that has been a member before. */
const GRACE_MS = 5_000;

export function createConductor(parts: ConductorParts, isJoining: boolean): Conductor {
  const { timers, store } = parts;
  const state: State = {
    phase: isJoining && store.lastAgreementMs() === 0 ? "first-sync" : "complete",
    isSyncing: false,
    hasPages: false,
    running: new Set(),
    lastExchangeMs: timers.now(),
    persistedMs: store.lastAgreementMs(),
    fruitless: 0,
    agreements: store.agreements(),
    firstPeerMs: undefined,
    isStopped: false,
    cancelRun: undefined,
    cancelTick: undefined,
  };
  const tick = () => {
    state.cancelTick = timers.after(parts.intervalMs * (0.8 + 0.4 * parts.random()), tick);
    const connected = [...parts.peers.values()].filter(isReachable);
    const peer = connected[Math.floor(parts.random() * connected.length)];
    if (peer !== undefined) compare(parts, state, peer, 0);
  };
  state.cancelTick = timers.after(parts.intervalMs * parts.random(), tick);
  return {
    compare: (peer, delayMs) => compare(parts, state, peer, delayMs),
    agreed: (peer) => agreed(parts, state, peer),
    isComplete: () => state.phase === "complete",
    merging: () => mergingOf(state),
    agreements: () => state.agreements,
    expectFirstSync: () => {
      if (store.lastAgreementMs() > 0 || state.phase !== "complete") return;
      state.phase = "first-sync";
      runSoon(parts, state, 0);
    },
    lastExchangeMs: () => state.lastExchangeMs,
    stop: async () => {
      state.isStopped = true;
      state.cancelRun?.();
      state.cancelTick?.();
      await Promise.allSettled(state.running);
    },
  };
}

function mergingOf({ phase, hasPages }: State): RemoteOptions {
  if (phase === "complete") return {};
  return { firstSync: true, ...((phase === "starting-over" || !hasPages) && { partial: true }) };
}

function isReachable({ isAlive, ways }: Peer): boolean {
  return isAlive && ways.length > 0;
}

function compare(parts: ConductorParts, state: State, peer: Peer, delayMs: number): void {
  peer.dueMs = Math.min(peer.dueMs, parts.timers.now() + delayMs);
  runSoon(parts, state, 0);
}

function runSoon(parts: ConductorParts, state: State, delayMs: number): void {
  if (state.isStopped) return;
  state.cancelRun?.();
  state.cancelRun = parts.timers.after(delayMs, () => {
    state.cancelRun = undefined;
    run(parts, state);
  });
}

/** Begins whatever is due, and comes again when the next is. */
function run(parts: ConductorParts, state: State): void {
  if (state.isStopped || state.phase === "starting-over") return;
  if (state.phase === "first-sync") {
    if (!state.isSyncing) keep(state, firstSync(parts, state));
    return;
  }
  const now = parts.timers.now();
  let nextMs = Number.POSITIVE_INFINITY;
  const open = [...parts.peers.values()].filter((peer) => isReachable(peer) && !peer.isExchanging);
  // Who has waited longest, so that all have their turn.
  for (const peer of open.sort((left, right) => left.dueMs - right.dueMs)) {
    const dueMs = Math.max(peer.dueMs, peer.notBeforeMs, peer.comparesUntilMs);
    if (dueMs > now) nextMs = Math.min(nextMs, dueMs);
    else if (state.running.size < EXCHANGES_AT_ONCE) keep(state, compareNow(parts, state, peer));
  }
  if (nextMs < Number.POSITIVE_INFINITY) runSoon(parts, state, nextMs - now);
}

/** Work that settles always. */
function keep({ running }: State, work: Promise<void>): void {
  running.add(work);
  work.finally(() => running.delete(work)).catch(() => undefined);
}

async function compareNow(parts: ConductorParts, state: State, peer: Peer): Promise<void> {
  peer.isExchanging = true;
  peer.dueMs = Number.POSITIVE_INFINITY;
  try {
    const outcome = await parts.exchange(peer, false);
    if (!state.isStopped) await conclude(parts, state, peer, outcome);
  } catch (thrown) {
    parts.counters.failedExchanges++;
    parts.log("debug", "a comparison with a peer has failed", { peer: peer.nodeId, detail: errorText(thrown) });
    later(parts, peer, RETRY_MS);
  } finally {
    peer.isExchanging = false;
    runSoon(parts, state, 0);
  }
}

async function conclude(parts: ConductorParts, state: State, peer: Peer, { kind }: ExchangeOutcome): Promise<void> {
  const { timers } = parts;
  peer.notBeforeMs = timers.now() + RETRY_MS;
  switch (kind) {
    case "agreed":
      agreed(parts, state, peer);
      parts.onCompared(peer);
      break;
    case "differ":
      state.lastExchangeMs = timers.now();
      later(parts, peer, parts.intervalMs);
      peer.notBeforeMs = peer.dueMs;
      parts.log("warn", "this node and a peer differ still after all was exchanged", { peer: peer.nodeId });
      parts.onCompared(peer);
      break;
    case "incomplete":
      // It asks by itself when it has everything.
      peer.dueMs = timers.now() + parts.intervalMs;
      break;
    case "busy":
      peer.dueMs = peer.notBeforeMs;
      break;
    case "stale":
      if (peer.status !== undefined && parts.staleSide(peer.status, peer.nodeId) === "mine")
        await startOver(parts, state, peer);
      else peer.dueMs = timers.now() + parts.intervalMs;
      break;
  }
}

/** Each time twice as long, for who refuses something now does so in a moment too. */
function later({ timers }: ConductorParts, peer: Peer, firstMs: number): void {
  peer.dueMs = timers.now() + Math.min(firstMs * 2 ** peer.fruitless, FRUITLESS_MAX_MS);
  peer.fruitless = Math.min(peer.fruitless + 1, 20);
}

function agreed(parts: ConductorParts, state: State, peer: Peer): void {
  const nowMs = Math.floor(parts.nowMs());
  peer.agreedAtMs = nowMs;
  peer.fruitless = 0;
  peer.comparesUntilMs = 0;
  // What is due already was asked for by someone who did not know.
  peer.dueMs = Number.POSITIVE_INFINITY;
  state.lastExchangeMs = parts.timers.now();
  markMet(peer);
  if (state.phase !== "complete") return;
  const isKnown = Object.hasOwn(state.agreements, peer.nodeId);
  learn(parts, state, peer, nowMs);
  if (isKnown && nowMs - state.persistedMs < PERSIST_MS) return;
  persist(parts, state, nowMs).catch((thrown) => {
    parts.log("error", "that this node agreed with a peer could not be stored", { detail: errorText(thrown) });
  });
}

/** Who has what a peer has, has what it had of others. */
function learn({ store }: ConductorParts, state: State, { nodeId, status }: Peer, nowMs: number): void {
  if (status === undefined) return;
  state.agreements = agreementsWith(state.agreements, store.nodeId, { ...status, nodeId }, nowMs);
}

async function persist({ store }: ConductorParts, state: State, nowMs: number): Promise<void> {
  state.persistedMs = nowMs;
  await store.setAgreement(nowMs, state.agreements);
}

/** What was deleted and collected elsewhere lives here still: all of it goes, and everything is taken anew. */
async function startOver(parts: ConductorParts, state: State, peer: Peer): Promise<void> {
  state.phase = "starting-over";
  parts.log("warn", "this store has not agreed with the cluster for longer than deletions are kept: it begins anew", {
    peer: peer.nodeId,
  });
  for (const each of parts.peers.values()) each.outbox.drop();
  const { nodeId, status } = peer;
  const { store } = parts;
  await store.startOver(status && knownTo({ ...status, nodeId }, store.nodeId, parts.nowMs()));
  state.persistedMs = 0;
  state.agreements = {};
  state.hasPages = false;
  state.phase = "first-sync";
}

async function firstSync(parts: ConductorParts, state: State): Promise<void> {
  state.isSyncing = true;
  try {
    const peer = await sourceOf(parts, state);
    if (peer === undefined) return;
    if (!state.hasPages) await parts.takeEverything(peer);
    state.hasPages = true;
    const { kind } = await parts.exchange(peer, true);
    if (state.isStopped) return;
    if (kind !== "agreed") {
      if (kind === "differ") stillDiffer(parts, state, peer);
      return;
    }
    const nowMs = Math.floor(parts.nowMs());
    learn(parts, state, peer, nowMs);
    await persist(parts, state, nowMs);
    state.phase = "complete";
    state.fruitless = 0;
    agreed(parts, state, peer);
    for (const each of parts.peers.values()) {
      // Until they hear of it they count no acknowledgement of this node; whoever asked it meanwhile left it the next question.
      each.comparesUntilMs = each.notBeforeMs = 0;
      compare(parts, state, each, 0);
    }
    parts.onCompared(peer);
    parts.onComplete();
  } catch (thrown) {
    parts.log("warn", "the first sync begins again", { detail: errorText(thrown) });
  } finally {
    state.isSyncing = false;
    runSoon(parts, state, state.phase === "complete" ? 0 : firstSyncPauseMs(state));
  }
}

/** One of them refuses something: a clock that is off, for instance. */
function stillDiffer({ log }: ConductorParts, state: State, { nodeId }: Peer): void {
  state.fruitless++;
  log("warn", "the first sync is not over: this node and a peer differ still after all was exchanged", {
    peer: nodeId,
  });
}

function firstSyncPauseMs({ fruitless }: State): number {
  return Math.min(FIRST_SYNC_PAUSE_MAX_MS, RETRY_MS * 2 ** Math.min(fruitless, 20));
}

/**
 * A peer that is complete. One that is as new as this node will do only where there is no other: where all that are alive
 * have said so, or none that is complete was found for a while.
 */
async function sourceOf(parts: ConductorParts, state: State): Promise<Peer | undefined> {
  const { timers, random, peers } = parts;
  const alive = [...peers.values()].filter(({ isAlive }) => isAlive);
  const reachable = alive.filter(isReachable);
  if (reachable.length === 0) return undefined;
  state.firstPeerMs ??= timers.now();
  const told: { readonly peer: Peer; readonly status: StatusOf }[] = [];
  await Promise.all(
    reachable.map(async (peer) => {
      // A peer that does not answer is as if it were not connected.
      const status = await parts.askStatus(peer).catch(() => undefined);
      if (status !== undefined) told.push({ peer, status: { ...status, nodeId: peer.nodeId } });
    }),
  );
  // One that was away for long may have what was deleted: it will do only where nobody else is.
  const current = currentOf(told, parts.nowMs());
  const complete = current.filter(({ status }) => status.isComplete);
  const isGrace = timers.now() - state.firstPeerMs < GRACE_MS;
  const others = told.length === alive.length ? told : isGrace ? [] : current;
  const candidates = complete.length > 0 ? complete : others;
  return candidates[Math.floor(random() * candidates.length)]?.peer;
}
