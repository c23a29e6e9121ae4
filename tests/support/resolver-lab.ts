/**
 * The resolver over a network that a test scripts: servers by address, a clock that the test moves, a real cache. Questions
 * go in as text, and what the cache has then comes out as text.
 */
import { ipFromText, ipToText } from "../../src/base/ip.ts";
import { RCODE } from "../../src/dns/codes.ts";
import type { Message } from "../../src/dns/message.ts";
import { isSubdomain, nameToText } from "../../src/dns/name.ts";
import { typeToText } from "../../src/dns/type-names.ts";
import { type CachedAnswer, ENTRY } from "../../src/image/cache.ts";
import { findCached, openCacheView, refreshCache } from "../../src/image/cache-view.ts";
import { createCacheWriter } from "../../src/image/cache-writer.ts";
import { CONTROL, createSharedImage, ROUTE, type SharedImage } from "../../src/image/shared.ts";
import { createAskedOf } from "../../src/resolve/cached-question.ts";
import type { ExchangeFault, ExchangeOutcome, Question } from "../../src/resolve/exchange.ts";
import { createResolver } from "../../src/resolve/resolver.ts";
import type { AskServers, Pool, RunningResolver } from "../../src/resolve/resolver-options.ts";
import type { Delegation, Resolved, Routed } from "../../src/resolve/resolver-types.ts";
import type { CacheSettings, Hardening, Route } from "../../src/resolve/settings.ts";
import { cacheKey, readCached } from "./cached-answers.ts";
import { entryMessage, type ResponseText, recordText, responseTo, typeNumber } from "./response-lab.ts";
import { wireName } from "./scripted-replies.ts";

export type Scripted = ResponseText | ExchangeFault;
/** What a server says, in so many milliseconds where it is slow. "timeout": nothing. */
export type Script = (
  name: string,
  type: string,
  question: Question,
) => Scripted | { readonly afterMs: number; readonly say: Scripted };

export type RouteText = {
  readonly number: number;
  readonly kind: Route["kind"];
  readonly domain: string;
  /** Addresses of servers. */
  readonly upstreams: readonly string[];
  readonly hardening?: Hardening;
};

export type ResolverLab = {
  readonly resolver: RunningResolver;
  /** What was asked: `address name TYPE`, with ` rd` where recursion was. */
  readonly asked: string[];
  readonly servers: Map<string, Script>;
  /** Names that are ours at and below, and blocked ones. */
  readonly own: string[];
  readonly blocked: string[];
  readonly delegations: { readonly cut: string; readonly servers: Readonly<Record<string, readonly string[]>> }[];
  readonly clock: { ms: number };
  readonly closedPools: number[];
  setRoutes(routes: readonly RouteText[], cache?: Partial<CacheSettings>): void;
  /** By the route that the name has, unless told otherwise. */
  resolve(name: string, type?: string, flags?: number, route?: number): Promise<Resolved>;
  /** Lets time pass, and what is due happen. */
  pass(ms: number): Promise<void>;
  /** The entry of a question, expired or not. */
  entry(name: string, type?: string, flags?: number): Omit<CachedAnswer, "routing"> | undefined;
  /** Second until which it is answered although expired. */
  staleUntil(name: string): number | undefined;
  /** Its word. */
  find(name: string, type?: string, flags?: number): number;
  /** `RCODE n; owner TTL TYPE rdata; ... | authorities`; "open" behind where it is. */
  text(name: string, type?: string, flags?: number): string | undefined;
};

export const HARDENING: Hardening = {
  caseRandomization: true,
  cookies: true,
  bailiwick: true,
  rebindingProtection: false,
  rebindingExceptions: [],
  maxUdpSize: 1232,
  minTtl: undefined,
  maxTtl: undefined,
  serveStaleSeconds: 0,
  refuseAny: false,
};

const CACHE: CacheSettings = { isEnabled: true, maxBytes: 2 ** 22, minTtl: 0, maxTtl: 86_400, maxNegativeTtl: 3_600 };
const POOL_MS = 4_500;

export function createResolverLab(): ResolverLab {
  const shared = createSharedImage(77);
  const { clock, after, pass } = createClock();
  const nowSeconds = () => Math.floor(clock.ms / 1_000);
  const cache = createCacheWriter(shared, { nowSeconds });
  const world: World = { servers: new Map(), own: [], blocked: [], delegations: [], routes: [], asked: [], after };
  const closedPools: number[] = [];
  const makePool = ({ number, upstreams }: Route): Pool => {
    const addresses = upstreams.map(({ host }) => host);
    return {
      ask: (question, onDone, isLame) => askInOrder(world, addresses, question, POOL_MS, onDone, isLame),
      figures: () => [],
      close: () => void closedPools.push(number),
    };
  };
  const askServers: AskServers = (servers, question, timeoutMs, onDone, isLame) => {
    const addresses = servers.map(({ address }) => ipToText(address));
    return askInOrder(world, addresses, question, timeoutMs, onDone, isLame);
  };
  const resolver = createResolver({
    cache,
    routeName: (name) => routeName(world, name),
    findDelegation: (name) => delegationOf(world.delegations, name),
    askedOf: createAskedOf(shared, cache),
    makePool,
    askServers,
    routing: () => 5,
    hashSeed: new Int32Array(shared.control)[CONTROL.HASH_SEED]!,
    nowSeconds,
    after,
    nameServerPort: 53,
  });
  return {
    ...world,
    ...createReading(shared),
    resolver,
    clock,
    closedPools,
    pass,
    setRoutes(next, change = {}) {
      world.routes = next;
      resolver.setSettings({ routes: next.map(routeOf), cache: { ...CACHE, ...change }, listens: [] });
    },
    resolve: (name, type = "A", flags = 0, number) =>
      new Promise((resolve) => {
        const wire = wireName(name);
        const routed = routeName(world, wire);
        const route = number ?? (routed.kind === "route" ? routed.number : ROUTE.NONE);
        resolver.resolve({ name: wire, type: typeNumber(type), flags, route }, resolve);
      }),
  };
}

type World = Pick<ResolverLab, "servers" | "own" | "blocked" | "delegations" | "asked"> & {
  readonly after: (delayMs: number, run: () => void) => () => void;
  routes: readonly RouteText[];
};

/** A clock that stands until `pass` moves it. */
function createClock(): Pick<ResolverLab, "clock" | "pass"> & Pick<World, "after"> {
  const clock = { ms: 1_800_000_000_000 };
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();
  return {
    clock,
    after: (delayMs, run) => {
      const timer = { dueMs: clock.ms + delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async pass(ms) {
      const until = clock.ms + ms;
      await settle();
      for (;;) {
        const dueMs = [...timers].reduce((least, timer) => Math.min(least, timer.dueMs), Number.MAX_VALUE);
        if (dueMs > until) break;
        clock.ms = Math.max(clock.ms, dueMs);
        for (const timer of [...timers].filter((each) => each.dueMs === dueMs)) if (timers.delete(timer)) timer.run();
        await settle();
      }
      clock.ms = until;
    },
  };
}

function routeName({ own, blocked, delegations, routes }: World, name: Uint8Array): Routed {
  const isIn = (list: readonly string[]): boolean => list.some((each) => isSubdomain(name, wireName(each)));
  if (isIn(delegations.map(({ cut }) => cut))) return { kind: "route", number: ROUTE.DELEGATED };
  if (isIn(own)) return { kind: "own" };
  if (isIn(blocked)) return { kind: "blocked" };
  const matching = routes.filter(({ domain }) => isSubdomain(name, wireName(domain)));
  const [best] = matching.toSorted((left, right) => right.domain.length - left.domain.length);
  return best === undefined ? { kind: "none" } : { kind: "route", number: best.number };
}

function createReading(shared: SharedImage): Pick<ResolverLab, "find" | "entry" | "text" | "staleUntil"> {
  const view = openCacheView(shared);
  const find = (name: string, type = "A", flags = 0): number => {
    refreshCache(view);
    return findCached(view, cacheKey(shared, name), typeNumber(type), flags);
  };
  const entry = (name: string, type = "A", flags = 0): Omit<CachedAnswer, "routing"> | undefined => {
    const word = find(name, type, flags);
    return word === 0 ? undefined : readCached(view, word);
  };
  return {
    find,
    entry,
    staleUntil(name) {
      const word = find(name);
      return word === 0 ? undefined : view.words[word + ENTRY.STALE_UNTIL];
    },
    text(name, type = "A", flags = 0) {
      const found = entry(name, type, flags);
      return found === undefined ? undefined : entryText(found);
    },
  };
}

function routeOf({ upstreams, domain, hardening, ...rest }: RouteText): Route {
  return {
    ...rest,
    domain: wireName(domain),
    hardening,
    upstreams: upstreams.map((host) => ({ transport: "dns", host, isAddress: true, port: 53, tlsName: undefined })),
  };
}

function delegationOf(delegations: ResolverLab["delegations"], name: Uint8Array): Delegation | undefined {
  const found = delegations.find(({ cut }) => isSubdomain(name, wireName(cut)));
  if (found === undefined) return undefined;
  const servers = Object.entries(found.servers).map(([server, addresses]) => ({
    name: wireName(server),
    addresses: addresses.map((address) => ipFromText(address)!),
  }));
  return { cut: wireName(found.cut), servers };
}

/** One server after the other, until one says something of use: what a pool does, without its sense for time. */
function askInOrder(
  network: World,
  addresses: readonly string[],
  question: Question,
  timeoutMs: number,
  onDone: (outcome: ExchangeOutcome) => void,
  isLame: (message: Message) => boolean,
): () => void {
  let isEnded = false;
  const stops: (() => void)[] = [];
  const end = (outcome: ExchangeOutcome): void => {
    if (isEnded) return;
    isEnded = true;
    for (const stop of stops) stop();
    onDone(outcome);
  };
  stops.push(network.after(timeoutMs, () => end({ kind: "fault", fault: "timeout" })));
  const ask = (index: number): void => {
    const address = addresses[index]!;
    const say = (scripted: Scripted): void => {
      const isLast = index === addresses.length - 1;
      if (isEnded || scripted === "timeout") return;
      if (typeof scripted === "string") {
        if (isLast) end({ kind: "fault", fault: scripted });
        else ask(index + 1);
        return;
      }
      const message = responseTo(nameToText(question.name), typeToText(question.type), scripted);
      const isUseful = (message.rcode === RCODE.NOERROR || message.rcode === RCODE.NXDOMAIN) && !isLame(message);
      if (isUseful || isLast) end({ kind: "answer", message, rttMs: 1, bytes: 100 });
      else ask(index + 1);
    };
    const name = nameToText(question.name);
    network.asked.push(`${address} ${name} ${typeToText(question.type)}${question.recursionDesired ? " rd" : ""}`);
    const said = network.servers.get(address)?.(name, typeToText(question.type), question) ?? "timeout";
    if (typeof said === "object" && "afterMs" in said) stops.push(network.after(said.afterMs, () => say(said.say)));
    else queueMicrotask(() => say(said));
  };
  ask(0);
  return () => {
    isEnded = true;
    for (const stop of stops) stop();
  };
}

function entryText(entry: Omit<CachedAnswer, "routing">): string {
  const result = entryMessage({ ...entry, routing: 0 });
  if (result.kind !== "message") throw new Error(result.reason);
  const { answers, authorities, rcode } = result.message;
  const error = entry.extendedError < 0 ? "" : ` EDE ${entry.extendedError}`;
  const head = `RCODE ${rcode}${error}${entry.isOpen ? " open" : ""}`;
  const told = [head, ...answers.map(recordText)].join("; ");
  return authorities.length === 0 ? told : `${told} | ${authorities.map(recordText).join("; ")}`;
}

/** Lets everything happen that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
