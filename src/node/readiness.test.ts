import assert from "node:assert/strict";
import { test } from "node:test";
import { readinessOf } from "./management.ts";
import { countRestart, createNodeStatus, restartsOf, setRunning, setStopping, setZonesServed } from "./status.ts";

test("ready is who serves every zone with every thread and does not stop", () => {
  const status = createNodeStatus(["control", "stream", "answer-0"]);
  const notReady = () =>
    Object.entries(readinessOf(status).components).flatMap(([name, { ready }]) => (ready ? [] : [name]));
  assert.deepEqual(notReady(), ["zones", "threads"]);
  setZonesServed(status, true);
  for (const thread of status.threads) setRunning(status, thread, true);
  assert.deepEqual(notReady(), []);
  assert.equal(readinessOf(status).ready, true);
  setRunning(status, "stream", false);
  assert.deepEqual(notReady(), ["threads"]);
  assert.equal(readinessOf(status).components.threads?.detail, "not running: stream");
  setRunning(status, "stream", true);
  setStopping(status);
  assert.deepEqual(notReady(), ["lifecycle"]);
  assert.equal(readinessOf(status).ready, false);
});

test("restarts are counted by thread", () => {
  const status = createNodeStatus(["control", "stream"]);
  countRestart(status, "stream");
  countRestart(status, "stream");
  assert.deepEqual(
    status.threads.map((thread) => restartsOf(status, thread)),
    [0, 2],
  );
  assert.throws(() => restartsOf(status, "other"));
});
