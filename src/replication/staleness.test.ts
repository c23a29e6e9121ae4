import assert from "node:assert/strict";
import test from "node:test";
import { agreementsWith, currentOf, knownTo, type StatusOf, staleSide } from "./staleness.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 1_000 * DAY_MS;

const status = (nodeId: string, agreedDaysAgo: number | undefined, isComplete = true) => {
  const lastAgreementMs = agreedDaysAgo === undefined ? 0 : NOW_MS - agreedDaysAgo * DAY_MS;
  return { nodeId, lastAgreementMs, collectedUpToMs: 0, isComplete, agreements: {} };
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

/** A store that has agreed with others, each so many days ago. */
function knowing(nodeId: string, daysAgo: Readonly<Record<string, number>>): StatusOf {
  const agreements = Object.fromEntries(
    Object.entries(daysAgo).map(([other, days]) => [other, NOW_MS - days * DAY_MS]),
  );
  const lastAgreementMs = Math.max(0, ...Object.values(agreements));
  return { nodeId, lastAgreementMs, collectedUpToMs: 0, isComplete: true, agreements };
}

function staleOf(left: StatusOf, right: StatusOf): string {
  const sides = [staleSide(left, right, NOW_MS), staleSide(right, left, NOW_MS)];
  const opposite = { mine: "theirs", theirs: "mine", none: "none" } as const;
  assert.equal(sides[1], opposite[sides[0] ?? "none"], "the two do not say the same");
  return sides[0] === "none" ? "none" : sides[0] === "mine" ? left.nodeId : right.nodeId;
}

test("of two halves that were apart for too long one begins anew, whoever of them meet first", () => {
  const left = [knowing("a", { d: 0, b: 40, c: 40 }), knowing("d", { a: 0, b: 40, c: 40 })];
  const right = [knowing("b", { c: 0, a: 40, d: 40 }), knowing("c", { b: 0, a: 40, d: 40 })];
  for (const each of left) for (const other of right) assert.equal(staleOf(each, other), other.nodeId);
  // More of them keep what they have, whatever they are called.
  const more = [...right.slice(1), knowing("b", { c: 0, e: 1, a: 40, d: 40 })];
  assert.equal(staleOf(left[0] as StatusOf, more[1] as StatusOf), "a");
  // Who has begun anew has what the other half has, and the rest of its own half follows.
  const moved = knowing("c", { a: 0, d: 0, b: 40 });
  assert.equal(staleOf(moved, right[0] as StatusOf), "b");
});

test("who lacks what a third node deleted begins anew, though it agreed with somebody yesterday", () => {
  // x came back to a after 29 days, and b has not met either since the day before that.
  const a = knowing("a", { b: 3, x: 2 });
  const b = knowing("b", { a: 3, x: 32, y: 1 });
  assert.equal(staleOf(a, b), "b");
  assert.equal(staleOf(a, knowing("b", { a: 3, x: 28 })), "none");
  // A node that is gone for good, of which both know the same.
  assert.equal(staleOf(knowing("a", { b: 1, x: 70 }), knowing("b", { a: 1, x: 70 })), "none");
  // One that joined while b was away.
  assert.equal(staleOf(knowing("a", { b: 3, new: 0 }), knowing("b", { a: 3 })), "none");
  // A peer of an older version says nothing.
  assert.equal(staleOf(knowing("a", { b: 40, x: 1 }), status("b", 0)), "a");
});

test("who agrees with a peer has what that had of others, and forgets what is long past", () => {
  const theirs = knowing("b", { a: 1, x: 2, y: 5, gone: 91, ahead: -3 });
  const now = NOW_MS;
  assert.deepEqual(agreementsWith({ x: now - 9 * DAY_MS, y: now - 3 * DAY_MS }, "a", theirs, now), {
    b: now,
    ahead: now,
    x: now - 2 * DAY_MS,
    y: now - 3 * DAY_MS,
  });
  const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`n${index}`, now - index]));
  assert.equal(Object.keys(agreementsWith(many, "a", theirs, now)).length, 1_000);
});

test("what a peer cannot know is what was written after it last agreed with its writer", () => {
  const known = knownTo(knowing("b", { a: 40, c: 0, x: 50 }), "a", NOW_MS);
  assert.deepEqual(
    ["b", "c", "x", "a", "unknown"].map((node) => (NOW_MS - (known?.(node) ?? 0)) / DAY_MS),
    [0, 0, 50, 40, 40],
  );
  assert.equal(knownTo(status("b", 0), "a", NOW_MS), undefined);
});

test("a node that begins takes nothing from one that has to begin anew itself", () => {
  const [stays, goes] = [knowing("a", { d: 0, b: 40, c: 40 }), knowing("b", { c: 0, a: 40, d: 40 })];
  const told = [goes, stays, status("z", 31)].map((each) => ({ status: each }));
  assert.deepEqual(
    currentOf(told, NOW_MS).map(({ status: { nodeId } }) => nodeId),
    ["a"],
  );
});
