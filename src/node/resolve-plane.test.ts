import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Registry } from "prom-client";
import { temporaryStore } from "../../tests/support/store.ts";
import { ipFromText } from "../base/ip.ts";
import { parseUpstream } from "../dns/upstream.ts";
import { COUNTER, threadCounters } from "../image/counters.ts";
import { createSharedImage } from "../image/shared.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import type { PublishedRoute } from "../publish/store-routes.ts";
import {
  type ResolveFigures,
  type ResolveSettings,
  UPSTREAM_LATENCY_BOUNDS_MS,
  type UpstreamFigures,
} from "../resolve/settings.ts";
import { ROUTES_KEPT_MS, UPSTREAM_SERIES_MAX } from "./limits.ts";
import { isOwnSocketOf, openResolvePlane } from "./resolve-plane.ts";

function upstreamFigures(upstream: string, queries: number): UpstreamFigures {
  return {
    upstream,
    queries,
    answers: queries - 1,
    timeouts: 1,
    networkErrors: 0,
    failures: 0,
    rejected: 2,
    smoothedRttMs: 20,
    isFailing: false,
    latencySumMs: 1500,
    latencyCounts: [3, ...UPSTREAM_LATENCY_BOUNDS_MS.slice(1).map(() => 0), 1],
  };
}

const FIGURES: ResolveFigures = {
  upstreams: [upstreamFigures("192.0.2.1:53", 5)],
  cache: { entries: 7, bytes: 700, capacityBytes: 1000, evictions: 3, insertions: 10 },
  inFlight: 2,
  waiting: 4,
  resolved: 11,
  failed: 1,
  refusedFull: 0,
  loops: 1,
  flushed: 6,
  scrubbedRecords: 8,
  rebindingRecords: 9,
};

function address(text: string): Uint8Array {
  return ipFromText(text) ?? assert.fail(text);
}

function route(
  number: number,
  kind: PublishedRoute["kind"],
  upstream: string,
  hardening?: ConfigSettings<"hardening">,
): PublishedRoute {
  const parsed = parseUpstream(upstream);
  assert.ok(parsed.kind === "upstream");
  return { number, kind, domain: Uint8Array.of(0), upstreams: [parsed.upstream], hardening };
}

async function openWorld(t: TestContext) {
  const temporary = await temporaryStore();
  const shared = createSharedImage(1);
  const registry = new Registry();
  const texts: (() => Promise<string>)[] = [];
  const sent: ResolveSettings[] = [];
  const state: { figures: ResolveFigures | undefined } = { figures: FIGURES };
  const plane = openResolvePlane({
    store: temporary.store,
    shared,
    resolve: {
      sendSettings: (settings) => sent.push(settings),
      flush: (name, isSubtree) => Promise.resolve((name?.length ?? 0) + (isSubtree ? 100 : 0)),
      figures: () => Promise.resolve(state.figures),
    },
    listens: [{ bytes: address("127.0.0.1"), port: 5353 }],
    nodeId: "node-1",
    metrics: { registry, addText: (read) => void texts.push(read) },
  });
  t.after(async () => {
    plane[Symbol.dispose]();
    await temporary[Symbol.asyncDispose]();
  });
  const metrics = async () => (await registry.metrics()) + (await Promise.all(texts.map((each) => each()))).join("");
  return { store: temporary.store, shared, plane, sent, state, metrics };
}

const HARDENING: ConfigSettings<"hardening"> = {
  case_randomization: true,
  dns_cookies: false,
  bailiwick_scrubbing: true,
  rebinding_protection: true,
  rebinding_exceptions: ["LAN.example."],
  max_udp_size: 1400,
  min_ttl_seconds: null,
  max_ttl_seconds: 60,
  serve_stale: false,
  serve_stale_seconds: 3600,
  refuse_any: true,
};

test("nothing is sent before the routes are known; then everything, as the resolver has it", async (t) => {
  const { plane, sent, store } = await openWorld(t);
  await store.write((tx) => void tx.put("config", { name: "cache", settings: { max_bytes: 2 ** 21 } }));
  assert.equal(sent.length, 0);
  plane.onRoutes([route(20, "default", "192.0.2.1", HARDENING), route(21, "stub", "192.0.2.2")]);
  assert.equal(sent.length, 1);
  const [settings] = sent;
  assert.deepEqual(settings?.listens, [{ address: address("127.0.0.1"), port: 5353 }]);
  assert.equal(settings?.cache.maxBytes, 2 ** 21);
  assert.deepEqual(settings?.routes[1]?.hardening, undefined);
  assert.deepEqual(settings?.routes[0]?.hardening, {
    caseRandomization: true,
    cookies: false,
    bailiwick: true,
    rebindingProtection: true,
    rebindingExceptions: [Uint8Array.of(3, 108, 97, 110, 7, 101, 120, 97, 109, 112, 108, 101, 0)],
    maxUdpSize: 1400,
    minTtl: undefined,
    maxTtl: 60,
    serveStaleSeconds: 0,
    refuseAny: true,
  });
  await store.write((tx) => void tx.put("config", { name: "cache", settings: { enabled: false } }));
  assert.deepEqual([sent.length, sent[1]?.cache.isEnabled, sent[1]?.routes.length], [2, false, 2]);
});

test("a route that is no more is known for as long as somebody may wait for it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { plane, sent } = await openWorld(t);
  const numbers = () => sent.at(-1)?.routes.map(({ number }) => number);
  plane.onRoutes([route(20, "forwarder", "192.0.2.1"), route(21, "forwarder", "192.0.2.2")]);
  plane.onRoutes([route(22, "forwarder", "192.0.2.3"), route(21, "forwarder", "192.0.2.2")]);
  assert.deepEqual(numbers(), [22, 21, 20]);
  t.mock.timers.tick(ROUTES_KEPT_MS - 1);
  plane.onRoutes([route(20, "forwarder", "192.0.2.1")]);
  assert.deepEqual(numbers(), [20, 22, 21], "one that comes back is there once");
  t.mock.timers.tick(ROUTES_KEPT_MS);
  assert.deepEqual(numbers(), [20]);
});

test("the cache as the API sees it", async (t) => {
  const { plane, state, shared } = await openWorld(t);
  threadCounters(shared, 3)[COUNTER.CACHE_HITS] = 40;
  threadCounters(shared, 4)[COUNTER.CACHE_HITS] = 2;
  assert.deepEqual(await plane.cache.read(), {
    entries: 7,
    bytes: 700,
    capacity_bytes: 1000,
    hits: 42,
    misses: 0,
    stale: 0,
    insertions: 10,
    evictions: 3,
    refreshes: 0,
    flushed: 6,
  });
  assert.equal(await plane.cache.flush(Uint8Array.of(0), true), 101);
  state.figures = undefined;
  assert.equal(await plane.cache.read(), undefined);
});

test("figures of forwarding are metrics, those of upstreams in bounded series", async (t) => {
  const { state, metrics, shared } = await openWorld(t);
  threadCounters(shared, 1)[COUNTER.BLOCKED] = 12;
  const text = await metrics();
  for (const line of [
    "svc_cache_entries 7",
    "svc_cache_evictions_total 3",
    "svc_blocked_total 12",
    "svc_forward_in_flight 2",
    "svc_forward_waiting 4",
    "svc_forward_failed_total 1",
    "svc_forward_loops_total 1",
    'svc_forward_routes{kind="default"} 0',
    'svc_forward_upstream_queries_total{upstream="192.0.2.1:53"} 5',
    'svc_forward_upstream_rejected_total{upstream="192.0.2.1:53"} 2',
    'svc_forward_upstream_rtt_seconds{upstream="192.0.2.1:53"} 0.02',
    'svc_forward_upstream_latency_seconds_bucket{upstream="192.0.2.1:53",le="0.001"} 3',
    'svc_forward_upstream_latency_seconds_bucket{upstream="192.0.2.1:53",le="5"} 3',
    'svc_forward_upstream_latency_seconds_bucket{upstream="192.0.2.1:53",le="+Inf"} 4',
    'svc_forward_upstream_latency_seconds_sum{upstream="192.0.2.1:53"} 1.5',
    'svc_forward_upstream_latency_seconds_count{upstream="192.0.2.1:53"} 4',
  ]) {
    assert.ok(text.split("\n").includes(line), `${line} in\n${text}`);
  }
  state.figures = undefined;
  assert.match(await metrics(), /^svc_cache_entries 7$/m, "where nobody answers the last figures stand");
});

test("upstreams beyond the bound are counted together, and one of several routes once", async (t) => {
  const { state, metrics } = await openWorld(t);
  const many = Array.from({ length: UPSTREAM_SERIES_MAX + 5 }, (_, index) => upstreamFigures(`10.0.0.${index}:53`, 10));
  state.figures = { ...FIGURES, upstreams: [...many, upstreamFigures("10.0.0.0:53", 1)] };
  const queries = (await metrics())
    .split("\n")
    .filter((line) => line.startsWith("svc_forward_upstream_queries_total{"));
  assert.equal(queries.length, UPSTREAM_SERIES_MAX + 1);
  assert.ok(queries.includes('svc_forward_upstream_queries_total{upstream="other"} 50'));
  assert.ok(queries.includes('svc_forward_upstream_queries_total{upstream="10.0.0.0:53"} 11'));
});

test("a socket is this node's own by address and port; a wildcard stands for what the machine has", () => {
  const listens = [
    { bytes: address("192.0.2.1"), port: 53 },
    { bytes: address("0.0.0.0"), port: 5353 },
    { bytes: address("::"), port: 5354 },
  ];
  const isOwn = isOwnSocketOf(listens, () => [address("10.0.0.7"), address("2001:db8::7")]);
  const table: readonly (readonly [string, number, boolean])[] = [
    ["192.0.2.1", 53, true],
    ["192.0.2.1", 5300, false],
    ["192.0.2.2", 53, false],
    ["10.0.0.7", 5353, true],
    ["10.0.0.7", 53, false],
    ["127.0.0.1", 5353, true],
    ["127.9.9.9", 5353, true],
    ["10.0.0.8", 5353, false],
    ["2001:db8::7", 5353, false],
    ["2001:db8::7", 5354, true],
    ["::1", 5354, true],
    ["2001:db8::8", 5354, false],
  ];
  for (const [text, port, expected] of table) assert.equal(isOwn(address(text), port), expected, `${text} ${port}`);
});
