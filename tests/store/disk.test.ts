import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { buildSlowDisk } from "../support/slow-disk.ts";

const FLUSH_WAIT_MS = 5;
/** Of sixteen writers; each for itself would be one. What that makes a second depends on the disk: see the benchmark. */
const CREATES_A_FLUSH = 4;

type Disk = Disposable & {
  readonly run: (mode: "shared" | "full" | "again", wait: number) => string;
  readonly free: () => void;
};

/** A directory on a disk that is slow or full; undefined where that cannot be had. */
function makeDisk(): Disk | undefined {
  const directory = mkdtempSync(join(tmpdir(), "signpost-disk-"));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const library = buildSlowDisk(directory);
  if (library === undefined) {
    remove();
    assert.equal(process.env.CI, undefined, "no C compiler");
    return undefined;
  }
  const failFile = join(directory, "disk-is-full");
  const log = join(directory, "flushes");
  const entry = fileURLToPath(new URL("./disk-child.ts", import.meta.url));
  return {
    run: (mode, wait) => {
      const env = {
        ...process.env,
        LD_PRELOAD: library,
        FLUSH_WAIT_MS: String(wait),
        FAIL_FILE: failFile,
        FLUSH_LOG: log,
      };
      const { stdout, stderr, signal } = spawnSync(process.execPath, [entry, mode, directory], {
        encoding: "utf8",
        env,
      });
      assert.equal(signal, mode === "full" ? "SIGKILL" : null, stderr);
      return stdout.trim().split("\n").at(-1) ?? "";
    },
    free: () => rmSync(failFile),
    [Symbol.dispose]: remove,
  };
}

test("a write is acknowledged after its flush, and writers share flushes", (t) => {
  using disk = makeDisk();
  if (disk === undefined) {
    t.diagnostic("NOT TESTED: gcc is missing, so no disk could be made slow");
    return;
  }
  const { creates, flushes, seconds, shortestMs } = JSON.parse(disk.run("shared", FLUSH_WAIT_MS));
  t.diagnostic(`${(creates / seconds).toFixed(0)} durable creates a second with ${FLUSH_WAIT_MS} ms in every flush`);
  assert.ok(shortestMs >= FLUSH_WAIT_MS, `acknowledged after ${shortestMs} ms`);
  assert.ok(flushes > 0 && creates >= CREATES_A_FLUSH * flushes, `${creates} creates in ${flushes} flushes`);
});

test("a full disk refuses writes, tells nobody of them, and is written again when it is opened anew with room", (t) => {
  using disk = makeDisk();
  if (disk === undefined) {
    t.diagnostic("NOT TESTED: gcc is missing, so no disk could be made full");
    return;
  }
  const { faults, heard, readable } = JSON.parse(disk.run("full", 0));
  assert.equal(faults.length, 4);
  for (const fault of faults) assert.match(fault, /cannot be written: .*No space left/i);
  assert.deepEqual(heard, ["before"]);
  assert.equal(readable, "before");
  disk.free();
  const { names, count } = JSON.parse(disk.run("again", 0));
  assert.deepEqual(names, ["after", "before"]);
  assert.equal(count, 2);
});
