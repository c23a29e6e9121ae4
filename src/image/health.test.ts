import assert from "node:assert/strict";
import test from "node:test";
import { HEALTH, openHealthSlots, releaseHealthSlot, setHealth, takeHealthSlot } from "./health.ts";
import { createSharedImage, HEALTH_SLOTS } from "./shared.ts";
import { enterImage, leaveImage, openView } from "./view.ts";

test("slots are distinct, begin unknown, and slot 0 is nobody's", () => {
  const slots = openHealthSlots(createSharedImage(1));
  const taken = Array.from({ length: 1_000 }, () => takeHealthSlot(slots));
  assert.equal(new Set(taken).size, taken.length);
  assert.ok(!taken.includes(0));
  assert.ok(taken.every((slot) => slots.words[slot * 2] === HEALTH.UNKNOWN && slots.words[slot * 2 + 1] === 0));
});

test("a verdict is one word of its slot and touches no other", () => {
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const [before, slot, behind] = [takeHealthSlot(slots), takeHealthSlot(slots), takeHealthSlot(slots)];
  setHealth(slots.words, slot, HEALTH.UNHEALTHY, 1_234);
  const words = new Int32Array(shared.health);
  assert.deepEqual([...words.subarray(slot * 2, slot * 2 + 2)], [HEALTH.UNHEALTHY, 1_234]);
  for (const other of [before, behind]) assert.deepEqual([...words.subarray(other * 2, other * 2 + 2)], [0, 0]);
});

test("a slot is given to another probe only when no reader is left that could hold it, and then unknown again", () => {
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const view = openView(shared);
  const slot = takeHealthSlot(slots);
  setHealth(slots.words, slot, HEALTH.HEALTHY, 9);
  enterImage(view, 2);
  releaseHealthSlot(slots, slot);
  assert.notEqual(takeHealthSlot(slots), slot);
  assert.equal(slots.words[slot * 2], HEALTH.HEALTHY, "a reader may still read it");
  leaveImage(view, 2);
  enterImage(view, 2);
  assert.equal(takeHealthSlot(slots), slot);
  assert.deepEqual([...slots.words.subarray(slot * 2, slot * 2 + 2)], [HEALTH.UNKNOWN, 0]);
});

test("the last slot can be taken, one more is a RangeError, and a released one can be had again", () => {
  const slots = openHealthSlots(createSharedImage(1));
  slots.next = HEALTH_SLOTS - 1;
  const last = takeHealthSlot(slots);
  assert.equal(last, HEALTH_SLOTS - 1);
  assert.throws(() => takeHealthSlot(slots), RangeError);
  assert.throws(() => takeHealthSlot(slots), RangeError);
  releaseHealthSlot(slots, last);
  assert.equal(takeHealthSlot(slots), last);
});
