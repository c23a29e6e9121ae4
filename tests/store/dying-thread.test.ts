import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

/** The process has to outlive its thread: DNS is answered by the others. */
function outlives(manner: "ended" | "memory", rounds: number): void {
  const directory = mkdtempSync(join(tmpdir(), "signpost-dying-"));
  try {
    const entry = fileURLToPath(new URL("./dying-thread-child.ts", import.meta.url));
    const { stdout, stderr, signal, status } = spawnSync(process.execPath, [entry, directory, manner, String(rounds)], {
      encoding: "utf8",
    });
    assert.deepEqual({ signal, status, stdout }, { signal: null, status: 0, stdout: "survived\n" }, stderr);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

test("a thread ended in the middle of writes takes nothing with it", () => outlives("ended", 20));

test("a thread that writes until its memory is gone takes nothing with it", () => outlives("memory", 4));
