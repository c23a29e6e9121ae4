import assert from "node:assert/strict";
import { test } from "node:test";
import { createNotes } from "./notes.ts";
import { NOTED_AGAIN_MS, NOTED_MAX, NOTED_MS } from "./settings.ts";

function lab() {
  const lines: string[] = [];
  const clock = { nowMs: 1_000 };
  const timers = { now: () => clock.nowMs, after: () => () => undefined };
  const notes = createNotes((_, message) => void lines.push(message), timers);
  return { ...notes, lines, clock };
}

test("a line is said once an hour, and again where what it says was mended and came back", () => {
  const { note, mended, lines, clock } = lab();
  for (let count = 0; count < 3; count++) note("warn", "a has another key", "a");
  note("warn", "b has another key", "b");
  assert.deepEqual(lines, ["a has another key", "b has another key"]);
  mended("a");
  // One of two at that address is well and the other is not: they do not take turns in the log.
  note("warn", "a has another key", "a");
  assert.equal(lines.length, 2);
  clock.nowMs += NOTED_AGAIN_MS;
  for (let count = 0; count < 3; count++) note("warn", "a has another key", "a");
  note("warn", "b has another key", "b");
  assert.deepEqual(lines.slice(2), ["a has another key"]);
  clock.nowMs += NOTED_MS;
  note("warn", "b has another key", "b");
  assert.deepEqual(lines.slice(3), ["b has another key"]);
});

test("however often something is mended and amiss again, an hour has so many lines", () => {
  const { note, mended, lines, clock } = lab();
  for (let count = 0; count < 2 * NOTED_MAX; count++) {
    note("warn", `${count} has another key`, `${count}`);
    mended(`${count}`);
  }
  clock.nowMs += NOTED_AGAIN_MS;
  for (let count = 0; count < NOTED_MAX; count++) note("warn", `${count} has another key`, `${count}`);
  assert.equal(lines.length, NOTED_MAX + 1);
  assert.match(lines.at(-1) ?? "", /not logged within this hour/);
});
