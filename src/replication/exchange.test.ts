import assert from "node:assert/strict";
import test from "node:test";
import { compareVersions, staleSide } from "./exchange.ts";

const status = (nodeId: string, lastAgreementMs: number, collectedUpToMs: number) => {
  return { nodeId, lastAgreementMs, collectedUpToMs, isComplete: true };
};

test("the side that missed a collection begins anew, and of two such always the same one", () => {
  const cases = [
    { left: status("a", 10, 5), right: status("b", 10, 5), stale: "none" },
    // Never agreed with anybody: it holds nothing that was deleted elsewhere.
    { left: status("a", 0, 0), right: status("b", 10, 5), stale: "none" },
    { left: status("a", 4, 0), right: status("b", 10, 5), stale: "a" },
    { left: status("a", 4, 9), right: status("b", 5, 9), stale: "a" },
    { left: status("a", 5, 9), right: status("b", 5, 9), stale: "b" },
  ];
  for (const { left, right, stale } of cases) {
    const nameOf = (side: "mine" | "theirs" | "none", mine: string, theirs: string) =>
      side === "none" ? side : side === "mine" ? mine : theirs;
    assert.equal(nameOf(staleSide(left, right), "a", "b"), stale);
    assert.equal(nameOf(staleSide(right, left), "b", "a"), stale);
  }
});

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
