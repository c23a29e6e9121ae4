import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addDue, type Due, removeDue } from "./due-queue.ts";

const STEP = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), dueMs: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ kind: fc.constant("take" as const) }),
  fc.record({ kind: fc.constant("remove" as const), which: fc.nat(100) }),
);

test("the first is always one of the earliest, whatever was added, taken and removed", () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 200 }), (steps) => {
      const queue: Due[] = [];
      const model = new Set<Due>();
      for (const step of steps) {
        if (step.kind === "add") {
          const item = { dueMs: step.dueMs, place: -1 };
          addDue(queue, item);
          model.add(item);
        } else {
          const item = step.kind === "take" ? queue[0] : [...model][step.which % Math.max(model.size, 1)];
          if (item === undefined) continue;
          removeDue(queue, item);
          model.delete(item);
          assert.equal(item.place, -1);
          removeDue(queue, item);
        }
        assert.equal(queue.length, model.size);
        assert.equal(queue[0]?.dueMs ?? Infinity, Math.min(...[...model].map(({ dueMs }) => dueMs)));
        for (const [place, item] of queue.entries()) assert.equal(item.place, place);
      }
    }),
  );
});
