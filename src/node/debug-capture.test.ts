import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createDebugCapture } from "./debug-capture.ts";

function lab() {
  const world = { dropped: 0, changes: 0, nowMs: Date.UTC(2026, 0, 1) };
  const capture = createDebugCapture({
    nodeId: "n",
    nowMs: () => world.nowMs,
    eventsDropped: () => world.dropped,
    onChange: () => {
      world.changes++;
    },
  });
  return { world, capture };
}

const numbered = (from: number, count: number): string[] => Array.from({ length: count }, (_, at) => `${from + at}`);

test("a window ends when its time is over, and a later one that was asked for takes its place", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { capture, world } = lab();
    assert.equal(capture.isOpen(), false);
    capture.view.enable(60);
    assert.equal(capture.view.status().expires_at, "2026-01-01T00:01:00.000Z");
    mock.timers.tick(59_000);
    capture.view.enable(60);
    mock.timers.tick(59_000);
    assert.ok(capture.isOpen());
    mock.timers.tick(1_000);
    assert.equal(capture.isOpen(), false);
    assert.deepEqual([capture.view.status().enabled, capture.view.status().expires_at], [false, null]);
    assert.equal(world.changes, 3);
    capture.view.disable();
    assert.equal(world.changes, 3);
  } finally {
    mock.timers.reset();
  }
});

test("what is dropped: pushed out, lost on its way, and events without room while a window is open", () => {
  const { capture, world } = lab();
  world.dropped = 1_000;
  capture.view.enable(60);
  capture.take(numbered(0, 600), 0);
  world.dropped += 7;
  assert.equal(capture.view.tail().dropped, 7);
  capture.take(numbered(600, 600), 30);
  const { lines, dropped, capacity } = capture.view.tail();
  assert.deepEqual([lines[0], lines.at(-1), lines.length, dropped, capacity], ["200", "1199", 1_000, 237, 1_000]);
  world.dropped += 3;
  capture.view.disable();
  world.dropped += 100;
  assert.equal(capture.view.tail().dropped, 240);
  // What was on its way at the end still comes.
  capture.take(["late"], 0);
  assert.equal(capture.view.tail().lines.at(-1), "late");
  assert.equal(capture.view.clear(), 1_000);
  assert.deepEqual(capture.view.tail(), { node_id: "n", dropped: 0, capacity: 1_000, lines: [] });
  capture.view.enable(60);
  assert.equal(capture.view.tail().dropped, 0);
  capture[Symbol.dispose]();
});
