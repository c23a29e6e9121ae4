/**
 * Forwarding in the control thread: what the thread that resolves is told of the settings, and what of it others see. The
 * resolving itself is that thread's.
 */
import { networkInterfaces } from "node:os";
import { ipFromText } from "../base/ip.ts";
import type { CacheState, CacheView } from "../commands/cache.ts";
import { followConfig } from "../commands/config-documents.ts";
import { COUNTER, sumCounter } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import { type Address, isWildcard } from "../listen/address.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import { domainWire } from "../model/forward-domain.ts";
import type { IsOwnSocket } from "../model/upstreams.ts";
import type { PublishedRoute } from "../publish/store-routes.ts";
import type { CacheSettings, Hardening, ResolveFigures, ResolveSettings, Route } from "../resolve/settings.ts";
import type { Store } from "../store/store.ts";
import { ROUTES_KEPT_MS } from "./limits.ts";
import type { NodeMetrics } from "./metrics.ts";
import { registerResolve } from "./resolve-metrics.ts";

/** The thread that resolves, whichever runs: one that begins anew is sent the latest settings again. */
export type ResolveEnd = {
  readonly sendSettings: (settings: ResolveSettings) => void;
  /** How many answers went; undefined: nobody says. */
  readonly flush: (name: Uint8Array | undefined, isSubtree: boolean) => Promise<number | undefined>;
  readonly figures: () => Promise<ResolveFigures | undefined>;
};

export type ResolvePlaneOptions = {
  readonly store: Pick<Store, "get" | "onChange">;
  readonly shared: SharedImage;
  readonly resolve: ResolveEnd;
  /** Sockets that this node answers DNS on, with the ports in use. */
  readonly listens: readonly Address[];
  readonly nodeId: string;
  readonly metrics: Pick<NodeMetrics, "registry" | "addText">;
  /** For tests: addresses of this machine. */
  readonly localAddresses?: () => readonly Uint8Array[];
};

export type ResolvePlane = Disposable & {
  /** For the publisher: nothing is sent before it has told the routes for the first time. */
  readonly onRoutes: (routes: readonly PublishedRoute[]) => void;
  readonly isOwnSocket: IsOwnSocket;
  readonly cache: CacheView;
};

export function openResolvePlane(options: ResolvePlaneOptions): ResolvePlane {
  const { store, shared, resolve, listens, nodeId, metrics } = options;
  const cacheSettings = followConfig(store, "cache");
  /** Undefined until the publisher has told them. */
  let current: readonly Route[] | undefined;
  /** Routes that are no more: queries on their way may name them still. */
  let former: readonly Route[] = [];
  let timer: NodeJS.Timeout | undefined;
  const send = () => {
    if (current === undefined) return;
    resolve.sendSettings({
      routes: [...current, ...former],
      cache: cacheOf(cacheSettings().effective),
      listens: listens.map(({ bytes, port }) => ({ address: bytes, port })),
    });
  };
  const onRoutes = (routes: readonly PublishedRoute[]) => {
    const numbers = new Set(routes.map(({ number }) => number));
    former = [...former, ...(current ?? [])].filter(({ number }) => !numbers.has(number));
    current = routes.map(routeOf);
    send();
    clearTimeout(timer);
    if (former.length === 0) return;
    timer = setTimeout(() => {
      former = [];
      send();
    }, ROUTES_KEPT_MS).unref();
  };
  // It hears of a change after `cacheSettings`, which listens since before.
  const end = store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "config" && key[0] === "cache")) send();
  });
  registerResolve(
    { shared, figures: resolve.figures, routes: () => current ?? [], clock: () => performance.now() },
    metrics,
  );
  return {
    onRoutes,
    isOwnSocket: isOwnSocketOf(listens, options.localAddresses ?? localAddresses),
    cache: {
      nodeId,
      read: async () => {
        const figures = await resolve.figures();
        return figures && cacheStateOf(shared, figures);
      },
      flush: resolve.flush,
    },
    [Symbol.dispose]: () => {
      end();
      clearTimeout(timer);
    },
  };
}

function routeOf({ hardening, ...route }: PublishedRoute): Route {
  return { ...route, hardening: hardening && hardeningOf(hardening) };
}

function hardeningOf(settings: ConfigSettings<"hardening">): Hardening {
  return {
    caseRandomization: settings.case_randomization,
    cookies: settings.dns_cookies,
    bailiwick: settings.bailiwick_scrubbing,
    rebindingProtection: settings.rebinding_protection,
    rebindingExceptions: settings.rebinding_exceptions.map(domainWire),
    maxUdpSize: settings.max_udp_size,
    minTtl: settings.min_ttl_seconds ?? undefined,
    maxTtl: settings.max_ttl_seconds ?? undefined,
    serveStaleSeconds: settings.serve_stale ? settings.serve_stale_seconds : 0,
    refuseAny: settings.refuse_any,
  };
}

function cacheOf(settings: ConfigSettings<"cache">): CacheSettings {
  return {
    isEnabled: settings.enabled,
    maxBytes: settings.max_bytes,
    minTtl: settings.min_ttl_seconds,
    maxTtl: settings.max_ttl_seconds,
    maxNegativeTtl: settings.max_negative_ttl_seconds,
  };
}

function cacheStateOf(shared: SharedImage, { cache, flushed }: ResolveFigures): CacheState {
  return {
    entries: cache.entries,
    bytes: cache.bytes,
    capacity_bytes: cache.capacityBytes,
    hits: sumCounter(shared, COUNTER.CACHE_HITS),
    misses: sumCounter(shared, COUNTER.CACHE_MISSES),
    stale: sumCounter(shared, COUNTER.CACHE_STALE),
    insertions: cache.insertions,
    evictions: cache.evictions,
    refreshes: sumCounter(shared, COUNTER.REFRESHES),
    flushed,
  };
}

/** A wildcard stands for every address of its family that this machine has. */
export function isOwnSocketOf(listens: readonly Address[], addresses: () => readonly Uint8Array[]): IsOwnSocket {
  return (address, port) =>
    listens.some((listen) => {
      if (listen.port !== port || listen.bytes.length !== address.length) return false;
      if (!isWildcard(listen.bytes)) return Buffer.compare(listen.bytes, address) === 0;
      return isLoopback(address) || addresses().some((own) => Buffer.compare(own, address) === 0);
    });
}

function isLoopback(address: Uint8Array): boolean {
  if (address.length === 4) return address[0] === 127;
  return address.every((byte, index) => byte === (index === 15 ? 1 : 0));
}

function localAddresses(): readonly Uint8Array[] {
  return Object.values(networkInterfaces()).flatMap(
    (each) => each?.flatMap(({ address }) => ipFromText(address) ?? []) ?? [],
  );
}
