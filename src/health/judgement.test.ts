import assert from "node:assert/strict";
import { test } from "node:test";
import { failuresAllowed, judge, type Standing, smoothLatency, UNJUDGED } from "./judgement.ts";

/** Plays a history of successes (+) and failures (-) and writes the state after each as its first letter: ?, h or u. */
function play(history: string, failureThreshold: number, from: Standing = UNJUDGED): string {
  let standing = from;
  const letters = { unknown: "?", healthy: "h", unhealthy: "u" };
  return [...history]
    .map((mark) => {
      standing = judge(standing, mark === "+", failureThreshold);
      return letters[standing.state];
    })
    .join("");
}

for (const [history, threshold, expected] of [
  ["+", 3, "h"],
  ["---", 3, "??u"],
  ["-", 1, "u"],
  ["--+", 3, "??h"],
  ["+---", 3, "hhhu"],
  ["+--+---", 3, "hhhhhhu"],
  ["+---++", 3, "hhhuuh"],
  ["+---+-++", 3, "hhhuuuuh"],
  ["+-++-", 1, "huuhu"],
  ["+-----+++", 5, "hhhhhuuhh"],
] as const) {
  test(`${history} with ${threshold} failures allowed less one gives ${expected}`, () => {
    assert.equal(play(history, threshold), expected);
  });
}

test("a script that nobody can run is unhealthy at once; every other failure counts against the threshold", () => {
  assert.equal(failuresAllowed("runner", 3), 1);
  for (const error of ["script", "refused", "policy", undefined] as const) assert.equal(failuresAllowed(error, 3), 3);
});

test("what came in a row is counted to the end, beyond the thresholds", () => {
  let standing = UNJUDGED;
  for (let failure = 0; failure < 7; failure++) standing = judge(standing, false, 3);
  assert.deepEqual(standing, { state: "unhealthy", failures: 7, successes: 0 });
  assert.deepEqual(judge(standing, true, 3), { state: "unhealthy", failures: 0, successes: 1 });
});

test("the first success is the smoothed latency, further ones weigh three tenths", () => {
  assert.equal(smoothLatency(0, 1_000), 1_000);
  assert.equal(smoothLatency(1_000, 2_000), 1_300);
  assert.equal(smoothLatency(1_000, 0), 700);
});

test("a measured latency is never 0 and fits the shared word", () => {
  assert.equal(smoothLatency(0, 0), 1);
  assert.equal(smoothLatency(1, 0), 1);
  assert.equal(smoothLatency(0, 1e12), 2 ** 31 - 1);
});
