import assert from "node:assert/strict";
import { test } from "node:test";
import { readinessOf, storeComponent } from "./management.ts";
import { countRestart, createNodeStatus, restartsOf, setRunning, setStopping } from "./status.ts";

test("ready is who has opened everything, runs every thread and does not stop", () => {
  const status = createNodeStatus(["control", "health", "resolve", "stream", "answer-0"]);
  const opened = { store: { ready: false, detail: "is being opened" } };
  const open = { store: { ready: true, detail: "2 zones" } };
  const notReady = (components = open) =>
    Object.entries(readinessOf(status, components).components).flatMap(([name, { ready }]) => (ready ? [] : [name]));
  assert.deepEqual(notReady(opened), ["store", "threads"]);
  for (const thread of status.threads) setRunning(status, thread, true);
  assert.deepEqual(notReady(opened), ["store"]);
  assert.equal(readinessOf(status, opened).ready, false);
  assert.deepEqual(notReady(), []);
  assert.equal(readinessOf(status, open).ready, true);
  for (const thread of ["health", "resolve"]) setRunning(status, thread, false);
  assert.deepEqual(readinessOf(status, open).components.threads, { ready: true, detail: "3 threads run" });
  setRunning(status, "stream", false);
  assert.deepEqual(notReady(), ["threads"]);
  assert.equal(readinessOf(status, open).components.threads?.detail, "not running: stream");
  setRunning(status, "stream", true);
  setStopping(status);
  assert.deepEqual(notReady(), ["lifecycle"]);
  assert.equal(readinessOf(status, open).ready, false);
});

test("a store that cannot be written any more is not ready, and says why", () => {
  assert.deepEqual(storeComponent(undefined, 2, 30), { ready: true, detail: "2 zones, 30 records" });
  const { ready, detail } = storeComponent("no space left on the disk", 2, 30);
  assert.equal(ready, false);
  assert.match(detail, /no space left on the disk$/);
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
