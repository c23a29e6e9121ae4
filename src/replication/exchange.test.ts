import assert from "node:assert/strict";
import test from "node:test";
import { compareVersions, staleSide } from "./exchange.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 1_000 * DAY_MS;

const status = (nodeId: string, agreedDaysAgo: number | undefined, isComplete = true) => {
  const lastAgreementMs = agreedDaysAgo === undefined ? 0 : NOW_MS - agreedDaysAgo * DAY_MS;
  return { nodeId, lastAgreementMs, collectedUpToMs: 0, isComplete };
};

test("the side that was away for longer than deletions are kept begins anew, and of two such always the same one", () => {
  const cases = [
    { left: status("a", 0), right: status("b", 0), stale: "none" },
    { left: status("a", 29), right: status("b", 0), stale: "none" },
    { left: status("a", 31), right: status("b", 0), stale: "a" },
    // Never agreed with anybody: it holds nothing that was deleted elsewhere.
    { left: status("a", undefined), right: status("b", 0), stale: "none" },
    { left: status("a", 31), right: status("b", undefined), stale: "a" },
    // Nobody gives up what it has for one that has nothing yet.
    { left: status("a", 31), right: status("b", undefined, false), stale: "none" },
    { left: status("a", 50), right: status("b", 40), stale: "a" },
    { left: status("a", 40), right: status("b", 40), stale: "b" },
  ];
  for (const { left, right, stale } of cases) {
    const nameOf = (side: "mine" | "theirs" | "none", mine: string, theirs: string) =>
      side === "none" ? side : side === "mine" ? mine : theirs;
    assert.equal(nameOf(staleSide(left, right, NOW_MS), "a", "b"), stale);
    assert.equal(nameOf(staleSide(right, left, NOW_MS), "b", "a"), stale);
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
