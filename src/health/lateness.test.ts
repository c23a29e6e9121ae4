import assert from "node:assert/strict";
import { test } from "node:test";
import { createLateness, latenessAt, noteLateness } from "./lateness.ts";

function near(actual: number, expected: number): void {
  assert.ok(actual >= expected && actual <= expected * 1.1 + 1, `${actual} for ${expected}`);
}

test("a share of the probes was at most that late", () => {
  const lateness = createLateness();
  assert.equal(latenessAt(lateness, 0, 0.99), 0);
  for (let late = 1; late <= 1_000; late++) noteLateness(lateness, 5, late);
  near(latenessAt(lateness, 5, 0.5), 500);
  near(latenessAt(lateness, 5, 0.99), 990);
  near(latenessAt(lateness, 5, 1), 1_000);
});

test("a minute later nothing is left of it", () => {
  const lateness = createLateness();
  noteLateness(lateness, 9_999, 5_000);
  for (let second = 10; second < 60; second++) noteLateness(lateness, second * 1_000, 1);
  near(latenessAt(lateness, 59_999, 1), 5_000);
  near(latenessAt(lateness, 60_000, 1), 1);
  assert.equal(latenessAt(lateness, 600_000, 1), 0);
});

test("what was early was not late, and what was late for days is counted", () => {
  const lateness = createLateness();
  noteLateness(lateness, 0, -3);
  near(latenessAt(lateness, 0, 1), 0);
  noteLateness(lateness, 0, 1e9);
  assert.ok(latenessAt(lateness, 0, 1) > 900_000);
});
