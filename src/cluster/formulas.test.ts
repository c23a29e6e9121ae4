import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkChance,
  confirmationsExpected,
  jittered,
  pushPullIntervalMs,
  retransmitLimit,
  suspicionBounds,
  suspicionTimeoutMs,
  userTransmitLimit,
} from "./formulas.ts";

const SETTINGS = { suspicionMultiplier: 3, suspicionMaxMultiplier: 6, probeIntervalMs: 500 };

test("a suspicion lasts three intervals up to ten members, and grows with the logarithm of their number", () => {
  for (const members of [0, 1, 2, 10]) {
    assert.deepEqual(suspicionBounds(members, SETTINGS), { minMs: 1_500, maxMs: 9_000 });
  }
  assert.deepEqual(suspicionBounds(100, SETTINGS), { minMs: 3_000, maxMs: 18_000 });
});

test("confirmations are expected only where there is somebody to confirm", () => {
  assert.equal(confirmationsExpected(2, 3), 0);
  assert.equal(confirmationsExpected(3, 3), 1);
  assert.equal(confirmationsExpected(4, 5), 0);
  assert.equal(confirmationsExpected(5, 5), 3);
  assert.equal(confirmationsExpected(100, 2), 0);
});

test("each confirmation brings the end of a suspicion nearer, by ever less, to the shortest time and no further", () => {
  assert.equal(suspicionTimeoutMs(1_000, 6_000, 0, 3), 6_000);
  assert.equal(suspicionTimeoutMs(1_000, 6_000, 1, 3), 3_500);
  assert.ok(Math.abs(suspicionTimeoutMs(1_000, 6_000, 2, 3) - 2_037.6) < 0.1);
  assert.equal(suspicionTimeoutMs(1_000, 6_000, 3, 3), 1_000);
  assert.equal(suspicionTimeoutMs(1_000, 6_000, 9, 3), 1_000);
  assert.equal(suspicionTimeoutMs(1_000, 6_000, 0, 0), 1_000);
});

test("broadcasts are sent more often the more members there are, payloads until each had its turn twice", () => {
  assert.deepEqual(
    [1, 9, 10, 99, 100].map((members) => retransmitLimit(members, 4)),
    [4, 4, 8, 8, 12],
  );
  assert.equal(userTransmitLimit(1, 4), 4);
  assert.equal(userTransmitLimit(300, 4), 600);
});

test("push/pull keeps its interval up to 32 members, and grows rarer beyond", () => {
  assert.deepEqual(
    [1, 32, 33, 64, 65, 128].map((members) => pushPullIntervalMs(members, 30)),
    [30, 30, 60, 60, 90, 90],
  );
});

test("about four members check what they hear, and jitter is half to one and a half", () => {
  assert.deepEqual([1, 4, 8, 400].map(checkChance), [1, 1, 0.5, 0.01]);
  assert.equal(
    jittered(100, () => 0),
    50,
  );
  assert.equal(
    jittered(100, () => 0.5),
    100,
  );
});
