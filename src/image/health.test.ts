import assert from "node:assert/strict";
import test from "node:test";
import {
  dropUnheld,
  HEALTH,
  HEALTH_WORD,
  type HealthSlots,
  healthOf,
  latencyUsOf,
  openHealthSlots,
  releaseHealthSlot,
  setHealth,
  takeHealthSlot,
} from "./health.ts";
import { createSharedImage, HEALTH_SLOTS } from "./shared.ts";
import { enterImage, leaveImage, openView } from "./view.ts";

const keyOf = (number: number): string => number.toString(16).padStart(16, "0");

function wordsOf({ words }: HealthSlots, slot: number): number[] {
  const verdict = words[HEALTH_WORD.VERDICT + slot]!;
  return [healthOf(verdict), latencyUsOf(verdict)];
}

test("slots are distinct, begin unknown, and slot 0 is nobody's", () => {
  const slots = openHealthSlots(createSharedImage(1));
  const taken = Array.from({ length: 1_000 }, (_, index) => takeHealthSlot(slots, keyOf(index + 1)));
  assert.equal(new Set(taken).size, taken.length);
  assert.ok(!taken.includes(0));
  for (const slot of taken) assert.deepEqual(wordsOf(slots, slot), [HEALTH.UNKNOWN, 0]);
});

test("a verdict is one word of its slot and touches no other", () => {
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const [before, slot, behind] = ["a", "b", "c"].map((digit) => takeHealthSlot(slots, digit.repeat(16))) as [
    number,
    number,
    number,
  ];
  setHealth(slots.words, slot, HEALTH.UNHEALTHY, 1_234);
  assert.deepEqual(wordsOf(slots, slot), [HEALTH.UNHEALTHY, 1_234]);
  for (const other of [before, behind]) assert.deepEqual(wordsOf(slots, other), [HEALTH.UNKNOWN, 0]);
});

test("a latency that is longer than a verdict has room for is the longest, and the state stays what it is", () => {
  const slots = openHealthSlots(createSharedImage(1));
  const slot = takeHealthSlot(slots, keyOf(1));
  for (const latencyUs of [2 ** 30 - 1, 2 ** 30, 2 ** 31 - 1]) {
    setHealth(slots.words, slot, HEALTH.HEALTHY, latencyUs);
    assert.deepEqual(wordsOf(slots, slot), [HEALTH.HEALTHY, 2 ** 30 - 1]);
  }
});

test("what stands for no probe is unknown and has no latency, however many slots are taken", () => {
  const slots = openHealthSlots(createSharedImage(1));
  for (let index = 1; index <= 10; index++) takeHealthSlot(slots, keyOf(index));
  assert.deepEqual(wordsOf(slots, 0), [HEALTH.UNKNOWN, 0]);
});

test("one probe has one slot, and keeps it until its last holder lets go", () => {
  const slots = openHealthSlots(createSharedImage(1));
  const key = "fedcba9876543210";
  const slot = takeHealthSlot(slots, key);
  assert.equal(takeHealthSlot(slots, key), slot);
  assert.equal(releaseHealthSlot(slots, key), false);
  assert.equal(takeHealthSlot(slots, key), slot);
  assert.equal(releaseHealthSlot(slots, key), false);
  assert.equal(releaseHealthSlot(slots, key), true);
  assert.equal(releaseHealthSlot(slots, key), false, "nobody has it");
  assert.equal(slots.byKey.size, 0);
});

test("a slot is given to another probe only when no reader is left that could hold it, and then unknown again", () => {
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const view = openView(shared);
  const slot = takeHealthSlot(slots, keyOf(1));
  setHealth(slots.words, slot, HEALTH.HEALTHY, 9);
  enterImage(view, 2);
  releaseHealthSlot(slots, keyOf(1));
  assert.notEqual(takeHealthSlot(slots, keyOf(2)), slot);
  assert.equal(wordsOf(slots, slot)[0], HEALTH.HEALTHY, "a reader may still read it");
  leaveImage(view, 2);
  enterImage(view, 2);
  assert.equal(takeHealthSlot(slots, keyOf(3)), slot);
  assert.deepEqual(wordsOf(slots, slot), [HEALTH.UNKNOWN, 0]);
});

test("a successor finds each probe in its slot with its state, and gives back what nobody takes", () => {
  const shared = createSharedImage(1);
  const former = openHealthSlots(shared);
  const kept = takeHealthSlot(former, "8000000000000001");
  const left = takeHealthSlot(former, "00000001ffffffff");
  const given = takeHealthSlot(former, "1234567812345678");
  setHealth(former.words, kept, HEALTH.UNHEALTHY, 77);
  releaseHealthSlot(former, "1234567812345678");
  const slots = openHealthSlots(shared);
  const fresh = takeHealthSlot(slots, keyOf(5));
  assert.equal(takeHealthSlot(slots, "8000000000000001"), kept);
  assert.deepEqual(wordsOf(slots, kept), [HEALTH.UNHEALTHY, 77]);
  assert.notEqual(fresh, left, "an RRset of the image may still name it");
  assert.ok(fresh === given || fresh > left);
  dropUnheld(slots);
  const later = [takeHealthSlot(slots, keyOf(6)), takeHealthSlot(slots, keyOf(7))];
  assert.ok(later.includes(left), "given back, and free again");
  assert.equal(takeHealthSlot(slots, "8000000000000001"), kept);
});

test("the last slot can be taken, one more is a RangeError, and a released one can be had again", () => {
  const slots = openHealthSlots(createSharedImage(1));
  slots.next = HEALTH_SLOTS - 1;
  const last = takeHealthSlot(slots, keyOf(1));
  assert.equal(last, HEALTH_SLOTS - 1);
  assert.throws(() => takeHealthSlot(slots, keyOf(2)), RangeError);
  assert.throws(() => takeHealthSlot(slots, keyOf(2)), RangeError);
  releaseHealthSlot(slots, keyOf(1));
  assert.equal(takeHealthSlot(slots, keyOf(2)), last);
});

test("a hundred thousand slots that come back at once are used again without anybody standing still", () => {
  const slots = openHealthSlots(createSharedImage(1));
  const count = 100_000;
  for (let number = 1; number <= count; number++) takeHealthSlot(slots, keyOf(number));
  for (let number = 1; number <= count; number++) releaseHealthSlot(slots, keyOf(number));
  const startMs = performance.now();
  const again = Array.from({ length: count }, (_, index) => takeHealthSlot(slots, keyOf(count + index + 1)));
  const tookMs = performance.now() - startMs;
  assert.equal(new Set(again).size, count);
  assert.ok(Math.max(...again.slice(0, count / 2)) <= count, "slots that came back are taken first");
  assert.ok(tookMs < 3_000, `all of them took ${Math.round(tookMs)} ms; moved one by one they take twenty seconds`);
});
