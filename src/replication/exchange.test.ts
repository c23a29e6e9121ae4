import assert from "node:assert/strict";
import test from "node:test";
import { compareVersions } from "./exchange.ts";

test("what one side has and the other has not goes there, and what differs goes both ways", async () => {
  const versions = (given: Readonly<Record<string, string>>) =>
    Object.entries(given).map(([ref, version]) => ({ ref, version }));
  const mine = versions({ same: "1", changed: "1", onlyHere: "1" });
  const theirs = versions({ same: "1", changed: "2", onlyThere: "1" });
  assert.deepEqual(await compareVersions(mine, theirs, () => Promise.resolve()), {
    here: ["changed", "onlyHere"],
    there: ["changed", "onlyThere"],
  });
});
