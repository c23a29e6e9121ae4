import assert from "node:assert/strict";
import { test } from "node:test";
import { isLater, laterThan } from "./incarnation.ts";
import { INCARNATION_MAX } from "./settings.ts";

test("up to half of all incarnations the greater one is later", () => {
  for (const [one, other] of [
    [1, 0],
    [2, 1],
    [2 ** 31 - 1, 0],
    [2 ** 31, 1],
  ] as const) {
    assert.ok(isLater(one, other) && !isLater(other, one));
  }
  assert.ok(!isLater(5, 5));
});

test("behind the last incarnation comes the first", () => {
  assert.ok(isLater(0, INCARNATION_MAX) && !isLater(INCARNATION_MAX, 0));
  assert.equal(laterThan(INCARNATION_MAX, INCARNATION_MAX), 0);
  assert.equal(laterThan(1, INCARNATION_MAX), 2);
});

test("of two that are half of all apart neither is later, and what refutes one is later than that", () => {
  assert.ok(!isLater(0, 2 ** 31) && !isLater(2 ** 31, 0));
  assert.equal(laterThan(1, 2 ** 31 + 1), 2 ** 31 + 2);
});
