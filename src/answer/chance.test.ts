import assert from "node:assert/strict";
import test from "node:test";
import { createChance, drawBelow } from "./chance.ts";

test("numbers as the authors' program makes them, by the test data of xoshiro-6502", () => {
  const state = Int32Array.of(0x964d4a0c, 0xd40ab895, 0xad7fdecb, 0x3006f0f0);
  const drawn = Array.from({ length: 4 }, () => drawBelow(state, 2 ** 32));
  assert.deepEqual(drawn, [0xf1391922, 0x6fe53806, 0xa5be2840, 0xf510ee70]);
  assert.deepEqual([...state], [...Int32Array.of(0xfc65379c, 0x52006d70, 0x87487639, 0xf1908343)]);
});

test("each number below the bound is as likely", () => {
  const state = createChance();
  const counts = new Int32Array(7);
  for (let draw = 0; draw < 700_000; draw++) counts[drawBelow(state, 7)]!++;
  for (const count of counts) assert.ok(Math.abs(count - 100_000) < 2_500, `${count}`);
});

test("two answerers begin differently", () => {
  assert.notDeepEqual(createChance(), createChance());
});
