/**
 * The resolver: from a question that the cache cannot answer to an entry of the cache. One question is asked once however many
 * wait for it; what an upstream says is read (response.ts), laid as the cache has it (entry.ts), and put there before anybody is told.
 */
import { EDE, RCODE } from "../dns/codes.ts";
import type { Message } from "../dns/message.ts";
import { isSubdomain, namesEqual } from "../dns/name.ts";
import { createNameKey, readNameKey } from "../image/name-key.ts";
import { ROUTE } from "../image/shared.ts";
import { type Cut, createKept } from "./delegation.ts";
import { encodeEntry } from "./entry.ts";
import type { ExchangeFault, Question } from "./exchange.ts";
import { createCounts, joinUpstreams } from "./figures.ts";
import { type Budget, board, createFlights, type Flight, land, tellWaiters, type Waiter } from "./in-flight.ts";
import { findNameServer } from "./name-servers.ts";
import * as limits from "./resolver-limits.ts";
import type { Pool, ResolverOptions, RunningResolver } from "./resolver-options.ts";
import type { Asked, Resolved } from "./resolver-types.ts";
import { type Answer, isLame, type Reading, type ReadRules, readResponse } from "./response.ts";
import type { CacheSettings, ResolveFigures, ResolveSettings, Route } from "./settings.ts";
import { type Iterated, iterate } from "./stub.ts";

type LiveRoute = {
  readonly route: Route;
  readonly pool: Pool;
  /** Questions that are with the pool. */
  users: number;
  isGone: boolean;
};

type State = {
  readonly options: ResolverOptions;
  readonly flights: ReturnType<typeof createFlights>;
  readonly counts: ReturnType<typeof createCounts>;
  readonly routes: Map<number, LiveRoute>;
  readonly learned: ReturnType<typeof createKept<Cut>>;
  readonly nameServers: ReturnType<typeof createKept<readonly Uint8Array[]>>;
  /** Scratch. */
  readonly key: ReturnType<typeof createNameKey>;
  cache: CacheSettings;
  cacheBytes: number;
  isClosed: boolean;
};

/** How a question is resolved: what is asked, and whose answers are believed. */
type Way = { readonly route: Route | undefined; readonly isRecursive: boolean };

const FLIGHT_LIMITS = {
  flights: limits.IN_FLIGHT_MAX,
  waiting: limits.WAITING_MAX,
  waitingEach: limits.WAITING_EACH_MAX,
};
const NO_CACHE: CacheSettings = { isEnabled: false, maxBytes: 0, minTtl: 0, maxTtl: 0, maxNegativeTtl: 0 };

/** Resolves nothing but what lies below zone cuts of ours until it has settings. */
export function createResolver(options: ResolverOptions): RunningResolver {
  const state: State = {
    options,
    flights: createFlights(),
    counts: createCounts(),
    routes: new Map(),
    learned: createKept(limits.LEARNED_MAX, options.nowSeconds),
    nameServers: createKept(limits.LEARNED_MAX, options.nowSeconds),
    key: createNameKey(),
    cache: NO_CACHE,
    cacheBytes: 0,
    isClosed: false,
  };
  return {
    resolve: (asked, onDone) => fly(state, asked, onDone, createBudget()),
    refresh: (entry) => refresh(state, entry),
    setSettings: (settings) => setSettings(state, settings),
    flush: (name, isSubtree) => flush(state, name, isSubtree),
    figures: () => figuresOf(state),
    close: () => close(state),
  };
}

function fly(state: State, asked: Asked, waiter: Waiter | undefined, budget: Budget, parent?: Flight): void {
  const boarding = state.isClosed
    ? ({ kind: "refused", why: "closed" } as const)
    : board(state.flights, FLIGHT_LIMITS, asked, waiter, budget, parent);
  if (boarding.kind === "refused") {
    if (boarding.why === "full") state.counts.refusedFull++;
    const isStale = boarding.why === "full" && useStale(state, asked);
    const resolved: Resolved = isStale ? { kind: "stored" } : { kind: "failed", extendedError: EDE.OTHER };
    queueMicrotask(() => waiter?.(resolved, undefined));
    return;
  }
  watchStale(state, boarding.flight);
  if (boarding.kind === "new") begin(state, boarding.flight);
}

function createBudget(): Budget {
  return { lookups: limits.NAME_SERVER_LOOKUPS_MAX, steps: limits.ITERATION_STEPS_ALL };
}

/** Whether one more server may be asked on account of a question. */
function takeStep(budget: Budget): boolean {
  budget.steps--;
  return budget.steps >= 0;
}

function refresh(state: State, entry: number): void {
  const { flights, options } = state;
  if (flights.byKey.size >= limits.IN_FLIGHT_MAX * limits.REFRESH_SHARE) return;
  const asked = options.askedOf(entry);
  if (asked !== undefined) fly(state, asked, undefined, createBudget());
}

function begin(state: State, flight: Flight): void {
  const { asked } = flight;
  if (asked.route === ROUTE.DELEGATED) {
    const delegation = state.options.findDelegation(asked.name);
    if (delegation === undefined) failLater(state, flight, EDE.OTHER);
    else
      goDown(state, flight, undefined, delegation.cut, { kind: "name-servers", servers: delegation.servers }, () => {});
    return;
  }
  const live = state.routes.get(asked.route);
  if (live === undefined) {
    failLater(state, flight, EDE.OTHER);
    return;
  }
  live.users++;
  const leave = (): void => {
    live.users--;
    closeGone(live);
  };
  if (live.route.kind === "stub")
    goDown(state, flight, live.route, live.route.domain, { kind: "zone", ask: live.pool.ask }, leave);
  else forward(state, flight, live, leave);
}

function questionOf({ name, type, flags }: Asked, way: Way): Question {
  return { name, type, flags, recursionDesired: way.isRecursive, hardening: way.route?.hardening };
}

function forward(state: State, flight: Flight, { route, pool }: LiveRoute, leave: () => void): void {
  const way: Way = { route, isRecursive: true };
  const rules = rulesOf(state, flight.asked, way, route.domain);
  flight.cancel = pool.ask(
    questionOf(flight.asked, way),
    (outcome) => {
      leave();
      if (outcome.kind === "fault") failBy(state, flight, outcome.fault, errorOf(outcome.fault));
      else {
        // Taken before the names are routed: what changes meanwhile is seen by whoever answers.
        const routing = state.options.routing();
        const reading = readResponse(outcome.message, rules);
        if (reading.kind === "answer") conclude(state, flight, reading, routing);
        else fail(state, flight, reading.kind === "failure" ? reading.extendedError : EDE.NOT_AUTHORITATIVE);
      }
    },
    (message) => isLame(message, rules),
  );
}

function goDown(
  state: State,
  flight: Flight,
  route: Route | undefined,
  domain: Uint8Array,
  from: Parameters<typeof iterate>[0]["from"],
  leave: () => void,
): void {
  const { options, learned } = state;
  const { asked } = flight;
  const way: Way = { route, isRecursive: false };
  let routing = 0;
  const read = (message: Message, zone: Uint8Array): Reading => {
    routing = options.routing();
    return readResponse(message, rulesOf(state, asked, way, zone));
  };
  const onDone = (result: Iterated): void => {
    leave();
    if (result.kind === "answer") conclude(state, flight, result, routing);
    else failBy(state, flight, result.fault, result.fault === undefined ? result.extendedError : errorOf(result.fault));
  };
  flight.cancel = iterate(
    { question: questionOf(asked, way), route: asked.route, domain, from, read },
    {
      askServers: options.askServers,
      learned,
      after: options.after,
      takeStep: () => takeStep(flight.budget),
      nameServerPort: options.nameServerPort,
      findAddresses: (name, onFound) =>
        findNameServer(
          name,
          flight.budget,
          {
            known: state.nameServers,
            ask: (wanted, type, onAnswer) => askInside(state, flight, wanted, type, onAnswer),
          },
          onFound,
        ),
    },
    onDone,
  );
}

/** Asks what a question needs to know on its way. */
function askInside(
  state: State,
  parent: Flight,
  name: Uint8Array,
  type: number,
  onAnswer: (answer: Answer | undefined) => void,
): void {
  const routed = state.options.routeName(name, type);
  if (routed.kind !== "route" || !takeStep(parent.budget)) queueMicrotask(() => onAnswer(undefined));
  else
    fly(state, { name, type, flags: 0, route: routed.number }, (_, answer) => onAnswer(answer), parent.budget, parent);
}

function rulesOf({ options, cache }: State, asked: Asked, { route, isRecursive }: Way, domain: Uint8Array): ReadRules {
  const hardening = route?.hardening;
  return {
    name: asked.name,
    type: asked.type,
    flags: asked.flags,
    domain,
    isRecursive,
    isElsewhere: (target) => {
      const routed = options.routeName(target, asked.type);
      return routed.kind !== "route" || routed.number !== asked.route;
    },
    isScrubbing: hardening?.bailiwick ?? true,
    rebindingExceptions: hardening?.rebindingProtection === true ? hardening.rebindingExceptions : undefined,
    minTtl: hardening?.minTtl ?? cache.minTtl,
    maxTtl: hardening?.maxTtl ?? cache.maxTtl,
    maxNegativeTtl: cache.maxNegativeTtl,
  };
}

/** Puts an answer into the cache and tells those who wait. */
function conclude(state: State, flight: Flight, answer: Answer, routing: number): void {
  const { options, counts } = state;
  const storedSeconds = options.nowSeconds();
  const lasting = state.cache.isEnabled && !flight.isOutdated ? answer.ttlSeconds : 0;
  const expiresSeconds = storedSeconds + lasting;
  const keptSeconds = lasting > 0 ? staleSeconds(state, flight.asked) : 0;
  const entry = encodeEntry(flight.asked, answer, {
    routing,
    storedSeconds,
    expiresSeconds,
    keptUntilSeconds: expiresSeconds + keptSeconds,
  });
  counts.scrubbedRecords += answer.scrubbed;
  counts.rebindingRecords += answer.rebinding;
  if (entry === undefined || !options.cache.put(entry)) {
    fail(state, flight, EDE.OTHER);
    return;
  }
  counts.resolved++;
  land(state.flights, flight);
  tellWaiters(state.flights, flight, { kind: "stored" }, answer);
}

function failLater(state: State, flight: Flight, extendedError: number): void {
  queueMicrotask(() => {
    if (state.flights.byKey.get(flight.key) === flight) fail(state, flight, extendedError);
  });
}

function failBy(state: State, flight: Flight, fault: ExchangeFault | undefined, extendedError: number): void {
  if (fault === "loop") state.counts.loops++;
  fail(state, flight, extendedError);
}

function errorOf(fault: ExchangeFault): number {
  switch (fault) {
    case "timeout":
    case "garbage":
      return EDE.NO_REACHABLE_AUTHORITY;
    case "network":
    case "tls":
      return EDE.NETWORK_ERROR;
    case "loop":
    case "closed":
      return EDE.OTHER;
  }
}

/** Tells those who wait of a failure, which is answered for a moment without asking again, or of an answer that was one once. */
function fail(state: State, flight: Flight, extendedError: number): void {
  const { flights, options, counts } = state;
  counts.failed++;
  land(flights, flight);
  if (useStale(state, flight.asked)) {
    tellWaiters(flights, flight, { kind: "stored" }, undefined);
    return;
  }
  // What is there may still be an answer.
  if (flight.waiters.length === 0) return;
  const storedSeconds = options.nowSeconds();
  const expiresSeconds = storedSeconds + (state.cache.isEnabled && !flight.isOutdated ? limits.FAILURE_SECONDS : 0);
  const terms = { routing: options.routing(), storedSeconds, expiresSeconds, keptUntilSeconds: expiresSeconds };
  const content = { answers: [], authorities: [], followed: [], isOpen: false };
  const entry = encodeEntry(flight.asked, { ...content, rcode: RCODE.SERVFAIL, extendedError }, terms);
  const isStored = entry !== undefined && options.cache.put(entry);
  tellWaiters(flights, flight, isStored ? { kind: "stored" } : { kind: "failed", extendedError }, undefined);
}

function staleSeconds({ routes }: State, { route }: Asked): number {
  return routes.get(route)?.route.hardening?.serveStaleSeconds ?? 0;
}

/** The entry of the question by this route, expired or not; 0 for none. */
function findEntry({ options, key }: State, asked: Asked): number {
  if (readNameKey(key, asked.name, 0, asked.name.length, options.hashSeed) < 0) return 0;
  const entry = options.cache.find(key, asked.type, asked.flags);
  return entry !== 0 && options.askedOf(entry)?.route === asked.route ? entry : 0;
}

/** True where an expired answer is given now, and for a while. */
function useStale(state: State, asked: Asked): boolean {
  if (staleSeconds(state, asked) === 0) return false;
  const entry = findEntry(state, asked);
  return entry !== 0 && state.options.cache.useStale(entry, state.options.nowSeconds() + limits.STALE_SECONDS);
}

/** Whoever waits too long is given an expired answer, where there is one; the question is resolved all the same. */
function watchStale(state: State, flight: Flight): void {
  const { asked } = flight;
  if (flight.stopStaleTimer !== undefined || flight.waiters.length === 0 || staleSeconds(state, asked) === 0) return;
  if (findEntry(state, asked) === 0) return;
  flight.stopStaleTimer = state.options.after(limits.STALE_AFTER_MS, () => {
    flight.stopStaleTimer = undefined;
    if (useStale(state, asked)) tellWaiters(state.flights, flight, { kind: "stored" }, undefined);
  });
}

function setSettings(state: State, { routes, cache }: ResolveSettings): void {
  const numbers = new Set(routes.map(({ number }) => number));
  for (const [number, live] of state.routes) {
    if (numbers.has(number)) continue;
    live.isGone = true;
    state.routes.delete(number);
    closeGone(live);
  }
  for (const route of routes) {
    if (state.routes.has(route.number)) continue;
    state.routes.set(route.number, { route, pool: state.options.makePool(route), users: 0, isGone: false });
  }
  const wanted = cache.isEnabled ? cache.maxBytes - (cache.maxBytes % limits.CACHE_STEP_BYTES) : limits.CACHE_OFF_BYTES;
  const bytes = Math.min(Math.max(wanted, limits.CACHE_BYTES_MIN), limits.CACHE_BYTES_MAX);
  if (bytes !== state.cacheBytes) state.options.cache.resize(bytes);
  else if (state.cache.isEnabled && !cache.isEnabled) flush(state, undefined, true);
  state.cacheBytes = bytes;
  state.cache = cache;
}

/** What is asked of servers that are no upstreams any more is asked to its end. */
function closeGone(live: LiveRoute): void {
  if (live.isGone && live.users === 0) live.pool.close();
}

function flush(state: State, name: Uint8Array | undefined, isSubtree: boolean): number {
  const { options, key, flights, learned, nameServers } = state;
  const isMeant = (other: Uint8Array): boolean =>
    name === undefined || (isSubtree ? isSubdomain(other, name) : namesEqual(other, name));
  for (const flight of flights.byKey.values()) if (isMeant(flight.asked.name)) flight.isOutdated = true;
  learned.removeWhere(({ cut }) => isMeant(cut));
  nameServers.removeWhere(() => true);
  let entries = 0;
  if (name === undefined) entries = options.cache.flush();
  else if (readNameKey(key, name, 0, name.length, options.hashSeed) >= 0)
    entries = options.cache.flush({ name: key, isSubtree });
  state.counts.flushed += entries;
  return entries;
}

function figuresOf({ options, flights, counts, routes }: State): ResolveFigures {
  return {
    upstreams: joinUpstreams([...routes.values()].flatMap(({ pool }) => pool.figures())),
    cache: options.cache.figures(),
    inFlight: flights.byKey.size,
    waiting: flights.waiting,
    ...counts,
  };
}

function close(state: State): void {
  state.isClosed = true;
  for (const flight of [...state.flights.byKey.values()]) {
    flight.cancel();
    land(state.flights, flight);
    tellWaiters(state.flights, flight, { kind: "failed", extendedError: EDE.OTHER }, undefined);
  }
  for (const live of state.routes.values()) live.pool.close();
  state.routes.clear();
}
