import assert from "node:assert/strict";
import test from "node:test";
import { createEventLog } from "./event-log.ts";
import { EVENT_LINES_MAX, EVENT_LINES_MS } from "./limits.ts";

test("a flood of events is some lines and a number", () => {
  const lines: string[] = [];
  let nowMs = 0;
  const write = createEventLog(
    (_level, message, fields = {}) => lines.push(`${message} ${String(fields.subject ?? fields.events)}`),
    () => nowMs,
  );
  for (let index = 0; index < EVENT_LINES_MAX + 50; index++) {
    write({ type: "health.check_transition", subject: `rec_${index}`, data: { status: "unhealthy" } });
  }
  assert.equal(lines.length, EVENT_LINES_MAX);
  assert.equal(lines[0], "health.check_transition rec_0");
  nowMs += EVENT_LINES_MS;
  write({ type: "failover.activated", subject: "rec_x", data: {} });
  assert.deepEqual(lines.slice(EVENT_LINES_MAX), [
    "events of health that are not in the log 50",
    "failover.activated rec_x",
  ]);
});
