/** Who waits for a place, and who does not, where probes take long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gapsOf, keyOf, openSchedulerLab, specOf, statusOf } from "../../tests/support/scheduler-lab.ts";

for (const [what, slow] of [
  ["hang", { takesMs: 5_000, error: "connect_timeout" }],
  ["have names that nobody resolves", { takesMs: 5_000, latencyUs: 0, error: "resolve" }],
  ["need a token that does not come", { takesMs: 5_000, latencyUs: 0, error: "credentials" }],
  ["answer just in time", { takesMs: 4_800 }],
] as const) {
  test(`where most backends ${what}, the others are not late`, async () => {
    const isSlow = (key: string) => Number.parseInt(key, 16) % 10 !== 0;
    const { clock, scheduler, starts, most } = openSchedulerLab(({ key }) => (isSlow(key) ? slow : { takesMs: 3 }), {
      inFlightMax: 400,
    });
    scheduler.start(Array.from({ length: 4_000 }, (_, index) => specOf(index, { timeoutMs: 5_000 })));
    await clock.pass(120_000);
    const before = starts.length;
    await clock.pass(60_000);
    assert.ok(most.running <= 400);
    const good = starts.slice(before).filter(({ key }) => !isSlow(key));
    assert.ok(good.length >= 400 * 5, `${good.length} runs of 400 good probes in six intervals`);
    for (let number = 9; number < 4_000; number += 100) {
      for (const gap of gapsOf(starts, keyOf(number)).slice(12)) assert.ok(gap < 10_100, `a gap of ${gap} ms`);
    }
    await clock.pass(60_000);
    const expected = "error" in slow ? "unhealthy" : "healthy";
    for (let number = 0; number < 4_000; number++) {
      if (isSlow(keyOf(number))) assert.equal(statusOf(scheduler, keyOf(number)).state, expected);
    }
  });
}

test("new probes that hang make no others late, and others that hang do not keep new ones waiting", async () => {
  const hangs = (key: string) => Number.parseInt(key, 16) >= 1_000;
  const { clock, scheduler, starts } = openSchedulerLab(
    ({ key }) => (hangs(key) ? { takesMs: 5_000, error: "connect_timeout" } : { takesMs: 3 }),
    { inFlightMax: 400 },
  );
  scheduler.start(Array.from({ length: 100 }, (_, index) => specOf(index, { timeoutMs: 5_000 })));
  await clock.pass(30_000);
  const before = starts.length;
  scheduler.start(Array.from({ length: 4_000 }, (_, index) => specOf(1_000 + index, { timeoutMs: 5_000 })));
  await clock.pass(60_000);
  const proven = starts.slice(before).filter(({ key }) => !hangs(key));
  assert.ok(proven.length >= 100 * 6 - 10, `${proven.length} runs of 100 good probes in six intervals`);
  await clock.pass(120_000);
  scheduler.start([specOf(500, { timeoutMs: 5_000 })]);
  await clock.pass(2_100);
  assert.equal(starts.filter(({ key }) => key === keyOf(500)).length, 1);
});
