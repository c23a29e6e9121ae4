import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulatedClock, type SimulatedClock } from "../../tests/support/simulated-clock.ts";
import { createSteadyTimers } from "./steady-timers.ts";
import { createSuspicion } from "./suspicion.ts";

function begin(clock: SimulatedClock, expected: number) {
  let endedMs: number | undefined;
  const startMs = clock.now();
  const suspicion = createSuspicion({
    timers: clock,
    minMs: 1_000,
    maxMs: 6_000,
    expected,
    from: "first",
    onTimeout: () => {
      endedMs = clock.now() - startMs;
    },
  });
  return { suspicion, endedMs: () => endedMs };
}

test("without a confirmation a suspicion lasts its longest time", async () => {
  const clock = createSimulatedClock();
  const { endedMs } = begin(clock, 3);
  await clock.pass(10_000);
  assert.equal(endedMs(), 6_000);
});

test("where nobody can confirm it lasts its shortest", async () => {
  const clock = createSimulatedClock();
  const { suspicion, endedMs } = begin(clock, 0);
  assert.equal(suspicion.confirm("second"), false);
  await clock.pass(10_000);
  assert.equal(endedMs(), 1_000);
});

test("a confirmation counts once for each accuser, and only as many as are expected", async () => {
  const clock = createSimulatedClock();
  const { suspicion, endedMs } = begin(clock, 3);
  await clock.pass(500);
  assert.equal(suspicion.confirm("first"), false);
  assert.equal(suspicion.confirm("second"), true);
  assert.equal(suspicion.confirm("second"), false);
  await clock.pass(3_500);
  assert.equal(endedMs(), 3_500);
  assert.equal(suspicion.confirm("third"), true);
  assert.equal(suspicion.confirm("fourth"), true);
  assert.equal(suspicion.confirm("fifth"), false);
});

test("a confirmation that comes when the shorter time is over ends it at once", async () => {
  const clock = createSimulatedClock();
  const { suspicion, endedMs } = begin(clock, 1);
  await clock.pass(2_000);
  suspicion.confirm("second");
  await clock.pass(1);
  assert.equal(endedMs(), 2_000);
});

test("one that is called off never ends", async () => {
  const clock = createSimulatedClock();
  const { suspicion, endedMs } = begin(clock, 1);
  suspicion.confirm("second");
  suspicion.cancel();
  await clock.pass(10_000);
  assert.equal(endedMs(), undefined);
});

test("a timer that comes late because the process stood still waits for what has arrived meanwhile", () => {
  let nowMs = 0;
  let due: (() => void) | undefined;
  let delayMs = 0;
  let cancelled = 0;
  const stalls: number[] = [];
  let runs = 0;
  const after = (ms: number, run: () => void) => {
    delayMs = ms;
    due = run;
    return () => {
      cancelled++;
    };
  };
  const steady = createSteadyTimers({ now: () => nowMs, after }, (lateMs) => void stalls.push(lateMs));
  const cancel = steady.after(500, () => {
    runs++;
  });
  assert.equal(delayMs, 500);
  nowMs = 1_700;
  due?.();
  assert.deepEqual({ runs, stalls, delayMs }, { runs: 0, stalls: [1_200], delayMs: 300 });
  nowMs = 2_010;
  due?.();
  assert.equal(runs, 1);
  cancel();
  assert.equal(cancelled, 1);
});
