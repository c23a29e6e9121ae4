import assert from "node:assert/strict";
import { test } from "node:test";
import { createNotices, isoTime } from "./notice.ts";

test("times are those of the clock, and ids never repeat, whatever the clock does", () => {
  let nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const noticeOf = createNotices("n1", () => nowMs);
  const make = () => noticeOf({ type: "backup.failed", subject: "backup" });
  const first = make();
  assert.equal(isoTime(first), "2026-01-02T03:04:05.678Z");
  assert.equal(first.timeNs, BigInt(nowMs) * 1_000_000n);
  const second = make();
  nowMs -= 60_000;
  const third = make();
  nowMs += 3_600_000;
  const fourth = make();
  const ids = [first, second, third, fourth].map(({ timeNs }) => timeNs);
  assert.deepEqual(ids, [...ids].sort());
  assert.equal(new Set(ids).size, 4);
  assert.equal(fourth.timeNs, BigInt(nowMs) * 1_000_000n);
});

test("the data names the subject, whatever else it holds", () => {
  const noticeOf = createNotices("n1", () => 0);
  const data = { subject: "another", status: "unhealthy" };
  assert.deepEqual(noticeOf({ type: "health.check_transition", subject: "r1", data }).data, {
    subject: "r1",
    status: "unhealthy",
  });
  assert.deepEqual(noticeOf({ type: "backup.failed", subject: "backup" }).data, { subject: "backup" });
});
