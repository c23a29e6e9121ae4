import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptOutcome } from "../base/script-protocol.ts";
import { RUNNING_MAX, WAITING_MAX } from "./limits.ts";
import { createScriptQueue } from "./queue.ts";
import type { ScriptRun } from "./run-script.ts";

/** A queue whose scripts end when the test says so, on a clock that the test moves. */
function openQueue(refusal: () => string | undefined = () => undefined) {
  const started: { readonly script: ScriptRun; readonly end: (outcome: ScriptOutcome) => void }[] = [];
  let nowMs = 0;
  const queue = createScriptQueue({
    run: (script) => new Promise((end) => started.push({ script, end })),
    refusal: async () => refusal(),
    now: () => nowMs,
  });
  const submit = (timeoutMs = 1_000, callOff = new AbortController().signal) =>
    queue.submit({ command: "/usr/bin/true", args: [], timeoutMs, callOff });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { queue, started, submit, pass };
}

const GOOD: ScriptOutcome = { latencyUs: 1 };
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("no more run at once than allowed; the others follow in their order", async () => {
  const { queue, started, submit } = openQueue();
  const outcomes = Array.from({ length: RUNNING_MAX + 3 }, () => submit());
  await settled();
  assert.equal(started.length, RUNNING_MAX);
  started[4]?.end(GOOD);
  await settled();
  assert.equal(started.length, RUNNING_MAX + 1);
  for (let next = 0; next < RUNNING_MAX + 3; next++) {
    started[next]?.end(GOOD);
    await settled();
  }
  assert.deepEqual(
    await Promise.all(outcomes),
    outcomes.map(() => GOOD),
  );
  assert.equal(queue.running(), 0);
});

test("waiting uses up a script's time", async () => {
  const { started, submit, pass } = openQueue();
  const running = Array.from({ length: RUNNING_MAX }, () => submit(10_000));
  const short = submit(500);
  const long = submit(3_000);
  await settled();
  pass(1_000);
  for (const { end } of started.slice()) end(GOOD);
  await Promise.all(running);
  const outcome = await short;
  assert.equal(outcome.error, "runner");
  assert.match(outcome.detail ?? "", /overloaded/);
  await settled();
  assert.equal(started.at(-1)?.script.timeoutMs, 2_000);
  started.at(-1)?.end(GOOD);
  assert.deepEqual(await long, GOOD);
});

test("beyond the bound of the queue a script fails at once", async () => {
  const { started, submit } = openQueue();
  const kept = Array.from({ length: RUNNING_MAX + WAITING_MAX }, () => submit());
  const outcome = await submit();
  assert.equal(outcome.error, "runner");
  assert.match(outcome.detail ?? "", /too many/);
  for (let next = 0; next < kept.length; next++) {
    await settled();
    started[next]?.end(GOOD);
  }
  assert.ok((await Promise.all(kept)).every((one) => one === GOOD));
});

test("nothing runs while the runner refuses, and places are given back", async () => {
  let why: string | undefined = "the moon is full";
  const { queue, started, submit } = openQueue(() => why);
  for (let time = 0; time < RUNNING_MAX * 2; time++) {
    const outcome = await submit();
    assert.deepEqual(outcome, { latencyUs: 0, error: "runner", detail: "the runner refuses: the moon is full" });
  }
  assert.equal(queue.running(), 0);
  why = undefined;
  const outcome = submit();
  await settled();
  started[0]?.end(GOOD);
  assert.deepEqual(await outcome, GOOD);
});

test("what nobody waits for any more does not begin", async () => {
  const { started, submit } = openQueue();
  const running = Array.from({ length: RUNNING_MAX }, () => submit());
  const gone = new AbortController();
  const outcome = submit(1_000, gone.signal);
  await settled();
  gone.abort();
  for (const { end } of started.slice()) end(GOOD);
  await Promise.all(running);
  assert.equal((await outcome).error, "runner");
  assert.equal(started.length, RUNNING_MAX);
});
