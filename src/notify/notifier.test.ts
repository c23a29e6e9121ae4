import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createNotifyClock,
  createScriptedSink,
  DELIVERED,
  NEVER,
  recordingLog,
  settled,
} from "../../tests/support/notify-lab.ts";
import { EVENT_TYPES, type EventInput } from "./event.ts";
import { FLUSH_MS } from "./limits.ts";
import { createNotifier, type NotifierOptions } from "./notifier.ts";
import type { Attempt } from "./sink.ts";

const TRANSITION: EventInput = { type: "health.check_transition", subject: "r1", data: { status: "unhealthy" } };

function lab(options: Partial<NotifierOptions> = {}, answer: () => Attempt | Promise<Attempt> = () => DELIVERED) {
  const clock = createNotifyClock();
  const sink = createScriptedSink(clock, answer);
  const { log, lines } = recordingLog();
  const notifier = createNotifier({
    sinks: [sink],
    nodeId: "n1",
    eventTypes: [],
    minIntervalMs: 60_000,
    clock,
    log,
    ...options,
  });
  const received = () => sink.attempts.map(({ notice }) => `${notice.type} ${notice.subject}`);
  return { clock, sink, notifier, lines, received };
}

test("all types are sent, or those that are listed", async () => {
  for (const eventTypes of [[], ["failover.activated", "backup.failed"] as const]) {
    const { notifier, received } = lab({ eventTypes });
    for (const type of EVENT_TYPES) notifier.emit({ type, subject: "s" });
    await settled();
    const expected = eventTypes.length === 0 ? EVENT_TYPES : eventTypes;
    assert.deepEqual(
      received(),
      expected.map((type) => `${type} s`),
    );
    // What nobody wants is no repeat either.
    assert.equal(notifier.stats().suppressed, 0);
  }
});

test("repeats are suppressed and counted, of the same type and subject only", async () => {
  const { notifier, received, clock } = lab();
  notifier.emit(TRANSITION);
  notifier.emit({ ...TRANSITION, data: { status: "healthy" } });
  notifier.emit({ ...TRANSITION, subject: "r2" });
  notifier.emit({ ...TRANSITION, type: "failover.activated" });
  await clock.pass(59_999);
  notifier.emit(TRANSITION);
  assert.equal(notifier.stats().suppressed, 2);
  await clock.pass(1);
  notifier.emit(TRANSITION);
  await settled();
  assert.deepEqual(received(), [
    "health.check_transition r1",
    "health.check_transition r2",
    "failover.activated r1",
    "health.check_transition r1",
  ]);
  assert.equal(notifier.stats().suppressed, 2);
});

test("an event that no sink had room for is not remembered as sent", async () => {
  const { notifier } = lab({ queueMax: 0 });
  notifier.emit(TRANSITION);
  notifier.emit(TRANSITION);
  const { dropped, suppressed } = notifier.stats();
  assert.deepEqual([dropped, suppressed], [2, 0]);
});

test("a sink that never answers holds up no other, and no caller", async () => {
  const clock = createNotifyClock();
  const hanging = createScriptedSink(clock, () => NEVER, "webhook");
  const working = createScriptedSink(clock, () => DELIVERED, "eventgrid");
  const { notifier } = lab({ sinks: [hanging, working], clock, minIntervalMs: 0, queueMax: 10 });
  for (let index = 0; index < 100; index += 1) {
    notifier.emit({ type: "health.check_transition", subject: `r${index}` });
    await settled();
  }
  assert.deepEqual(notifier.stats(), {
    lanes: [
      { sink: "webhook", delivered: 0, failed: 0, dropped: 86, queued: 14 },
      { sink: "eventgrid", delivered: 100, failed: 0, dropped: 0, queued: 0 },
    ],
    dropped: 86,
    suppressed: 0,
  });
});

test("without a sink every event is passed over", async () => {
  const { notifier } = lab({ sinks: [] });
  for (let index = 0; index < 3; index += 1) notifier.emit(TRANSITION);
  assert.deepEqual(notifier.stats(), { lanes: [], dropped: 0, suppressed: 0 });
  await notifier.close();
});

test("closing waits for what is under way, and takes no more", async () => {
  const answer = Promise.withResolvers<Attempt>();
  const { notifier, received, sink } = lab({}, () => answer.promise);
  notifier.emit(TRANSITION);
  const closed = notifier.close();
  notifier.emit({ ...TRANSITION, subject: "r2" });
  await settled();
  assert.equal(sink.isClosed(), false);
  answer.resolve(DELIVERED);
  await closed;
  assert.equal(sink.isClosed(), true);
  assert.equal(notifier.stats().lanes[0]?.delivered, 1);
  assert.deepEqual(received(), ["health.check_transition r1"]);
});

test("closing waits for a sink that does not answer no longer than the limit", async () => {
  const { notifier, clock, lines, sink } = lab({}, () => NEVER);
  for (let index = 0; index < 6; index += 1) notifier.emit({ ...TRANSITION, subject: `r${index}` });
  const closed = notifier.close();
  await clock.pass(FLUSH_MS - 1);
  assert.equal(sink.isClosed(), false);
  await clock.pass(1);
  await closed;
  await settled();
  assert.equal(sink.isClosed(), true);
  assert.deepEqual(lines, [
    { level: "warn", message: "events are given up: the node stops", fields: { sink: "webhook", events: 6 } },
  ]);
  assert.equal(notifier.stats().dropped, 6);
  // Closing again is the same closing.
  await notifier.close();
});
