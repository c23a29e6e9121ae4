import assert from "node:assert/strict";
import test from "node:test";
import { RCODE, RRTYPE } from "../dns/codes.ts";
import {
  COUNTER,
  LATENCY_BOUNDS_US,
  observeLatency,
  queryPlace,
  RCODE_CLASSES,
  rcodeClass,
  sumCounter,
  TRANSPORTS,
  TYPE_CLASSES,
  threadCounters,
  typeClass,
} from "./counters.ts";
import { COUNTERS_STRIDE, createSharedImage, MAX_THREADS } from "./shared.ts";

test("every transport, type class and response code has a place of its own, before all other counters", () => {
  const places = new Set<number>();
  for (const transport of TRANSPORTS.keys()) {
    for (const type of TYPE_CLASSES.keys()) {
      for (const rcode of [0, 1, 2, 3, 4, 5, RCODE.BADVERS, 23]) places.add(queryPlace(transport, type, rcode));
    }
  }
  assert.equal(places.size, TRANSPORTS.length * TYPE_CLASSES.length * RCODE_CLASSES.length);
  assert.ok(Math.max(...places) < Math.min(...Object.values(COUNTER)));
});

test("single counters share no place, and all of them lie in a thread's block", () => {
  const { LATENCY_BUCKETS, ...single } = COUNTER;
  const buckets = Array.from({ length: LATENCY_BOUNDS_US.length + 1 }, (_, index) => LATENCY_BUCKETS + index);
  const places = [...Object.values(single), ...buckets];
  assert.equal(new Set(places).size, places.length);
  assert.ok(Math.max(...places) < COUNTERS_STRIDE);
});

test("a type's class is named after it; every other type is one class", () => {
  for (const name of ["A", "AAAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT", "CAA", "SOA", "ANY"] as const) {
    assert.equal(TYPE_CLASSES[typeClass(RRTYPE[name])], name);
  }
  assert.equal(TYPE_CLASSES[typeClass(65)], "HTTPS");
  const named = new Set(TYPE_CLASSES.slice(2).map((_, index) => index + 2));
  let others = 0;
  for (let type = 0; type < 65_536; type++) if (!named.has(typeClass(type))) others++;
  assert.equal(others, 65_536 - named.size);
});

test("a response code's class is named after it; every other code is one class", () => {
  for (const name of ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "BADVERS"] as const) {
    assert.equal(RCODE_CLASSES[rcodeClass(RCODE[name])], name);
  }
  for (const rcode of [6, 9, 15, 17, 23, 4_095]) assert.equal(RCODE_CLASSES[rcodeClass(rcode)], "other");
});

test("threads count apart from each other, and are summed", () => {
  const shared = createSharedImage(1);
  const place = queryPlace(1, 2, 3);
  for (const thread of [0, 1, MAX_THREADS - 1]) threadCounters(shared, thread)[place]! += thread + 1;
  threadCounters(shared, 5)[place + 1]! += 1_000;
  assert.equal(sumCounter(shared, place), 1 + 2 + MAX_THREADS);
});

test("a latency falls into the first bucket whose bound it does not exceed, the last takes the rest", () => {
  const counters = threadCounters(createSharedImage(1), 0);
  const bucket = (index: number) => counters[COUNTER.LATENCY_BUCKETS + index];
  for (const [index, bound] of LATENCY_BOUNDS_US.entries()) {
    observeLatency(counters, bound, 3);
    assert.equal(bucket(index), 3);
  }
  observeLatency(counters, 9_000_000, 2);
  assert.equal(bucket(LATENCY_BOUNDS_US.length), 2);
  const micros = LATENCY_BOUNDS_US.reduce((sum, bound) => sum + bound * 3, 18e6);
  assert.ok(Math.abs(counters[COUNTER.LATENCY_SUM_SECONDS]! * 1e6 - micros) < 0.01);
});
