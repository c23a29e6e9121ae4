/** The figures of forwarding and of its cache. Series of single upstreams are bounded; those beyond are counted together. */
import { Counter, Gauge, type Registry } from "prom-client";
import { COUNTER, sumCounter } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import {
  type ResolveFigures,
  type Route,
  UPSTREAM_LATENCY_BOUNDS_MS,
  type UpstreamFigures,
} from "../resolve/settings.ts";
import { registerCounters } from "./counters.ts";
import { RESOLVE_FIGURES_MS, UPSTREAM_SERIES_MAX } from "./limits.ts";
import type { NodeMetrics } from "./metrics.ts";

export type ResolveMetricsParts = {
  readonly shared: SharedImage;
  /** Undefined: the thread that resolves does not answer. */
  readonly figures: () => Promise<ResolveFigures | undefined>;
  readonly routes: () => readonly Route[];
  /** Milliseconds from any moment on. */
  readonly clock: () => number;
};

type ReadFigures = () => Promise<ResolveFigures | undefined>;

/** Series of the upstreams that have none of their own. */
export const OTHER_UPSTREAMS = "other";

export function registerResolve(
  parts: ResolveMetricsParts,
  { registry, addText }: Pick<NodeMetrics, "registry" | "addText">,
): void {
  const read = figuresOf(parts);
  registerAnswering(parts.shared, registry);
  registerTotals(read, registry);
  registerGauges(read, registry);
  registerRoutes(parts.routes, registry);
  registerUpstreams(read, registry);
  addText(async () => latencyText((await read())?.upstreams ?? []));
}

/** What answer threads count themselves. */
const ANSWERING = [
  ["svc_cache_hits_total", "Questions of the forwarding path that the cache answered.", COUNTER.CACHE_HITS],
  ["svc_cache_misses_total", "Questions of the forwarding path that had to be resolved.", COUNTER.CACHE_MISSES],
  ["svc_cache_stale_total", "Answers from the cache whose time was over.", COUNTER.CACHE_STALE],
  ["svc_cache_refreshes_total", "Popular answers fetched anew before their end.", COUNTER.REFRESHES],
  ["svc_blocked_total", "Answers that the blocklist gave.", COUNTER.BLOCKED],
  [
    "svc_dns_recursion_refused_total",
    "Answers without recursion, which is not offered to the sender's network.",
    COUNTER.RECURSION_REFUSED,
  ],
  ["svc_forward_overflow_total", "Queries failed because too many waited to be resolved.", COUNTER.HANDOVER_FULL],
] as const;

function registerAnswering(shared: SharedImage, registry: Registry): void {
  registerCounters(
    registry,
    ANSWERING.map(([name, help, place]) => [name, help, () => sumCounter(shared, place)]),
  );
}

/** Figures that the thread tells. Those of a moment ago do; where it does not answer, the last ones stand. */
function figuresOf({ figures, clock }: ResolveMetricsParts): ReadFigures {
  let last: ResolveFigures | undefined;
  let asked: Promise<ResolveFigures | undefined> | undefined;
  let askedMs = 0;
  return () => {
    if (asked !== undefined && clock() - askedMs < RESOLVE_FIGURES_MS) return asked;
    askedMs = clock();
    asked = figures().then((told) => {
      last = told ?? last;
      return last;
    });
    return asked;
  };
}

type Picker = (figures: ResolveFigures) => number;

const TOTALS: readonly (readonly [name: string, help: string, pick: Picker])[] = [
  ["svc_cache_evictions_total", "Answers that made room for others.", ({ cache }) => cache.evictions],
  ["svc_cache_insertions_total", "Answers put into the cache.", ({ cache }) => cache.insertions],
  ["svc_cache_flushed_total", "Answers taken out by a flush.", ({ flushed }) => flushed],
  ["svc_forward_resolved_total", "Questions resolved.", ({ resolved }) => resolved],
  ["svc_forward_failed_total", "Questions that could not be resolved.", ({ failed }) => failed],
  ["svc_forward_refused_full_total", "Questions failed because too many were open.", ({ refusedFull }) => refusedFull],
  ["svc_forward_loops_total", "Queries that came back to this node.", ({ loops }) => loops],
  [
    "svc_forward_scrubbed_records_total",
    "Records left out of answers of upstreams.",
    (figures) => figures.scrubbedRecords,
  ],
  [
    "svc_forward_rebinding_records_total",
    "Private addresses left out of answers of upstreams.",
    (figures) => figures.rebindingRecords,
  ],
];

function registerTotals(read: ReadFigures, registry: Registry): void {
  for (const [name, help, pick] of TOTALS) {
    new Counter({
      name,
      help,
      registers: [registry],
      async collect() {
        const figures = await read();
        this.reset();
        this.inc(figures === undefined ? 0 : pick(figures));
      },
    });
  }
}

const GAUGES: readonly (readonly [name: string, help: string, pick: Picker])[] = [
  ["svc_cache_entries", "Answers in the cache.", ({ cache }) => cache.entries],
  ["svc_cache_bytes", "Bytes of the cache in use.", ({ cache }) => cache.bytes],
  ["svc_cache_capacity_bytes", "Bytes that the cache may take.", ({ cache }) => cache.capacityBytes],
  ["svc_forward_in_flight", "Questions being resolved.", ({ inFlight }) => inFlight],
  ["svc_forward_waiting", "Clients that wait for one.", ({ waiting }) => waiting],
];

function registerGauges(read: ReadFigures, registry: Registry): void {
  for (const [name, help, pick] of GAUGES) {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const figures = await read();
        if (figures !== undefined) this.set(pick(figures));
      },
    });
  }
}

function registerRoutes(routes: ResolveMetricsParts["routes"], registry: Registry): void {
  new Gauge({
    name: "svc_forward_routes",
    help: "Forwarders and stub zones in effect, by kind.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      const counts = { default: 0, forwarder: 0, stub: 0 };
      for (const { kind } of routes()) counts[kind] += 1;
      for (const kind of ["default", "forwarder", "stub"] as const) this.set({ kind }, counts[kind]);
    },
  });
}

const PER_UPSTREAM = [
  ["queries", "Queries sent to it.", "queries"],
  ["answers", "Answers of it that were taken.", "answers"],
  ["timeouts", "Queries that it did not answer in time.", "timeouts"],
  ["network_errors", "Queries that did not reach it.", "networkErrors"],
  ["failures", "Answers with which it failed: SERVFAIL, REFUSED and their like.", "failures"],
  ["rejected", "Messages that were no answer to what was asked.", "rejected"],
] as const;

function registerUpstreams(read: ReadFigures, registry: Registry): void {
  const registers = [registry];
  const labelNames = ["upstream"];
  for (const [name, help, field] of PER_UPSTREAM) {
    new Counter({
      name: `svc_forward_upstream_${name}_total`,
      help,
      labelNames,
      registers,
      async collect() {
        const figures = await read();
        this.reset();
        for (const each of boundedUpstreams(figures?.upstreams ?? []))
          this.inc({ upstream: each.upstream }, each[field]);
      },
    });
  }
  const gauges = [
    [
      "svc_forward_upstream_rtt_seconds",
      "Smoothed time of its answers.",
      (each: UpstreamFigures) => each.smoothedRttMs / 1000,
    ],
    ["svc_forward_upstream_failing", "1: it is asked last.", (each: UpstreamFigures) => (each.isFailing ? 1 : 0)],
  ] as const;
  for (const [name, help, pick] of gauges) {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        const figures = await read();
        this.reset();
        for (const each of boundedUpstreams(figures?.upstreams ?? [])) {
          if (each.upstream !== OTHER_UPSTREAMS) this.set({ upstream: each.upstream }, pick(each));
        }
      },
    });
  }
}

/** One of each upstream, however many routes have it, and the sum of those beyond the bound. */
export function boundedUpstreams(all: readonly UpstreamFigures[]): readonly UpstreamFigures[] {
  const byName = new Map<string, UpstreamFigures>();
  for (const each of all) {
    const isKnown = byName.has(each.upstream);
    const upstream = isKnown || byName.size < UPSTREAM_SERIES_MAX ? each.upstream : OTHER_UPSTREAMS;
    const before = byName.get(upstream);
    byName.set(upstream, before === undefined ? { ...each, upstream } : summed(before, each));
  }
  return [...byName.values()];
}

function summed(one: UpstreamFigures, other: UpstreamFigures): UpstreamFigures {
  return {
    upstream: one.upstream,
    queries: one.queries + other.queries,
    answers: one.answers + other.answers,
    timeouts: one.timeouts + other.timeouts,
    networkErrors: one.networkErrors + other.networkErrors,
    failures: one.failures + other.failures,
    rejected: one.rejected + other.rejected,
    smoothedRttMs: Math.max(one.smoothedRttMs, other.smoothedRttMs),
    isFailing: one.isFailing || other.isFailing,
    latencySumMs: one.latencySumMs + other.latencySumMs,
    latencyCounts: one.latencyCounts.map((count, index) => count + (other.latencyCounts[index] ?? 0)),
  };
}

/** The histogram of each upstream, written by hand: its buckets come filled, and prom-client's fill only by single values. */
function latencyText(all: readonly UpstreamFigures[]): string {
  const name = "svc_forward_upstream_latency_seconds";
  const lines = [`# HELP ${name} From asking an upstream to its answer.`, `# TYPE ${name} histogram`];
  for (const { upstream, latencyCounts, latencySumMs } of boundedUpstreams(all)) {
    // No upstream has a quote or a backslash in its text.
    const label = `upstream="${upstream}"`;
    let count = 0;
    for (const [bucket, bound] of [...UPSTREAM_LATENCY_BOUNDS_MS, undefined].entries()) {
      count += latencyCounts[bucket] ?? 0;
      lines.push(`${name}_bucket{${label},le="${bound === undefined ? "+Inf" : bound / 1000}"} ${count}`);
    }
    lines.push(`${name}_sum{${label}} ${latencySumMs / 1000}`, `${name}_count{${label}} ${count}`);
  }
  return `${lines.join("\n")}\n`;
}
