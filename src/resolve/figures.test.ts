import assert from "node:assert/strict";
import { test } from "node:test";
import { joinUpstreams } from "./figures.ts";
import type { UpstreamFigures } from "./settings.ts";

function figuresOf(upstream: string, answers: number): UpstreamFigures {
  return {
    upstream,
    queries: answers + 6,
    answers,
    timeouts: 1,
    networkErrors: 2,
    failures: 3,
    rejected: 4,
    smoothedRttMs: answers,
    isFailing: answers === 0,
    latencySumMs: answers * 2,
    latencyCounts: [answers, 1],
  };
}

test("an upstream of several routes has one row of sums, with the time of where it answered most", () => {
  const joined = joinUpstreams([figuresOf("a", 10), figuresOf("b", 5), figuresOf("a", 30), figuresOf("a", 0)]);
  assert.deepEqual(
    joined.map(({ upstream }) => upstream),
    ["a", "b"],
  );
  assert.deepEqual(joined[0], {
    upstream: "a",
    queries: 58,
    answers: 40,
    timeouts: 3,
    networkErrors: 6,
    failures: 9,
    rejected: 12,
    smoothedRttMs: 30,
    isFailing: true,
    latencySumMs: 80,
    latencyCounts: [40, 3],
  });
  assert.deepEqual(joined[1], figuresOf("b", 5));
});
