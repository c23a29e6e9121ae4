import assert from "node:assert/strict";
import { test } from "node:test";
import { PART_LINES_MAX, PART_LINES_MS, PART_LINES_OF_KIND_MAX } from "./limits.ts";
import { createPartLog } from "./part-log.ts";

function lab() {
  const lines: string[] = [];
  const clock = { nowMs: 0 };
  const log = createPartLog(
    (_, message, fields = {}) => void lines.push(fields.lines === undefined ? message : `${message} ${fields.lines}`),
    "replication",
    () => clock.nowMs,
  );
  return { log, lines, clock };
}

test("a flood of one kind is some lines, whatever they name, and hides no other kind", () => {
  const { log, lines, clock } = lab();
  for (let at = 0; at < 1_000; at++) log("error", `zone z${at}. cannot be published: full`, { zone: `z${at}.` });
  assert.equal(lines.length, PART_LINES_OF_KIND_MAX);
  log("warn", "something else");
  assert.equal(lines.at(-1), "something else");
  log("debug", "all of it");
  assert.equal(lines.at(-1), "all of it");
  clock.nowMs += PART_LINES_MS;
  log("info", "later");
  const left = 1_000 - PART_LINES_OF_KIND_MAX;
  assert.deepEqual(lines.slice(-2), [`lines about replication that are not in the log ${left}`, "later"]);
});

test("so many lines of all kinds together, and what is kept of kinds ends with them", () => {
  const { log, lines } = lab();
  for (let at = 0; at < 10_000; at++) log("info", `kind ${at}`);
  assert.equal(lines.length, PART_LINES_MAX);
});
