import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import { replacementPauseMs, type SupervisedThread, superviseThread } from "./supervised-thread.ts";

/** A module that runs in a thread: it ends, throws or stays as it is told. */
const ENTRY = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", (word) => {
      if (word === "throw") throw new Error("told to");
      if (word === "end") parentPort.close();
    });
    parentPort.postMessage("up");
  `)}`,
);

type Seen = { ups: number; deaths: number; readonly lines: string[] };

function start(): { readonly thread: SupervisedThread<string>; readonly seen: Seen } {
  const seen: Seen = { ups: 0, deaths: 0, lines: [] };
  const thread = superviseThread<string, string>({
    name: "tested",
    entry: ENTRY,
    workerOptions: () => ({}),
    onMessage: () => {
      seen.ups += 1;
    },
    onDeath: () => {
      seen.deaths += 1;
    },
    log: (_, message) => seen.lines.push(message),
  });
  return { thread, seen };
}

test("a thread that dies is replaced, with growing pauses when it dies again and again", async () => {
  const { thread, seen } = start();
  for (let death = 1; death <= 3; death++) {
    await waitFor("it is up", 10_000, () => seen.ups === death);
    thread.post(death === 2 ? "end" : "throw");
    await waitFor("it is dead", 10_000, () => seen.deaths === death);
  }
  await waitFor("it is up again", 10_000, () => seen.ups === 4);
  assert.deepEqual(seen.lines.slice(0, 2), ["thread tested failed: told to", "thread tested ended and is replaced"]);
  await thread.terminate();
  assert.deepEqual([1, 2, 3, 4, 100].map(replacementPauseMs), [0, 100, 200, 400, 10_000]);
});

test("a thread that ends as it was told is not replaced", async () => {
  const { thread, seen } = start();
  await waitFor("it is up", 10_000, () => seen.ups === 1);
  const ended = thread.ended();
  thread.post("end");
  await ended;
  assert.equal(seen.deaths, 0);
  assert.deepEqual(seen.lines, []);
});
