/** What the thread that resolves is told by `control`: all of it at once, whenever something of it changes. */
import type { Upstream } from "../dns/upstream.ts";

/** How answers of the default forwarder are held against what a liar or an attacker beside the path could say. */
export type Hardening = {
  /** Letters of the question's name in random case, which the answer must repeat. */
  readonly caseRandomization: boolean;
  /** DNS cookies (RFC 7873). */
  readonly cookies: boolean;
  /** What the question did not ask for is left out. Without it the whole answer section is passed on. */
  readonly bailiwick: boolean;
  /** Addresses of private networks are left out, but for names at and below `rebindingExceptions`. */
  readonly rebindingProtection: boolean;
  /** Lower-case wire names. */
  readonly rebindingExceptions: readonly Uint8Array[];
  /** EDNS UDP size told to upstreams. */
  readonly maxUdpSize: number;
  /** Seconds; undefined: as the cache has it. */
  readonly minTtl: number | undefined;
  readonly maxTtl: number | undefined;
  /** Expired answers are given where no upstream answers (RFC 8767), for so long after they expired; 0: never. */
  readonly serveStaleSeconds: number;
  readonly refuseAny: boolean;
};

/** Somewhere that names are resolved. */
export type Route = {
  /** As the image has it; another one whenever anything of the route changes. */
  readonly number: number;
  readonly kind: "default" | "forwarder" | "stub";
  /** Lower-case wire name; the root's of the default forwarder. */
  readonly domain: Uint8Array;
  /** Asked with recursion; hints of a stub zone without. */
  readonly upstreams: readonly Upstream[];
  /** Of the default forwarder. */
  readonly hardening: Hardening | undefined;
};

export type CacheSettings = {
  /** False: nothing outlives the clients that wait for it. */
  readonly isEnabled: boolean;
  readonly maxBytes: number;
  readonly minTtl: number;
  readonly maxTtl: number;
  readonly maxNegativeTtl: number;
};

export type ResolveSettings = {
  readonly routes: readonly Route[];
  readonly cache: CacheSettings;
  /** Sockets that this node listens on for DNS: no upstream may be one of them. Port 0 does not stand here. */
  readonly listens: readonly { readonly address: Uint8Array; readonly port: number }[];
};

/** From `control` to the thread that resolves. */
export type ToResolve =
  | { readonly kind: "settings"; readonly settings: ResolveSettings }
  /** Lower-case wire name; undefined: everything. */
  | { readonly kind: "flush"; readonly id: number; readonly name: Uint8Array | undefined; readonly isSubtree: boolean }
  | { readonly kind: "ask-figures"; readonly id: number };

/** Of one upstream, since the thread began to use it. Milliseconds. */
export type UpstreamFigures = {
  /** As the settings spell it. */
  readonly upstream: string;
  readonly queries: number;
  readonly answers: number;
  readonly timeouts: number;
  /** Refused, unreachable, reset, or the TLS handshake failed. */
  readonly networkErrors: number;
  /** Answers with an rcode that the next upstream was asked for: SERVFAIL, REFUSED and their like. */
  readonly failures: number;
  /** Messages that were no answer to what was asked: wrong id, question, case, cookie, or unreadable. */
  readonly rejected: number;
  readonly smoothedRttMs: number;
  readonly isFailing: boolean;
  /** Sum and counts by upper bound of the answers' times: see LATENCY_BOUNDS_MS. */
  readonly latencySumMs: number;
  readonly latencyCounts: readonly number[];
};

export const UPSTREAM_LATENCY_BOUNDS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000] as const;

export type ResolveFigures = {
  readonly upstreams: readonly UpstreamFigures[];
  readonly cache: {
    readonly entries: number;
    readonly bytes: number;
    readonly capacityBytes: number;
    readonly evictions: number;
    readonly insertions: number;
  };
  /** Questions being resolved, and clients that wait for one. */
  readonly inFlight: number;
  readonly waiting: number;
  /** By what came of them: totals since the thread's start. */
  readonly resolved: number;
  readonly failed: number;
  readonly refusedFull: number;
  readonly loops: number;
  readonly flushed: number;
  readonly scrubbedRecords: number;
  readonly rebindingRecords: number;
};

/** From the thread that resolves to `control`. */
export type FromResolve =
  /** It has begun, or begun anew, and knows no settings. */
  | { readonly kind: "ready" }
  | { readonly kind: "flushed"; readonly id: number; readonly entries: number }
  | { readonly kind: "told-figures"; readonly id: number; readonly figures: ResolveFigures };
