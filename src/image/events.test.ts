import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  beginEvent,
  EVENT,
  EVENT_RING,
  type EventRing,
  endEvent,
  eventBytes,
  eventRing,
  takeEvents,
} from "./events.ts";
import { createSharedImage, EVENT_DATA_BYTES } from "./shared.ts";

function put(ring: EventRing, messageBytes: number, value: number): boolean {
  const length = eventBytes(messageBytes);
  const at = beginEvent(ring, length);
  if (at < 0) return false;
  ring.data.setUint32(at + EVENT.LENGTH, length, true);
  ring.data.setUint16(at + EVENT.MESSAGE_BYTES, messageBytes, true);
  ring.bytes.fill(value, at + EVENT.MESSAGE, at + EVENT.MESSAGE + messageBytes);
  endEvent(ring, at, length);
  return true;
}

function take(ring: EventRing, count: number): { readonly length: number; readonly values: Set<number> }[] {
  const events: { readonly length: number; readonly values: Set<number> }[] = [];
  takeEvents(ring, count, (at) => {
    const length = ring.data.getUint16(at + EVENT.MESSAGE_BYTES, true);
    events.push({ length, values: new Set(ring.bytes.subarray(at + EVENT.MESSAGE, at + EVENT.MESSAGE + length)) });
  });
  return events;
}

test("events arrive in order and whole; what finds no room is refused, and room comes back", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ puts: fc.array(fc.integer({ min: 12, max: 65_535 }), { maxLength: 30 }), takes: fc.nat(30) }),
      ),
      fc.constantFrom(0, -(2 ** 20), 2 ** 31 - 4096),
      (rounds, start) => {
        const ring = eventRing(createSharedImage(1), 3);
        ring.words[EVENT_RING.HEAD] = start;
        ring.words[EVENT_RING.TAIL] = start;
        const expected: { readonly length: number; readonly values: Set<number> }[] = [];
        let value = 0;
        for (const { puts, takes } of rounds) {
          for (const length of puts) {
            value = (value + 1) & 0xff;
            if (put(ring, length, value)) expected.push({ length, values: new Set([value]) });
            else assert.ok(expected.reduce((sum, each) => sum + eventBytes(each.length), 0) > EVENT_DATA_BYTES / 2);
          }
          assert.deepEqual(take(ring, takes), expected.splice(0, takes));
        }
        assert.deepEqual(take(ring, 10_000), expected);
        assert.ok(put(ring, 65_535, 1));
      },
    ),
    { numRuns: 100 },
  );
});

test("an event that its thread died over is as if it had never been", () => {
  const ring = eventRing(createSharedImage(1), 0);
  assert.ok(put(ring, 20, 1));
  assert.ok(beginEvent(ring, eventBytes(500)) >= 0);
  assert.ok(put(ring, 30, 2));
  assert.deepEqual(
    take(ring, 10).map(({ length }) => length),
    [20, 30],
  );
});
