import assert from "node:assert/strict";
import { test } from "node:test";
import { type Broadcast, createBroadcastQueue } from "./broadcast-queue.ts";
import { USER_BROADCASTS_MAX } from "./settings.ts";

function about(name: string, incarnation = 1): Broadcast {
  return { about: name, message: { type: "suspect", incarnation, node: name, from: "x" } };
}

function payload(text: string): Broadcast {
  return { about: undefined, message: { type: "user", payload: Buffer.from(text) } };
}

function names(broadcasts: readonly Broadcast[]): string[] {
  return broadcasts.map(({ message }) =>
    message.type === "suspect" ? `${message.node}${message.incarnation}` : "user",
  );
}

test("the least sent goes first, and of those the newest", () => {
  const queue = createBroadcastQueue(() => 3);
  for (const name of ["a", "b", "c"]) queue.add(about(name));
  assert.deepEqual(names(queue.next(10)), ["c1", "b1", "a1"]);
  queue.sent(queue.next(10), 2);
  assert.deepEqual(names(queue.next(10)), ["a1", "b1", "c1"]);
  assert.deepEqual(names(queue.next(1)), ["a1"]);
  queue.add(about("d"));
  assert.deepEqual(names(queue.next(2)), ["d1", "a1"]);
});

test("what did not fit has not been sent", () => {
  const queue = createBroadcastQueue(() => 1);
  for (const name of ["a", "b"]) queue.add(about(name));
  queue.sent(queue.next(10), 0);
  assert.equal(queue.size(), 2);
  queue.sent(queue.next(10), 1);
  assert.deepEqual(names(queue.next(10)), ["a1"]);
});

test("a broadcast goes out as often as the limit says, and then whoever waits for it hears", () => {
  const queue = createBroadcastQueue(() => 2);
  let done = 0;
  queue.add(about("a"), () => {
    done++;
  });
  queue.sent(queue.next(10), 1);
  assert.equal(done, 0);
  queue.sent(queue.next(10), 1);
  assert.equal(done, 1);
  assert.equal(queue.size(), 0);
});

test("a limit that has fallen ends what was sent as often", () => {
  let limit = 8;
  const queue = createBroadcastQueue(() => limit);
  queue.add(about("a"));
  for (let sent = 0; sent < 4; sent++) queue.sent(queue.next(10), 1);
  limit = 4;
  queue.sent(queue.next(10), 1);
  assert.equal(queue.size(), 0);
});

test("a newer broadcast about a member replaces the older one, payloads stand beside each other", () => {
  const queue = createBroadcastQueue(() => 4);
  queue.add(about("a", 1));
  queue.add(payload("one"));
  queue.add(payload("two"));
  queue.sent(queue.next(10), 3);
  queue.add(about("a", 2));
  assert.deepEqual(names(queue.next(10)), ["a2", "user", "user"]);
  assert.equal(queue.size(), 3);
});

test("payloads are bounded: the one that was sent most often goes", () => {
  const queue = createBroadcastQueue(() => 4);
  const first = payload("first");
  queue.add(first);
  queue.add(about("a"));
  queue.sent(queue.next(10), 2);
  for (let at = 0; at < USER_BROADCASTS_MAX; at++) queue.add(payload(String(at)));
  assert.equal(queue.size(), USER_BROADCASTS_MAX + 1);
  const all = queue.next(2 * USER_BROADCASTS_MAX);
  assert.ok(!all.includes(first));
  assert.deepEqual(names(all.slice(-1)), ["a1"]);
});
