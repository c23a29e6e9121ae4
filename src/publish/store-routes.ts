/**
 * Keeps the routes of the image at the forwarders, stub zones and the default forwarder of the store, and the networks that
 * these are for. The number of a route is
 * a hash of all that is configured of it: a changed one is another route, for which no earlier answer counts, and one that a
 * predecessor published has the number that it had, so that the cache stays warm.
 */
import { hash } from "node:crypto";
import { errorText } from "../base/errors.ts";
import { cidrFromText } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { type Upstream, upstreamText } from "../dns/upstream.ts";
import { createNameKey, type NameKey, readNameKey } from "../image/name-key.ts";
import { offerRecursion } from "../image/recursion.ts";
import { CONTROL, FORWARDING, ROUTE } from "../image/shared.ts";
import { namedRoutes, setDefaultRoute, setRoute } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { configReading } from "../model/config-documents.ts";
import type { ConfigName, ConfigSettings } from "../model/config-schemas.ts";
import { domainWire } from "../model/forward-domain.ts";
import type { NaturalKey } from "../model/objects.ts";
import { upstreamsOf } from "../model/upstreams.ts";
import type { ChangeBatch, Store, Stored } from "../store/store.ts";

/** Somewhere that names are resolved, as it is published. */
export type PublishedRoute = {
  readonly number: number;
  readonly kind: "default" | "forwarder" | "stub";
  /** Lower-case wire name; the root's of the default forwarder. */
  readonly domain: Uint8Array;
  readonly upstreams: readonly Upstream[];
  /** Of the default forwarder. */
  readonly hardening: ConfigSettings<"hardening"> | undefined;
};

export type RoutePublisherOptions = {
  readonly store: Pick<Store, "get" | "list">;
  readonly writer: ImageWriter;
  readonly log: Log;
  /** All routes, told before the image names any that was not among them: who resolves must know them first. */
  readonly onRoutes: (routes: readonly PublishedRoute[]) => void;
  /** Called after every change of the image, which leaves something to collect. */
  readonly onChanged: () => void;
};

export type RoutePublisher = {
  /** Puts all routes and networks into the image, and takes out what a predecessor left there beyond them. */
  readonly start: () => void;
  /** One transaction: its routes and networks are in the image when this returns. */
  readonly hear: (batch: ChangeBatch) => void;
  /** They could not be published since they last changed, and names are routed as before. */
  readonly isFailed: () => boolean;
};

type State = {
  readonly options: RoutePublisherOptions;
  /** By domain, as the store spells it; the default forwarder's under DEFAULT. */
  readonly routes: Map<string, PublishedRoute>;
  /** Theirs. */
  readonly numbers: Set<number>;
  readonly key: NameKey;
  isStarted: boolean;
  isFailed: boolean;
};

const PAGE = 1_000;
const ROOT = Uint8Array.of(0);
/** No forwarder or stub zone has this domain. */
const DEFAULT = ".";
const DOCUMENTS: readonly string[] = ["default-forwarder", "hardening"] satisfies readonly ConfigName[];
const RECURSION = "recursion" satisfies ConfigName;

export function openRoutePublisher(options: RoutePublisherOptions): RoutePublisher {
  const state: State = {
    options,
    routes: new Map(),
    numbers: new Set(),
    key: createNameKey(),
    isStarted: false,
    isFailed: false,
  };
  return {
    start: () => {
      state.isStarted = true;
      attempt(state, () => publishAll(state));
    },
    hear: ({ changes }) => {
      if (!state.isStarted) return;
      const domains = new Set<string>();
      const hasNetworks = changes.some(({ kind, key }) => kind === "config" && key[0] === RECURSION);
      for (const { kind, key } of changes) {
        if (kind === "forwarder" || kind === "stub-zone") domains.add(key[0] ?? "");
        if (kind === "config" && DOCUMENTS.includes(key[0] ?? "")) domains.add(DEFAULT);
      }
      if (domains.size === 0 && !hasNetworks) return;
      attempt(state, () => {
        if (state.isFailed) return publishAll(state);
        if (hasNetworks) publishNetworks(state);
        publish(state, domains);
      });
    },
    isFailed: () => state.isFailed,
  };
}

/** What throws leaves the image in doubt: the next change publishes all of it anew. */
function attempt(state: State, run: () => void): void {
  try {
    run();
    state.isFailed = false;
  } catch (error) {
    state.isFailed = true;
    state.options.log("error", `the forwarders cannot be published: ${errorText(error)}`);
  }
  state.options.onChanged();
}

function publishAll(state: State): void {
  const { store, writer, onRoutes } = state.options;
  // Ahead of the routes: nobody is to use one meanwhile whom it is not for.
  publishNetworks(state);
  state.routes.clear();
  state.numbers.clear();
  const domains = new Set([...domainsOf(store, "forwarder"), ...domainsOf(store, "stub-zone"), DEFAULT]);
  for (const domain of domains) replaceRoute(state, domain);
  onRoutes([...state.routes.values()]);
  const left = new Map(namedRoutes(writer).map(({ name, route }) => [textOf(name), { name, route }]));
  for (const { kind, domain, number } of state.routes.values()) {
    if (kind === "default") continue;
    const before = left.get(textOf(domain));
    left.delete(textOf(domain));
    if (before?.route !== number) setRoute(writer, keyOf(state, domain), number);
  }
  for (const { name } of left.values()) setRoute(writer, keyOf(state, name), ROUTE.NONE);
  showDefault(state);
}

/** A text that is no network, which another version may have written, offers nothing to anybody. */
function publishNetworks({ options: { store, writer } }: State): void {
  const networks = settingsOf(store, RECURSION).allow_networks.flatMap((text) => {
    const network = cidrFromText(text);
    return network === undefined || network.hostBitsSet ? [] : [network];
  });
  offerRecursion(writer, networks);
}

function* domainsOf(store: Pick<Store, "list">, kind: "forwarder" | "stub-zone"): Generator<string> {
  let after: NaturalKey | undefined;
  for (;;) {
    const page = store.list(kind, { limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const { body } of page) yield body.domain;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.key;
  }
}

/** Brings the routes of some domains to what the store holds. */
function publish(state: State, domains: ReadonlySet<string>): void {
  const { writer, onRoutes } = state.options;
  const changed = [...domains].filter((domain) => replaceRoute(state, domain));
  if (changed.length === 0) return;
  onRoutes([...state.routes.values()]);
  for (const domain of changed) {
    if (domain === DEFAULT) showDefault(state);
    else setRoute(writer, keyOf(state, domainWire(domain)), state.routes.get(domain)?.number ?? ROUTE.NONE);
  }
}

/** Works out the route of a domain anew. Returns whether it is another one now. */
function replaceRoute(state: State, domain: string): boolean {
  const before = state.routes.get(domain);
  const configured = domain === DEFAULT ? defaultRoute(state.options.store) : routeOf(state.options.store, domain);
  // Out of the way first, so that an unchanged route has its number again.
  state.routes.delete(domain);
  if (before !== undefined) state.numbers.delete(before.number);
  if (configured === undefined) return before !== undefined;
  const number = routeNumber(configured, (number) => state.numbers.has(number));
  state.routes.set(domain, { ...configured, number });
  state.numbers.add(number);
  return before?.number !== number;
}

type ConfiguredRoute = Omit<PublishedRoute, "number">;

function routeOf(store: Pick<Store, "get">, domain: string): ConfiguredRoute | undefined {
  const forwarder = store.get("forwarder", [domain]);
  const stub = store.get("stub-zone", [domain]);
  const name = forwarder === undefined && stub === undefined ? ROOT : domainWire(domain);
  const isStub = stub !== undefined && (forwarder === undefined || isNewerRoute(stub, forwarder));
  if (isStub) return { kind: "stub", domain: name, upstreams: upstreamsOf(stub.body.hints), hardening: undefined };
  if (forwarder === undefined) return undefined;
  return { kind: "forwarder", domain: name, upstreams: upstreamsOf(forwarder.body.upstreams), hardening: undefined };
}

/** A merge may leave a forwarder and a stub zone of one domain: the later one holds, the same on every node. */
export function isNewerRoute(one: Pick<Stored, "stamp">, other: Pick<Stored, "stamp">): boolean {
  return one.stamp > other.stamp;
}

function defaultRoute(store: Pick<Store, "get">): ConfiguredRoute | undefined {
  const { enabled, upstreams } = settingsOf(store, "default-forwarder");
  if (!enabled) return undefined;
  return {
    kind: "default",
    domain: ROOT,
    upstreams: upstreamsOf(upstreams),
    hardening: settingsOf(store, "hardening"),
  };
}

function settingsOf<Name extends ConfigName>(store: Pick<Store, "get">, name: Name): ConfigSettings<Name> {
  return configReading(name, store.get("config", [name])?.body.settings ?? {}).effective;
}

/** One of 2^31 numbers, and another one where two routes would have the same. */
export function routeNumber(
  { kind, domain, upstreams, hardening }: ConfiguredRoute,
  isTaken: (number: number) => boolean,
): number {
  const text = JSON.stringify([kind, textOf(domain), upstreams.map(upstreamText), hardening ?? null]);
  for (let round = 0; ; round++) {
    const number = hash("sha256", `${round} ${text}`, "buffer").readUInt32BE() >>> 1;
    if (number >= ROUTE.FIRST && !isTaken(number)) return number;
  }
}

function showDefault({ options: { writer }, routes }: State): void {
  const { control } = writer.view;
  const route = routes.get(DEFAULT);
  const number = route?.number ?? ROUTE.NONE;
  const forwarding = route?.hardening?.refuse_any === true ? FORWARDING.REFUSE_ANY : 0;
  if (control[CONTROL.DEFAULT_ROUTE] === number && control[CONTROL.FORWARDING] === forwarding) return;
  setDefaultRoute(writer, number, forwarding);
}

function keyOf({ key, options: { writer } }: State, name: Uint8Array): NameKey {
  readNameKey(key, name, 0, name.length, writer.view.control[CONTROL.HASH_SEED]!);
  return key;
}

const textOf = (name: Uint8Array): string => Buffer.from(name).toString("latin1");
