import assert from "node:assert/strict";
import test from "node:test";
import { createOutbox, type Outbox } from "./outbox.ts";

const LIMITS = { refs: 100, bytes: 100_000 };

/** Sends what waits as one batch, and returns it. */
function send(outbox: Outbox, last: number): string[] {
  const entries = outbox.take(100);
  const refs = entries.map(([ref]) => ref);
  outbox.sent(entries, refs, last);
  return refs;
}

function isThrough(outbox: Outbox): () => boolean {
  let through = false;
  outbox.afterAll(() => {
    through = true;
  });
  return () => through;
}

test("a ref that waits is moved to the end, and not doubled", () => {
  const outbox = createOutbox(LIMITS);
  outbox.add(["a", "b", "a"], 0);
  assert.equal(outbox.size(), 2);
  assert.deepEqual(send(outbox, 2), ["b", "a"]);
  outbox.add(["a"], 0);
  assert.equal(outbox.size(), 3);
});

test("acknowledgements are cumulative, by whole batches", () => {
  const outbox = createOutbox(LIMITS);
  outbox.add(["a", "b"], 0);
  send(outbox, 2);
  outbox.add(["c"], 0);
  send(outbox, 3);
  outbox.add(["d"], 0);
  send(outbox, 4);
  outbox.acknowledge(1, []);
  assert.equal(outbox.size(), 4);
  outbox.acknowledge(3, []);
  assert.deepEqual([outbox.size(), outbox.batchesInFlight()], [1, 1]);
});

test("who waits hears when all that was there then is acknowledged, and not of what came later", () => {
  const outbox = createOutbox(LIMITS);
  assert.ok(isThrough(outbox)());
  outbox.add(["a"], 0);
  send(outbox, 1);
  outbox.add(["b"], 0);
  const both = isThrough(outbox);
  outbox.add(["c"], 0);
  send(outbox, 3);
  outbox.acknowledge(1, []);
  assert.equal(both(), false);
  outbox.add(["d"], 0);
  outbox.acknowledge(3, []);
  assert.ok(both());
  assert.equal(outbox.size(), 1);
});

test("a version that is written while an earlier one is under way is waited for by those who came after it", () => {
  const outbox = createOutbox(LIMITS);
  outbox.add(["a"], 0);
  const first = isThrough(outbox);
  send(outbox, 1);
  outbox.add(["a"], 0);
  const second = isThrough(outbox);
  outbox.acknowledge(1, []);
  assert.deepEqual([first(), second()], [true, false]);
  send(outbox, 2);
  outbox.acknowledge(2, []);
  assert.ok(second());
});

test("what was under way when the connection ended is sent again, once", () => {
  const outbox = createOutbox(LIMITS);
  outbox.add(["a", "b"], 0);
  const through = isThrough(outbox);
  send(outbox, 2);
  outbox.add(["c", "a"], 0);
  outbox.giveBack();
  assert.equal(outbox.size(), 3);
  assert.equal(through(), false);
  assert.deepEqual(send(outbox, 3), ["b", "c", "a"]);
  outbox.acknowledge(3, []);
  assert.ok(through());
  assert.deepEqual([outbox.size(), outbox.bytes()], [0, 0]);
});

test("a queue that is too long is dropped whole, and who waits is told", () => {
  const outbox = createOutbox(LIMITS);
  const refs = (from: number, count: number) => Array.from({ length: count }, (_, index) => `r${from + index}`);
  assert.ok(outbox.add(refs(0, 100), 0));
  const through = isThrough(outbox);
  assert.equal(outbox.add(refs(100, 1), 0), false);
  assert.ok(through());
  assert.deepEqual([outbox.size(), outbox.waiting(), outbox.bytes()], [0, 0, 0]);
  const long = "x".repeat(60_000);
  assert.ok(outbox.add([`${long}1`], 0));
  assert.equal(outbox.add([`${long}2`], 0), false);
});

test("refused refs are remembered until the peer takes them, and hold up nobody", () => {
  const outbox = createOutbox(LIMITS);
  outbox.add(["a", "b", "c"], 0);
  const through = isThrough(outbox);
  send(outbox, 3);
  outbox.acknowledge(3, [[2, "future"]]);
  assert.ok(through());
  assert.deepEqual([outbox.refusalOf("a"), outbox.refusalOf("b")], [undefined, "future"]);
  outbox.add(["b"], 0);
  send(outbox, 4);
  outbox.acknowledge(4, []);
  assert.equal(outbox.refusalOf("b"), undefined);
});

test("the age is that of the oldest that is not acknowledged, and generations stay few", () => {
  const outbox = createOutbox({ refs: 1_000_000, bytes: 1e9 });
  for (let at = 0; at < 100_000; at++) outbox.add([`r${at}`], at * 10);
  assert.equal(outbox.oldestMs(), 0);
  let last = 0;
  for (let taken = 0; taken < 50_000; taken += 100) {
    last += 100;
    const entries = outbox.take(100);
    outbox.sent(
      entries,
      entries.map(([ref]) => ref),
      last,
    );
  }
  outbox.acknowledge(last, []);
  const oldest = outbox.oldestMs() ?? 0;
  assert.ok(oldest > 480_000 && oldest <= 500_000, `${oldest}`);
});
