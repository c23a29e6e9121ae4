import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  createNotifyClock,
  createScriptedSink,
  DELIVERED,
  FAILED,
  NEVER,
  noticeAbout,
  REFUSED,
  recordingLog,
  settled,
} from "../../tests/support/notify-lab.ts";
import { createLane } from "./lane.ts";
import { COMPLAINT_PAUSE_MS, IN_FLIGHT_MAX } from "./limits.ts";
import type { Attempt } from "./sink.ts";

const SECOND = 1_000;

for (const [what, answers, atSeconds, figure] of [
  ["goes well at once", [DELIVERED], [0], "delivered"],
  ["fails once", [FAILED, DELIVERED], [0, 1], "delivered"],
  ["fails twice", [FAILED, FAILED, DELIVERED], [0, 1, 6], "delivered"],
  ["fails always", [FAILED, FAILED, FAILED], [0, 1, 6], "failed"],
  ["is refused", [REFUSED], [0], "failed"],
  ["fails and is refused", [FAILED, REFUSED], [0, 1], "failed"],
] as const) {
  test(`what ${what} has its attempts after 1 s and 5 s, and is counted once`, async () => {
    const clock = createNotifyClock();
    const startMs = clock.elapsedMs();
    const sink = createScriptedSink(clock, (_, index) => answers[index] ?? FAILED);
    const lane = createLane({ sink, clock, log: recordingLog().log });
    assert.equal(lane.offer(noticeAbout("a")), true);
    await clock.pass(60 * SECOND);
    assert.deepEqual(
      sink.attempts.map(({ atMs }) => (atMs - startMs) / SECOND),
      atSeconds,
    );
    const none = { sink: "webhook", delivered: 0, failed: 0, dropped: 0, queued: 0 };
    assert.deepEqual(lane.stats(), { ...none, [figure]: 1 });
  });
}

test("a sink that throws is one that failed", async () => {
  const clock = createNotifyClock();
  const sink = createScriptedSink(clock, (_, index) =>
    index === 0 ? Promise.reject(new Error("connect ECONNREFUSED")) : DELIVERED,
  );
  const lane = createLane({ sink, clock, log: recordingLog().log });
  lane.offer(noticeAbout("a"));
  await clock.pass(2 * SECOND);
  assert.deepEqual([lane.stats().delivered, sink.attempts.length], [1, 2]);
});

test("few are under way at once, and never two about the same subject", async () => {
  const clock = createNotifyClock();
  const sink = createScriptedSink(clock, () => NEVER);
  const lane = createLane({ sink, clock, log: recordingLog().log });
  for (const subject of ["a", "a", "b", "c", "b", "d", "e"]) lane.offer(noticeAbout(subject));
  await settled();
  assert.deepEqual(
    sink.attempts.map(({ notice }) => notice.subject),
    ["a", "b", "c", "d"],
  );
  assert.equal(sink.attempts.length, IN_FLIGHT_MAX);
  assert.equal(lane.stats().queued, 7);
});

test("events about one subject arrive in their order, whichever attempts fail; each is delivered once", async () => {
  const outcomes = fc.array(fc.constantFrom(DELIVERED, FAILED, REFUSED), { maxLength: 40 });
  const subjects = fc.array(fc.constantFrom("a", "b", "c", "d", "e", "f"), { maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(subjects, outcomes, async (about, answers) => {
      const clock = createNotifyClock();
      const done: { subject: string; number: number }[] = [];
      const sink = createScriptedSink(clock, (notice, index): Attempt => {
        const outcome = answers[index] ?? DELIVERED;
        if (outcome === DELIVERED) done.push({ subject: notice.subject, number: Number(notice.data.number) });
        return outcome;
      });
      const lane = createLane({ sink, clock, log: recordingLog().log });
      for (const [number, subject] of about.entries()) lane.offer(noticeAbout(subject, { number }));
      await clock.pass(6 * SECOND * (about.length + 1));
      for (const subject of new Set(about)) {
        const numbers = done.filter((one) => one.subject === subject).map(({ number }) => number);
        assert.deepEqual(
          numbers,
          [...new Set(numbers)].sort((a, b) => a - b),
        );
      }
      const { delivered, failed, dropped, queued } = lane.stats();
      assert.equal(delivered, done.length);
      assert.deepEqual([delivered + failed, dropped, queued], [about.length, 0, 0]);
    }),
    { numRuns: 60 },
  );
});

test("a full queue drops what comes, and takes again when there is room", async () => {
  const clock = createNotifyClock();
  const first = Promise.withResolvers<Attempt>();
  const sink = createScriptedSink(clock, (_, index) => (index === 0 ? first.promise : DELIVERED));
  const { log, lines } = recordingLog();
  const lane = createLane({ sink, clock, log, queueMax: 2 });
  // One is under way, two wait.
  const taken = Array.from({ length: 5 }, () => lane.offer(noticeAbout("a")));
  assert.deepEqual(taken, [true, true, true, false, false]);
  assert.deepEqual([lane.stats().dropped, lane.stats().queued], [2, 3]);
  assert.deepEqual(lines, [
    {
      level: "warn",
      message: "events were dropped: too many wait already",
      fields: { sink: "webhook", events: 1 },
    },
  ]);
  first.resolve(DELIVERED);
  await lane.idle();
  assert.equal(lane.stats().delivered, 3);
  assert.equal(lane.offer(noticeAbout("a")), true);
});

test("a failing sink has a line at once, then one a minute with what it is about, and one when it works again", async () => {
  const clock = createNotifyClock();
  let isWorking = false;
  const sink = createScriptedSink(clock, () => (isWorking ? DELIVERED : REFUSED));
  const { log, lines } = recordingLog();
  const lane = createLane({ sink, clock, log });
  for (let second = 0; second < 90; second += 1) {
    lane.offer(noticeAbout("a"));
    await clock.pass(SECOND);
  }
  const seconds = COMPLAINT_PAUSE_MS / SECOND;
  const expected = [
    { level: "warn", message: "events could not be delivered: answered 404", fields: { sink: "webhook", events: 1 } },
    {
      level: "warn",
      message: "events could not be delivered: answered 404",
      fields: { sink: "webhook", events: seconds },
    },
  ];
  assert.deepEqual(lines, expected);
  isWorking = true;
  for (let second = 0; second < 3; second += 1) {
    lane.offer(noticeAbout("a"));
    await clock.pass(SECOND);
  }
  const again = { level: "info", message: "events are delivered again", fields: { sink: "webhook", lost: 29 } };
  assert.deepEqual(lines, [...expected, again]);
});

test("closing gives up what waits, what is under way, and what pauses before its next attempt", async () => {
  const clock = createNotifyClock();
  const sink = createScriptedSink(clock, ({ subject }) => (subject === "failing" ? FAILED : NEVER));
  const lane = createLane({ sink, clock, log: recordingLog().log });
  for (const subject of ["hanging", "hanging", "failing"]) lane.offer(noticeAbout(subject));
  await settled();
  lane.close();
  await settled();
  assert.deepEqual(lane.stats(), { sink: "webhook", delivered: 0, failed: 0, dropped: 3, queued: 0 });
  assert.equal(sink.isClosed(), true);
  assert.equal(sink.attempts.length, 2);
  assert.equal(lane.offer(noticeAbout("late")), false);
});
