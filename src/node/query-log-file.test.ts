import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLineSink } from "./query-log-file.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-line-sink-"));
after(() => rm(parent, { recursive: true, force: true }));

function lab(path: string) {
  const figures = { written: 0, lost: 0, nowMs: 0, messages: [] as string[] };
  const sink = openLineSink({
    path,
    nowMs: () => figures.nowMs,
    onWritten: (lines) => {
      figures.written += lines;
    },
    onLost: (lines) => {
      figures.lost += lines;
    },
    log: (_, message) => figures.messages.push(message),
  });
  return { figures, sink };
}

/** Lines of different lengths, each with its number. */
function lines(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${from + index} ${"x".repeat((index * 37) % 300)}\n`);
}

test("lines are appended to a file, which is opened anew where it was moved away", async () => {
  const path = join(parent, "file");
  const { sink, figures } = lab(path);
  sink.write(lines(0, 3));
  await rename(path, `${path}.1`);
  sink.write(lines(3, 2_000));
  sink.reopen();
  sink.write(lines(5_000, 2));
  sink.close();
  assert.equal(await readFile(`${path}.1`, "utf8"), [...lines(0, 3), ...lines(3, 2_000)].join(""));
  assert.equal(await readFile(path, "utf8"), lines(5_000, 2).join(""));
  assert.deepEqual(figures, { written: 2_005, lost: 0, nowMs: 0, messages: [] });
});

test("a pipe gets whole lines only; every line is written or counted as lost", () => {
  const path = join(parent, "pipe");
  execFileSync("mkfifo", [path]);
  const { sink, figures } = lab(path);
  sink.write(lines(0, 10));
  assert.deepEqual([figures.written, figures.lost, figures.messages.length], [0, 10, 1]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  sink.write(lines(10, 10));
  assert.equal(figures.lost, 20, "it is tried again after a while only");
  figures.nowMs = 2_000;
  let text = "";
  const bytes = Buffer.alloc(3_333);
  let offered = 20;
  for (let round = 0; round < 200; round++) {
    sink.write(lines(round * 100, 100));
    offered += 100;
    if (round % 3 === 0) text += bytes.toString("latin1", 0, readSync(reader, bytes));
  }
  const drain = (): void => {
    for (;;) {
      try {
        const length = readSync(reader, bytes);
        if (length === 0) return;
        text += bytes.toString("latin1", 0, length);
      } catch {
        return;
      }
    }
  };
  drain();
  sink.write(lines(99_000, 1));
  offered++;
  drain();
  assert.equal(figures.written + figures.lost, offered);
  assert.ok(figures.lost > 1_000 && figures.written > 1_000);
  const read = text.split("\n");
  assert.equal(read.pop(), "");
  assert.equal(read.length, figures.written);
  for (const line of read) assert.match(line, /^\d+ x*$/);
  assert.ok(read.at(-1)?.startsWith("99000 "));
  closeSync(reader);
  // The reader has gone, and another one comes.
  sink.write(lines(1, 1));
  figures.nowMs = 4_000;
  const second = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  sink.write(lines(7, 1));
  assert.equal(bytes.toString("latin1", 0, readSync(second, bytes)), lines(7, 1).join(""));
  closeSync(second);
  sink.close();
});

test("a directory, and a disk that is full, lose lines and say so once", () => {
  for (const path of [parent, "/dev/full", join(parent, "missing", "file")]) {
    const { sink, figures } = lab(path);
    for (let round = 0; round < 5; round++) {
      sink.write(lines(0, 4));
      figures.nowMs += 5_000;
    }
    assert.deepEqual([figures.written, figures.lost, figures.messages.length], [0, 20, 1], path);
    sink.close();
  }
});
