import assert from "node:assert/strict";
import { openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Log, type LogLevel, openLog } from "./log.ts";

let files = 0;

/** What a log writes into a file. */
async function written(level: LogLevel, format: "text" | "json", use: (log: Log) => void): Promise<string> {
  const file = join(tmpdir(), `signpost-log-${process.pid}-${files++}`);
  const descriptor = openSync(file, "w");
  const { log, flush } = openLog(descriptor, level, format);
  use(log);
  await flush();
  const text = readFileSync(file, "utf8");
  rmSync(file);
  return text;
}

test("a JSON line has time, level, message and fields", async () => {
  const text = await written("info", "json", (log) => log("warn", "careful\nnow", { zone: "a.test.", records: 3 }));
  assert.equal(text.split("\n").length, 2);
  const { time, ...rest } = JSON.parse(text);
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(rest, { level: "warn", msg: "careful\nnow", zone: "a.test.", records: 3 });
});

test("a text line reads well and stays one line", async () => {
  const text = await written("info", "text", (log) =>
    log("error", "went\nwrong\u001b[2J\u009b", { file: "a\nb", count: 2, none: undefined }),
  );
  assert.match(text, /^\d\d:\d\d:\d\d\.\d{3} error went\\nwrong\\x1b\[2J\\x9b file="a\\nb" count=2\n$/);
});

test("lines below the level are left out", async () => {
  const use: (log: Log) => void = (log) => {
    log("debug", "one");
    log("info", "two");
    log("warn", "three");
    log("error", "four");
  };
  assert.deepEqual((await written("warn", "text", use)).match(/one|two|three|four/g), ["three", "four"]);
  assert.equal((await written("debug", "text", use)).split("\n").length, 5);
});
