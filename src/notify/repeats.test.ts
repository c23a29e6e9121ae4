import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EVENT_TYPES, type EventInput } from "./event.ts";
import { createRepeats } from "./repeats.ts";

const EVENT = fc.record({
  type: fc.constantFrom(...EVENT_TYPES.slice(0, 2)),
  subject: fc.constantFrom("a", "b", "c"),
});

test("an event is a repeat within the interval from the one of its type and subject that was sent", () => {
  const steps = fc.array(fc.record({ event: EVENT, waitMs: fc.nat(40) }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 100 }), (events, intervalMs) => {
      let nowMs = 0;
      const repeats = createRepeats(intervalMs, () => nowMs);
      const sentMs = new Map<string, number>();
      for (const { event, waitMs } of events) {
        nowMs += waitMs;
        const key = `${event.type}/${event.subject}`;
        const isRepeat = nowMs - (sentMs.get(key) ?? Number.NEGATIVE_INFINITY) < intervalMs;
        assert.equal(repeats.isRepeat(event), isRepeat);
        if (isRepeat) continue;
        repeats.remember(event);
        sentMs.set(key, nowMs);
      }
    }),
  );
});

test("an interval of 0 knows no repeats", () => {
  const repeats = createRepeats(0, () => 0);
  const event: EventInput = { type: "backup.failed", subject: "backup" };
  repeats.remember(event);
  assert.equal(repeats.isRepeat(event), false);
});

test("what is remembered is bounded: the one that was sent the longest ago is forgotten", () => {
  let nowMs = 0;
  const repeats = createRepeats(1_000, () => nowMs, 3);
  const about = (subject: string): EventInput => ({ type: "health.check_transition", subject });
  for (const subject of ["a", "b", "c"]) {
    nowMs += 1;
    repeats.remember(about(subject));
  }
  nowMs += 1;
  // Sent anew, "a" is the latest.
  repeats.remember(about("a"));
  repeats.remember(about("d"));
  assert.deepEqual(
    ["a", "b", "c", "d"].map((subject) => repeats.isRepeat(about(subject))),
    [true, false, true, true],
  );
});
