import assert from "node:assert/strict";
import { test } from "node:test";
import { createVirtualTime } from "../../tests/support/replication-network.ts";
import { createLongAnswers, LONG_ANSWER_PLACE_MS, LONG_ANSWERS_AT_ONCE, LONG_ANSWERS_OF_PEER } from "./long-answers.ts";

test("long answers have some places, fewer of one peer, and none that is kept for ever", async () => {
  const time = createVirtualTime();
  const { inTurn } = createLongAnswers(time.timers);
  let made = 0;
  const begin = (nodeId: string) => {
    const parts = inTurn(nodeId, async function* () {
      made++;
      yield "first";
      yield "last";
    });
    return { parts, first: parts.next() };
  };
  const greedy = Array.from({ length: LONG_ANSWERS_OF_PEER }, () => begin("greedy"));
  await assert.rejects(begin("greedy").first, /too many/);
  const others = Array.from({ length: LONG_ANSWERS_AT_ONCE }, (_, at) => begin(`other-${at}`));
  await Promise.all(greedy.map(({ first }) => first));
  const left = LONG_ANSWERS_AT_ONCE - LONG_ANSWERS_OF_PEER;
  await Promise.all(others.slice(0, left).map(({ first }) => first));
  assert.equal(made, LONG_ANSWERS_AT_ONCE);
  // Who goes away frees its place, and so does who has everything.
  await greedy[0]?.parts.return(undefined);
  await others[left]?.first;
  assert.equal(made, LONG_ANSWERS_AT_ONCE + 1);
  await greedy[1]?.parts.next();
  await greedy[1]?.parts.next();
  await others[left + 1]?.first;
  const late = begin("late");
  await time.pass(1);
  assert.equal(made, LONG_ANSWERS_AT_ONCE + 2);
  await time.pass(LONG_ANSWER_PLACE_MS);
  assert.equal((await late.first).value, "first");
});
