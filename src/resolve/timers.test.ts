import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createTimers, TICK_MS } from "./timers.ts";

test("time-outs run in their order, none too early, and not where they were called off", async () => {
  const timers = createTimers();
  const startedMs = performance.now();
  const ran: { readonly delayMs: number; readonly atMs: number }[] = [];
  const delays = [0, 3, 50, 8, 120, 17, 33, 50];
  await new Promise<void>((resolve) => {
    for (const delayMs of delays) {
      timers.after(delayMs, () => {
        ran.push({ delayMs, atMs: performance.now() - startedMs });
        if (ran.length === delays.length) resolve();
      });
      timers.after(delayMs, () => assert.fail("was called off"))();
    }
  });
  assert.ok(
    ran.every(({ delayMs, atMs }) => atMs >= delayMs - 0.1),
    JSON.stringify(ran),
  );
  const ticks = ran.map(({ delayMs }) => Math.ceil(delayMs / TICK_MS));
  assert.ok(ticks.every((tick, index) => index === 0 || tick >= ticks[index - 1]! - 1));
});

/** Time that passes by `pass`, for the wheel and for the system's timer under it. */
function openClock(context: TestContext) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const clock = { ms: 0 };
  const timers = createTimers(() => clock.ms);
  const pass = (ms: number): void => {
    clock.ms += ms;
    context.mock.timers.tick(TICK_MS);
  };
  return { timers, pass };
}

test("what lies further ahead than the wheel waits for its round", (context) => {
  const { timers, pass } = openClock(context);
  const ran: string[] = [];
  timers.after(20_000, () => ran.push("late"));
  timers.after(20, () => ran.push("soon"));
  pass(16);
  assert.deepEqual(ran, []);
  pass(24);
  assert.deepEqual(ran, ["soon"]);
  pass(11_768);
  assert.deepEqual(ran, ["soon"]);
  pass(8_202);
  assert.deepEqual(ran, ["soon", "late"]);
});

test("what runs may set, and call off, others of the same moment", (context) => {
  const { timers, pass } = openClock(context);
  const ran: string[] = [];
  const others = [timers.after(20, () => ran.push("before"))];
  timers.after(20, () => {
    for (const stop of others) stop();
    ran.push("calls off");
    timers.after(0, () => ran.push("next"));
  });
  others.push(timers.after(20, () => ran.push("behind")));
  pass(24);
  // Of one moment they run in no order that anybody may rely on: what was called off in time has not run.
  assert.equal(ran.filter((each) => each === "calls off").length, 1);
  assert.ok(!(ran.includes("before") && ran.includes("behind")));
  pass(8);
  assert.equal(ran.at(-1), "next");
});
