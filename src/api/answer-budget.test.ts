import assert from "node:assert/strict";
import test from "node:test";
import { Refusal } from "../model/refusal.ts";
import { createAnswerBudget } from "./answer-budget.ts";
import { ANSWERS_BYTES_MAX, ANSWERS_BYTES_PER_ADDRESS_MAX, STREAM_BYTES_HELD } from "./limits.ts";

const EACH = ANSWERS_BYTES_PER_ADDRESS_MAX / STREAM_BYTES_HELD;

function isNotReady(error: unknown): boolean {
  return error instanceof Refusal && error.code === "not_ready" && error.members.retry_after === 1;
}

test("an address has a quarter of the room, all together have all of it, and an end gives it back once", () => {
  const budget = createAnswerBudget();
  const shares = ["a", "b", "c", "d"].flatMap((key) =>
    Array.from({ length: EACH }, () => {
      const share = budget.open(key);
      share.requireRoom();
      share.reserve();
      return share;
    }),
  );
  assert.equal(budget.usedBytes(), ANSWERS_BYTES_MAX);
  assert.throws(() => budget.open("a").requireRoom(), isNotReady);
  assert.throws(() => budget.open("e").reserve(), isNotReady);
  for (const share of shares.slice(0, EACH)) {
    share.end();
    share.end();
    share.settle(5);
  }
  assert.equal(budget.usedBytes(), ANSWERS_BYTES_MAX - ANSWERS_BYTES_PER_ADDRESS_MAX);
  assert.throws(() => budget.open("b").reserve(), isNotReady);
  budget.open("a").reserve();
});

test("an answer counts as what it is once it is made, and is then not refused", () => {
  const budget = createAnswerBudget();
  const share = budget.open("a");
  share.reserve();
  share.settle(10);
  assert.equal(budget.usedBytes(), 10);
  budget.open("a").settle(ANSWERS_BYTES_PER_ADDRESS_MAX);
  assert.throws(() => budget.open("a").reserve(), isNotReady);
  share.end();
  assert.equal(budget.usedBytes(), ANSWERS_BYTES_PER_ADDRESS_MAX);
});
