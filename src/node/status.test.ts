import assert from "node:assert/strict";
import { test } from "node:test";
import { createNodeStatus, giveLifeSign, isAlive, setRunning } from "./status.ts";

test("a thread that does not run yet has longer for a sign of life than one that runs", () => {
  const status = createNodeStatus(["resolve"]);
  giveLifeSign(status, "resolve");
  assert.equal(isAlive(status, "resolve", 0), true);
  setRunning(status, "resolve", true);
  assert.equal(isAlive(status, "resolve", 0), false);
  assert.equal(isAlive(status, "resolve", 100_000), true);
  setRunning(status, "resolve", false);
  assert.equal(isAlive(status, "resolve", 0), true);
});

test("what never gave one is not alive, whether it runs or not", () => {
  const status = createNodeStatus(["resolve"]);
  assert.equal(isAlive(status, "resolve", 0), false);
  setRunning(status, "resolve", true);
  assert.equal(isAlive(status, "resolve", 0), false);
});
