import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLineWriter } from "./line-writer.ts";

test("lines arrive whole and in order, up to what may wait", async () => {
  const file = join(tmpdir(), `signpost-lines-${process.pid}`);
  const descriptor = openSync(file, "w");
  const { write, flush } = createLineWriter(descriptor, 1_000);
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index}\n`);
  for (const line of lines.slice(0, 50)) write(line);
  await flush(5_000);
  assert.equal(readFileSync(file, "utf8"), lines.slice(0, 50).join(""));
  for (const line of lines) write(line);
  await flush(5_000);
  const text = readFileSync(file, "utf8").slice(lines.slice(0, 50).join("").length);
  assert.ok(lines.join("").startsWith(text) && text.endsWith("\n"));
  assert.ok(text.length > 900 && text.length < 1_100, `${text.length} characters`);
  closeSync(descriptor);
  rmSync(file);
});

test("what cannot be written is lost, and the next is tried", async () => {
  const { write, flush } = createLineWriter(openSync("/dev/full", "w"), 100);
  write("lost\n");
  await flush(5_000);
  write("lost too\n");
  await flush(5_000);
});

test("without anything to write there is nothing to wait for", async () => {
  await createLineWriter(1, 100).flush(100_000);
});
