import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

/**
 * What lmdb says where a thread is ended between two steps of its native part, about once in some hundreds of deaths: that
 * ends the process, and nothing here can keep it. What was written has to be whole all the same.
 */
const NATIVE_END = "ThrowAsJavaScriptException";
const NATIVE_ENDS_MAX = 3;

/** The process has to outlive its thread: DNS is answered by the others. */
function outlives(manner: "ended" | "memory", rounds: number): void {
  const directory = mkdtempSync(join(tmpdir(), "signpost-dying-"));
  const entry = fileURLToPath(new URL("./dying-thread-child.ts", import.meta.url));
  try {
    for (let nativeEnds = 0; ; nativeEnds++) {
      const child = spawnSync(process.execPath, [entry, directory, manner, String(rounds)], { encoding: "utf8" });
      const { stdout, stderr, signal, status } = child;
      // The next one goes on with the same data.
      if (signal === "SIGABRT" && stderr.includes(NATIVE_END) && nativeEnds < NATIVE_ENDS_MAX) continue;
      assert.deepEqual({ signal, status, stdout }, { signal: null, status: 0, stdout: "survived\n" }, stderr);
      return;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

test("a thread ended in the middle of writes takes nothing with it", () => outlives("ended", 20));

test("a thread that writes until its memory is gone takes nothing with it", () => outlives("memory", 4));
