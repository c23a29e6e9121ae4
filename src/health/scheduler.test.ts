import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Answer,
  gapsOf,
  keyOf,
  openSchedulerLab,
  type Start,
  specOf,
  statusOf,
  WALL_MS,
} from "../../tests/support/scheduler-lab.ts";
import { createSimulatedClock } from "../../tests/support/simulated-clock.ts";
import { HEALTH, HEALTH_WORD, takeHealthSlot } from "../image/health.ts";
import type { ProbeError } from "./probe.ts";
import { createScheduler } from "./scheduler.ts";
import type { Remembered } from "./state-text.ts";

test("a probe runs within two seconds and from then on once an interval, without drift", async () => {
  const { clock, scheduler, starts } = openSchedulerLab(() => ({ takesMs: 700 }));
  scheduler.start([specOf(1)]);
  await clock.pass(2_010);
  assert.equal(starts.length, 1);
  await clock.pass(3_600_000);
  const [first, ...further] = gapsOf(starts, keyOf(1));
  assert.ok(first! >= 5_000 && first! < 16_000, `${first} ms to the second run`);
  assert.ok(further.length >= 358);
  // A tick makes a run a few milliseconds late, and never the next one with it.
  assert.ok(Math.abs(further.reduce((sum, gap) => sum + gap, 0) - further.length * 10_000) <= 5);
  for (const gap of further) assert.ok(Math.abs(gap - 10_000) <= 5, `a gap of ${gap} ms`);
});

test("20,000 new probes begin at 2,000 a second at most, and every one has run after ten seconds", async () => {
  const { clock, scheduler, starts, most } = openSchedulerLab(() => ({ takesMs: 3 }));
  scheduler.start(Array.from({ length: 20_000 }, (_, index) => specOf(index)));
  for (let second = 1; second <= 10; second++) {
    await clock.pass(1_000);
    const begun = new Set(starts.map(({ key }) => key)).size;
    assert.ok(begun <= second * 2_000 + 1, `${begun} after ${second} s`);
  }
  await clock.pass(2_100);
  assert.equal(new Set(starts.map(({ key }) => key)).size, 20_000);
  // The second run finds the phase.
  await clock.pass(15_000);
  const before = starts.length;
  await clock.pass(20_000);
  assert.ok(Math.abs(starts.length - before - 40_000) < 200, `${starts.length - before} runs in two intervals`);
  assert.ok(most.running < 100, `${most.running} at once`);
  assert.ok(scheduler.figures().latenessMs["0.99"] < 20);
});

test("a node that starts again keeps the moments of its probes", async () => {
  const first = openSchedulerLab(() => ({}));
  first.scheduler.start([specOf(1), specOf(2)]);
  await first.clock.pass(60_000);
  const phases = (starts: readonly Start[], offsetMs: number) =>
    [1, 2].map((number) => (starts.findLast(({ key }) => key === keyOf(number))!.atMs + offsetMs) % 10_000);
  const clock = createSimulatedClock(WALL_MS + 63_456, 5_000_000);
  const starts: Start[] = [];
  const scheduler = createScheduler({
    clock,
    words: first.slots.words,
    run: async (spec) => {
      starts.push({ key: spec.key, atMs: clock.now() });
      return { latencyUs: 1 };
    },
    seed: 1,
    inFlightMax: 10,
    remembered: new Map(first.scheduler.states()),
    onTransitions: () => assert.fail("nothing has changed"),
    log: () => {},
  });
  scheduler.start([specOf(1), specOf(2)]);
  await clock.pass(10_100);
  assert.equal(starts.length, 2);
  const [before, after] = [phases(first.starts, WALL_MS - 1_000), phases(starts, WALL_MS + 63_456 - 5_000_000)];
  for (const [index, phase] of before.entries()) assert.ok(Math.abs(phase - after[index]!) <= 10, `${before} ${after}`);
});

test("a verdict stands in the shared words when the transition is told, and a probe without slot writes none", async () => {
  let error: ProbeError | undefined;
  const world = openSchedulerLab(() => ({ takesMs: 20, ...(error === undefined ? {} : { error }) }));
  const { clock, slots, scheduler, transitions, wordsOf } = world;
  const slot = takeHealthSlot(slots, keyOf(1));
  scheduler.start([specOf(1, { slot }), specOf(2)]);
  await clock.pass(30_000);
  assert.deepEqual(wordsOf(slot), [HEALTH.HEALTHY, 20_000]);
  error = "refused";
  await clock.pass(40_000);
  assert.deepEqual(wordsOf(slot), [HEALTH.UNHEALTHY, 20_000]);
  error = undefined;
  await clock.pass(30_000);
  assert.deepEqual(wordsOf(slot), [HEALTH.HEALTHY, 20_000]);
  const of = (number: number) =>
    transitions.filter(({ key }) => key === keyOf(number)).map(({ from, to }) => `${from} ${to}`);
  assert.deepEqual(of(1), ["unknown healthy", "healthy unhealthy", "unhealthy healthy"]);
  assert.deepEqual(of(2), of(1));
  assert.deepEqual(wordsOf(0), [HEALTH.UNKNOWN, 0], "slot 0 is nobody's");
});

test("the words of a slot that has gone to another probe are left alone", async () => {
  const { clock, slots, scheduler, wordsOf } = openSchedulerLab(() => ({}));
  const slot = takeHealthSlot(slots, keyOf(7));
  scheduler.start([specOf(1, { slot })]);
  await clock.pass(30_000);
  assert.equal(statusOf(scheduler, keyOf(1)).state, "healthy");
  assert.deepEqual(wordsOf(slot), [HEALTH.UNKNOWN, 0]);
});

test("three failures five seconds apart make a backend unhealthy fifteen seconds after it died", async () => {
  let diedMs = Number.POSITIVE_INFINITY;
  const { clock, scheduler, transitions, starts } = openSchedulerLab((): Answer => {
    return clock.now() < diedMs ? {} : { error: "connect_timeout", takesMs: 1_000 };
  });
  scheduler.start([specOf(1, { intervalMs: 5_000, timeoutMs: 1_000 })]);
  await clock.pass(60_000);
  const runs = starts.length;
  while (starts.length === runs) await clock.pass(5);
  diedMs = clock.now();
  await clock.pass(16_050);
  const { from, to, atMs } = transitions.at(-1)!;
  assert.deepEqual([from, to], ["healthy", "unhealthy"]);
  const tookMs = atMs - (WALL_MS + diedMs - 1_000);
  assert.ok(tookMs > 15_000 && tookMs <= 16_030, `${tookMs} ms`);
});

test("a backend that hangs for the whole interval is probed every interval, and found within three and the timeout", async () => {
  let diedMs = Number.POSITIVE_INFINITY;
  const { clock, scheduler, transitions, starts } = openSchedulerLab((): Answer => {
    return clock.now() < diedMs ? {} : { error: "read_timeout", takesMs: 5_010 };
  });
  scheduler.start([specOf(1, { intervalMs: 5_000, timeoutMs: 5_000 })]);
  await clock.pass(60_000);
  const runs = starts.length;
  while (starts.length === runs) await clock.pass(5);
  diedMs = clock.now();
  await clock.pass(60_000);
  const tookMs = transitions.at(-1)!.atMs - (WALL_MS + diedMs);
  assert.ok(tookMs > 15_000 && tookMs <= 20_050, `${tookMs} ms`);
  for (const gap of gapsOf(starts, keyOf(1)).slice(1)) assert.ok(Math.abs(gap - 5_000) <= 20, `a gap of ${gap} ms`);
});

test("no more runs at once than are allowed, and everybody has a turn", async () => {
  const { clock, scheduler, starts, most } = openSchedulerLab(() => ({ takesMs: 90 }), { inFlightMax: 10 });
  scheduler.start(Array.from({ length: 1_000 }, (_, index) => specOf(index)));
  await clock.pass(60_000);
  assert.equal(most.running, 10);
  const counts = new Map<string, number>();
  for (const { key } of starts) counts.set(key, (counts.get(key) ?? 0) + 1);
  assert.equal(counts.size, 1_000);
  const each = [...counts.values()];
  assert.ok(Math.max(...each) - Math.min(...each) <= 2, `${Math.min(...each)} to ${Math.max(...each)} runs`);
});

test("a run longer than the interval skips, and is not caught up", async () => {
  let blockedMs = 0;
  const { clock, scheduler, starts } = openSchedulerLab(() => ({ takesMs: 1 + blockedMs }));
  scheduler.start([specOf(1, { timeoutMs: 60_000 })]);
  await clock.pass(30_000);
  blockedMs = 34_000;
  const runs = starts.length;
  while (starts.length === runs) await clock.pass(5);
  blockedMs = 0;
  await clock.pass(60_000);
  const gaps = gapsOf(starts.slice(runs), keyOf(1));
  assert.ok(Math.abs(gaps[0]! - 40_000) <= 5, `${gaps}`);
  for (const gap of gaps.slice(1)) assert.ok(Math.abs(gap - 10_000) <= 5, `${gaps}`);
});

test("a run that never ends is given up as a failure, and the next one comes", async () => {
  const { clock, scheduler, starts, transitions } = openSchedulerLab(() => "never");
  scheduler.start([specOf(1)]);
  await clock.pass(50_000);
  assert.ok(starts.length >= 4);
  assert.deepEqual(
    transitions.map(({ to }) => to),
    ["unhealthy"],
  );
  const { history } = statusOf(scheduler, keyOf(1));
  assert.equal(history[0]?.error, "read_timeout");
  assert.ok(scheduler.figures().inFlight <= 1);
});

test("a fault of ours is no verdict: the state stays, and after three intervals it is stale and said so once a minute", async () => {
  let isBroken = false;
  const { clock, scheduler, lines, transitions } = openSchedulerLab(() => (isBroken ? "throws" : {}));
  scheduler.start([specOf(1)]);
  await clock.pass(20_000);
  isBroken = true;
  await clock.pass(25_000);
  assert.equal(statusOf(scheduler, keyOf(1)).isStale, false);
  await clock.pass(15_000);
  const status = statusOf(scheduler, keyOf(1));
  assert.deepEqual([status.state, status.isStale], ["healthy", true]);
  assert.equal(scheduler.figures().stale, 1);
  await clock.pass(10_000);
  assert.deepEqual(
    lines.filter((line) => line.includes("late")),
    ["1 of 1 probes are three intervals late"],
  );
  isBroken = false;
  await clock.pass(10_100);
  assert.equal(statusOf(scheduler, keyOf(1)).isStale, false);
  assert.equal(transitions.length, 1);
});

test("the last twenty outcomes are told, with counters, ages and the next run", async () => {
  let isDown = false;
  const { clock, scheduler } = openSchedulerLab((): Answer => {
    return isDown ? { error: "status", detail: "status 503", takesMs: 2 } : { takesMs: 4 };
  });
  scheduler.start([specOf(1)]);
  const fresh = statusOf(scheduler, keyOf(1));
  assert.deepEqual(
    [fresh.state, fresh.sinceMs, fresh.checkedMs, fresh.history.length],
    ["unknown", undefined, undefined, 0],
  );
  await clock.pass(300_000);
  isDown = true;
  await clock.pass(20_000);
  const { state, failures, successes, history, sinceMs, checkedMs, nextMs, latencyUs } = statusOf(scheduler, keyOf(1));
  assert.deepEqual([state, failures, successes, latencyUs, history.length], ["healthy", 2, 0, 4_000, 20]);
  assert.deepEqual(
    history.slice(-3).map(({ error, detail, latencyUs: us }) => [error, detail, us]),
    [
      [undefined, undefined, 4_000],
      ["status", "status 503", 2_000],
      ["status", "status 503", 2_000],
    ],
  );
  assert.ok(sinceMs! >= WALL_MS && sinceMs! <= WALL_MS + 2_100);
  assert.equal(history.at(-1)?.atMs, checkedMs);
  assert.ok(Math.abs(nextMs - checkedMs! - 10_000) <= 10, `${nextMs - checkedMs!}`);
});

test("a probe that ends tells nothing, also where it runs in that moment", async () => {
  const { clock, scheduler, starts, transitions } = openSchedulerLab(() => ({ takesMs: 500 }));
  scheduler.start([specOf(1), specOf(2)]);
  while (starts.length < 1) await clock.pass(5);
  scheduler.stop([keyOf(1), keyOf(2), "unheard-of"]);
  await clock.pass(60_000);
  assert.deepEqual([starts.length, transitions.length], [1, 0]);
  assert.deepEqual(scheduler.statuses([keyOf(1), keyOf(2)]), []);
  assert.equal(scheduler.figures().inFlight, 0);
});

test("what is not named between begin and complete ends, and the others go on with their history", async () => {
  const { clock, scheduler } = openSchedulerLab(() => ({}));
  scheduler.start([specOf(1), specOf(2), specOf(3)]);
  await clock.pass(60_000);
  const before = statusOf(scheduler, keyOf(1));
  scheduler.begin();
  scheduler.start([specOf(1)]);
  // It begins once more before it was done: what counts is what comes now.
  scheduler.begin();
  const known = scheduler.start([specOf(1), specOf(2)]);
  assert.deepEqual(known, [
    { key: keyOf(1), state: "healthy", sinceMs: before.sinceMs },
    { key: keyOf(2), state: "healthy", sinceMs: statusOf(scheduler, keyOf(2)).sinceMs },
  ]);
  assert.equal(scheduler.statuses([keyOf(3)]).length, 1);
  scheduler.complete();
  assert.equal(scheduler.statuses([keyOf(3)]).length, 0);
  assert.deepEqual(statusOf(scheduler, keyOf(1)), before);
});

test("a check that asks the same keeps its state when it is edited; one that asks another thing begins anew", async () => {
  let isDown = false;
  const { clock, slots, scheduler, transitions, wordsOf } = openSchedulerLab(
    (): Answer => (isDown ? { error: "refused" } : {}),
  );
  const slot = takeHealthSlot(slots, keyOf(1));
  const spec = specOf(1, { slot, protocol: "http", path: "/", http: { headers: { "x-key": "1" } } });
  scheduler.start([spec]);
  await clock.pass(30_000);
  isDown = true;
  const faster = { ...spec, http: { headers: { "x-key": "1" } }, intervalMs: 1_000, failureThreshold: 1 };
  assert.equal(scheduler.start([faster]).length, 1);
  assert.ok(statusOf(scheduler, keyOf(1)).history.length > 1);
  await clock.pass(1_100);
  assert.deepEqual(wordsOf(slot)[0], HEALTH.UNHEALTHY);
  const told = transitions.length;
  assert.deepEqual(scheduler.start([{ ...faster, http: { headers: { "x-key": "2" } } }]), []);
  assert.deepEqual(wordsOf(slot), [HEALTH.UNKNOWN, 0]);
  assert.deepEqual([statusOf(scheduler, keyOf(1)).state, statusOf(scheduler, keyOf(1)).history.length], ["unknown", 0]);
  assert.equal(transitions.length, told, "nothing was judged");
});

test("the outcome of a run that began before the edit is nobody's", async () => {
  const { clock, scheduler, starts } = openSchedulerLab(({ host }) =>
    host === "192.0.2.1" ? { takesMs: 1_900 } : "never",
  );
  scheduler.start([specOf(1)]);
  while (starts.length < 1) await clock.pass(5);
  scheduler.start([specOf(1, { host: "192.0.2.2" })]);
  await clock.pass(1_999);
  assert.equal(statusOf(scheduler, keyOf(1)).history.length, 0);
  assert.equal(statusOf(scheduler, keyOf(1)).state, "unknown");
});

const UNHEALTHY: Remembered = {
  state: "unhealthy",
  sinceMs: WALL_MS - 3_600_000,
  checkedMs: WALL_MS - 5_000,
  seenMs: WALL_MS - 5_000,
  failures: 40,
  successes: 0,
  latencyUs: 1_500,
};

test("a state from before a restart stands in the words at once, keeps its age and is no transition", async () => {
  const remembered = new Map([
    [keyOf(1), UNHEALTHY],
    [keyOf(2), { ...UNHEALTHY, state: "healthy" as const, failures: 0, successes: 9 }],
  ]);
  const { clock, slots, scheduler, transitions, wordsOf } = openSchedulerLab(() => ({ error: "refused" }), {
    remembered,
  });
  const slot = takeHealthSlot(slots, keyOf(1));
  const known = scheduler.start([specOf(1, { slot }), specOf(2), specOf(3)]);
  assert.deepEqual(wordsOf(slot), [HEALTH.UNHEALTHY, 1_500]);
  assert.deepEqual(known, [
    { key: keyOf(1), state: "unhealthy", sinceMs: UNHEALTHY.sinceMs },
    { key: keyOf(2), state: "healthy", sinceMs: UNHEALTHY.sinceMs },
  ]);
  const { failures, checkedMs, isStale } = statusOf(scheduler, keyOf(1));
  assert.deepEqual([failures, checkedMs, isStale], [40, UNHEALTHY.checkedMs, false]);
  await clock.pass(40_000);
  assert.deepEqual(transitions.map(({ key, from, to }) => [key, from, to]).toSorted(), [
    [keyOf(2), "healthy", "unhealthy"],
    [keyOf(3), "unknown", "unhealthy"],
  ]);
});

test("a thread that takes over believes the words of the one before, and the file where they agree", () => {
  const remembered = new Map([
    [keyOf(1), UNHEALTHY],
    [keyOf(2), UNHEALTHY],
  ]);
  const { slots, scheduler } = openSchedulerLab(() => ({}), { remembered });
  const specs = [1, 2, 3].map((number) => specOf(number, { slot: takeHealthSlot(slots, keyOf(number)) }));
  const states = [HEALTH.UNHEALTHY, HEALTH.HEALTHY, HEALTH.UNHEALTHY];
  for (const [index, { slot }] of specs.entries()) slots.words[HEALTH_WORD.VERDICT + slot] = states[index]!;
  assert.deepEqual(scheduler.start(specs), [
    { key: keyOf(1), state: "unhealthy", sinceMs: UNHEALTHY.sinceMs },
    { key: keyOf(2), state: "healthy", sinceMs: WALL_MS },
    { key: keyOf(3), state: "unhealthy", sinceMs: WALL_MS },
  ]);
  assert.equal(statusOf(scheduler, keyOf(3)).failures, 3);
});

test("a state that is older than two intervals is looked at soon", async () => {
  const remembered = new Map([[keyOf(1), { ...UNHEALTHY, checkedMs: WALL_MS - 700_000 }]]);
  const { clock, scheduler, starts } = openSchedulerLab(() => ({}), { remembered });
  scheduler.start([specOf(1, { intervalMs: 300_000 })]);
  await clock.pass(2_010);
  assert.equal(starts.length, 1);
});

test("what is to be remembered is what has a state, whoever is probed, and what was not asked for", async () => {
  const remembered = new Map([["elsewhere", UNHEALTHY]]);
  const { clock, scheduler } = openSchedulerLab(({ key }) => (key === keyOf(3) ? "never" : {}), { remembered });
  scheduler.start([specOf(1), specOf(2), specOf(3)]);
  await clock.pass(4_000);
  scheduler.stop([keyOf(2)]);
  const states = new Map(scheduler.states());
  assert.deepEqual([...states.keys()].toSorted(), [keyOf(1), keyOf(2), "elsewhere"].toSorted());
  assert.deepEqual(states.get("elsewhere"), UNHEALTHY);
  assert.equal(states.get(keyOf(1))?.state, "healthy");
});

test("a clock that is set moves no probe", async () => {
  const { clock, scheduler, starts } = openSchedulerLab(() => ({}));
  scheduler.start([specOf(1)]);
  await clock.pass(30_000);
  clock.jumpWall(-86_400_000);
  await clock.pass(30_000);
  clock.jumpWall(10 * 86_400_000);
  await clock.pass(30_000);
  for (const gap of gapsOf(starts, keyOf(1)).slice(1)) assert.ok(Math.abs(gap - 10_000) <= 5, `a gap of ${gap} ms`);
  assert.equal(statusOf(scheduler, keyOf(1)).isStale, false);
});

test("a thousand transitions go with one message", async () => {
  const sizes: number[] = [];
  const { clock, scheduler } = openSchedulerLab(() => ({ takesMs: 60_000 }), {
    onTransitions: (transitions) => sizes.push(transitions.length),
    remembered: new Map(),
  });
  scheduler.start(
    Array.from({ length: 2_500 }, (_, index) => specOf(index, { timeoutMs: 70_000, intervalMs: 70_000 })),
  );
  await clock.pass(70_000);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    2_500,
  );
  for (const size of sizes) assert.ok(size <= 1_000);
});

test("figures count states, runs and failures by their class", async () => {
  const { clock, scheduler } = openSchedulerLab(({ key }): Answer => (key === keyOf(1) ? { error: "tls_name" } : {}));
  scheduler.start([specOf(1), specOf(2)]);
  await clock.pass(2_010);
  const { probes, done, failed, stale, inFlight } = scheduler.figures();
  assert.deepEqual(probes, { unknown: 1, healthy: 1, unhealthy: 0 });
  assert.deepEqual([done, stale, inFlight], [2, 0, 0]);
  assert.deepEqual(failed, { tls_name: 1 });
});

test("a scheduler that is closed begins nothing and says nothing", async () => {
  const { clock, scheduler, starts, transitions } = openSchedulerLab(() => ({ takesMs: 100 }));
  scheduler.start([specOf(1)]);
  while (starts.length < 1) await clock.pass(5);
  scheduler.close();
  await clock.pass(60_000);
  assert.deepEqual([starts.length, transitions.length], [1, 0]);
});
