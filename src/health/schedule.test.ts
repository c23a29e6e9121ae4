import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hashText, nextDue, phaseOf, phasePoint } from "./schedule.ts";

test("phases of many keys fill the interval evenly, and another seed gives others", () => {
  const tenths = new Array<number>(10).fill(0);
  let moved = 0;
  for (let index = 0; index < 20_000; index++) {
    const key = index.toString(16).padStart(16, "0");
    const phaseMs = phaseOf(key, 7, 10_000);
    tenths[Math.floor(phaseMs / 1_000)]! += 1;
    if (phaseOf(key, 8, 10_000) !== phaseMs) moved += 1;
  }
  for (const count of tenths) assert.ok(Math.abs(count - 2_000) < 250, tenths.join(" "));
  assert.ok(moved > 19_900);
  assert.equal(hashText("a probe", 7), hashText("a probe", 7));
});

const interval = fc.integer({ min: 1_000, max: 3_600_000 });
const moment = fc.integer({ min: 0, max: 2 ** 41 });

test("a phase point is the first moment of the phase that has not passed", () => {
  fc.assert(
    fc.property(moment, moment, interval, (from, phase, intervalMs) => {
      const point = phasePoint(from, phase, intervalMs);
      assert.ok(point >= from && point < from + intervalMs);
      assert.equal((((point - phase) % intervalMs) + intervalMs) % intervalMs, 0);
    }),
  );
});

test("the next run keeps the phase, and what was missed for a quarter of an interval or longer is not caught up", () => {
  fc.assert(
    fc.property(moment, fc.integer({ min: -1_000, max: 2 ** 31 }), interval, (due, lateMs, intervalMs) => {
      const next = nextDue(due, due + lateMs, intervalMs);
      assert.ok(next >= due + lateMs - intervalMs / 4 && next > due);
      assert.ok(next <= due + Math.max(lateMs + intervalMs * 0.75, intervalMs));
      assert.equal((next - due) % intervalMs, 0);
    }),
  );
});

test("a run that takes the whole interval and a little more does not lose the next one", () => {
  for (const tookMs of [4_999, 5_000, 5_020, 6_249]) assert.equal(nextDue(100_000, 100_000 + tookMs, 5_000), 105_000);
  assert.equal(nextDue(100_000, 106_250, 5_000), 110_000);
});
