/** The way of answers back to a thread that sends them itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { waitFor } from "../../tests/support/wait.ts";
import { TRANSPORT } from "../image/counters.ts";
import { createSharedImage } from "../image/shared.ts";
import { openHandoverInbox } from "../listen/handover.ts";
import { createResolving } from "../listen/resolving.ts";
import { ANSWER_BYTES_UNDER_WAY_MAX } from "./limits.ts";
import { createReplies } from "./resolve-replies.ts";

const QUERY = new Uint8Array(40);
const ANSWER = new Uint8Array(60_000);

test("a thread is full until it has taken what was sent, and its successor is not", async () => {
  const shared = createSharedImage(1);
  const inbox = openHandoverInbox(shared, [0]);
  const channels = [new MessageChannel(), new MessageChannel()] as const;
  let reliefs = 0;
  let answers = 0;
  const replies = createReplies(
    undefined,
    () => undefined,
    () => reliefs++,
  );
  replies.connect(0, channels[0].port1);
  reliefs = 0;
  const resolving = createResolving({ shared, thread: 0, start: 0, port: channels[0].port2, now: () => 0 });
  const ask = () => {
    resolving.handOver(TRANSPORT.TCP, Uint8Array.of(127, 0, 0, 1), 9, QUERY, 0, QUERY.length, () => answers++);
    inbox.drain(1, (thread, record) => replies.add(thread, record, ANSWER));
  };
  const fill = (): number => {
    let count = 0;
    for (; !replies.isFull(0); count++) ask();
    return count;
  };
  const count = fill();
  assert.ok(count * ANSWER.length < ANSWER_BYTES_UNDER_WAY_MAX + ANSWER.length, `${count} answers`);
  replies.send();
  assert.equal(replies.isFull(0), true, "it has not taken them yet");
  await waitFor("it takes them", 10_000, () => reliefs === 1);
  assert.deepEqual([answers, replies.isFull(0)], [count, false]);

  fill();
  replies.send();
  replies.connect(0, channels[1].port1);
  assert.deepEqual([replies.isFull(0), reliefs], [false, 2]);
  resolving.close();
  replies.close();
});

test("what is answered before the way to a thread is known goes there once it is", async () => {
  const shared = createSharedImage(1);
  const inbox = openHandoverInbox(shared, [0]);
  const { port1, port2 } = new MessageChannel();
  const replies = createReplies(
    undefined,
    () => undefined,
    () => {},
  );
  const resolving = createResolving({ shared, thread: 0, start: 0, port: port2, now: () => 0 });
  let answers = 0;
  resolving.handOver(TRANSPORT.TCP, Uint8Array.of(127, 0, 0, 1), 9, QUERY, 0, QUERY.length, () => answers++);
  inbox.drain(1, (thread, record) => replies.add(thread, record, ANSWER));
  replies.send();
  replies.connect(0, port1);
  replies.send();
  await waitFor("the answer", 5_000, () => answers === 1);
  resolving.close();
  replies.close();
});
