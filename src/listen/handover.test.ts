import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { waitFor } from "../../tests/support/wait.ts";
import { TRANSPORT } from "../image/counters.ts";
import { HANDOVER_KIND, HANDOVER_RING, handoverRing } from "../image/handover.ts";
import { CONTROL, createSharedImage, HANDOVER_DATA_BYTES, ROUTE } from "../image/shared.ts";
import { createHandover, openHandoverInbox } from "./handover.ts";
import {
  recordAddress,
  recordControl,
  recordKind,
  recordName,
  recordPort,
  recordQuery,
  recordToken,
  recordTransport,
} from "./handover-record.ts";
import { PRIMARY_HANDED_OVER_MAX } from "./limits.ts";

const ADDRESS = Uint8Array.of(192, 0, 2, 1);

function openRing(thread = 0) {
  const shared = createSharedImage(1);
  const handover = createHandover(shared, thread);
  const inbox = openHandoverInbox(shared, [thread]);
  const take = (most = 1_000_000) => {
    const records: Uint8Array[] = [];
    inbox.drain(most, (_, record) => records.push(record));
    return records;
  };
  const push = (token: number, query: Uint8Array) =>
    handover.pushMessage(token, TRANSPORT.TCP, ADDRESS, 5_353, query, 0, query.length);
  return { shared, handover, inbox, take, push };
}

test("a datagram comes out as it went in", () => {
  const { handover, take } = openRing(3);
  const bytes = Buffer.from(Array.from({ length: 400 }, (_, index) => index & 255));
  assert.ok(handover.pushDatagram(bytes, 2, 8, 16, 0, 28, 100, 40, 200, 33));
  handover.pushRefresh(-5);
  const [datagram, refresh] = take();
  assert.ok(datagram !== undefined && refresh !== undefined);
  assert.equal(recordKind(datagram), HANDOVER_KIND.DATAGRAM);
  assert.equal(recordTransport(datagram), TRANSPORT.UDP);
  assert.equal(recordToken(datagram), 2);
  assert.deepEqual(recordAddress(datagram), bytes.subarray(8, 24));
  assert.deepEqual(recordName(datagram), bytes.subarray(0, 28));
  assert.equal(recordPort(datagram), 0x0203);
  assert.deepEqual(recordControl(datagram), bytes.subarray(100, 140));
  assert.deepEqual(recordQuery(datagram), bytes.subarray(200, 233));
  assert.deepEqual([recordKind(refresh), recordToken(refresh)], [HANDOVER_KIND.REFRESH, -5]);
});

test("a message comes out as it went in", () => {
  const { take, push } = openRing();
  assert.ok(push(-77, Buffer.from("query")));
  const [record] = take();
  assert.ok(record !== undefined);
  assert.deepEqual(
    [recordKind(record), recordToken(record), recordTransport(record), recordPort(record)],
    [HANDOVER_KIND.MESSAGE, -77, TRANSPORT.TCP, 5_353],
  );
  assert.deepEqual([...recordAddress(record)], [...ADDRESS]);
  assert.equal(Buffer.from(recordQuery(record)).toString(), "query");
});

const steps = fc.array(
  fc.oneof(
    fc.record({ push: fc.oneof(fc.nat(200), fc.nat(65_535)) }),
    fc.record({ take: fc.integer({ min: 1, max: 40 }) }),
  ),
  { maxLength: 300 },
);

test("whatever is pushed and taken, wherever the positions stand: all comes out once, in order and whole", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (all, from) => {
      const { shared, take, push } = openRing();
      const { words } = handoverRing(shared, 0);
      words[HANDOVER_RING.HEAD] = from & ~3;
      words[HANDOVER_RING.TAIL] = from & ~3;
      const model: { readonly token: number; readonly length: number }[] = [];
      let token = 0;
      const check = (records: readonly Uint8Array[]) => {
        for (const record of records) {
          const wanted = model.shift();
          const query = recordQuery(record);
          assert.deepEqual({ token: recordToken(record), length: query.length }, wanted);
          assert.ok(query.every((byte) => byte === (recordToken(record) & 255)));
        }
      };
      for (const step of all) {
        if ("take" in step) {
          const wanted = Math.min(step.take, model.length);
          const records = take(step.take);
          assert.equal(records.length, wanted);
          check(records);
        } else {
          token += 1;
          const held = model.reduce((sum, { length }) => sum + length + 104, 0);
          const isIn = push(token, Buffer.alloc(step.push, token & 255));
          // At worst, as much as the record itself is lost at the end of the data.
          if (!isIn) assert.ok(held + (step.push + 104) * 2 > HANDOVER_DATA_BYTES, `${held} bytes held`);
          else model.push({ token, length: step.push });
        }
      }
      check(take());
      assert.equal(model.length, 0);
    }),
    { numRuns: 60 },
  );
});

test("a full ring takes nothing until something was taken", () => {
  const { push, take } = openRing();
  let pushed = 0;
  while (push(pushed, Buffer.alloc(60))) pushed += 1;
  assert.ok(pushed >= 3_000, `${pushed} queries of 60 bytes`);
  assert.equal(push(0, Buffer.alloc(60)), false);
  assert.equal(take(1).length, 1);
  assert.ok(push(9, Buffer.alloc(60)));
  assert.equal(take().length, pushed);
});

test("rings are taken in turn, so that a full one delays no other", () => {
  const shared = createSharedImage(1);
  const [busy, calm] = [createHandover(shared, 0), createHandover(shared, 5)];
  for (let token = 0; token < 1_000; token++) busy.pushMessage(token, TRANSPORT.TCP, ADDRESS, 1, Buffer.alloc(9), 0, 9);
  calm.pushMessage(7, TRANSPORT.TCP, ADDRESS, 1, Buffer.alloc(9), 0, 9);
  const order: number[] = [];
  openHandoverInbox(shared, [0, 5]).drain(100, (thread) => order.push(thread));
  assert.ok(order.includes(5) && order.length === 100, order.join(" "));
});

test("who sleeps while something lies there, or when it comes, is woken; who does not is not notified", async () => {
  const { shared, handover, inbox, push, take } = openRing();
  const control = new Int32Array(shared.control);
  let wakes = 0;
  const sleep = () => inbox.sleep(() => (wakes += 1));
  handover.wake();
  assert.equal(control[CONTROL.RESOLVE_WAKE], 0);
  push(1, Buffer.alloc(5));
  sleep();
  assert.equal(wakes, 1);
  assert.equal(control[CONTROL.RESOLVE_SLEEPS], 0);
  take();
  sleep();
  assert.equal(control[CONTROL.RESOLVE_SLEEPS], 1);
  push(2, Buffer.alloc(5));
  handover.wake();
  handover.wake();
  await waitFor("the wake", 5_000, () => wakes === 2);
  assert.equal(control[CONTROL.RESOLVE_WAKE], 1);
});

test("two threads push with pauses of any length, and no wake is lost", async () => {
  const shared = createSharedImage(1);
  const inbox = openHandoverInbox(shared, [1, 2]);
  const total = 20_000;
  const entry = new URL("../../tests/support/listen/handover-entry.ts", import.meta.url);
  const wanted = Array.from({ length: total }, (_, index) => index);
  let sleeps = 0;
  const round = async () => {
    const workers = [1, 2].map((thread) => new Worker(entry, { workerData: { shared, thread, total } }));
    const exits = workers.map((worker) => once(worker, "exit"));
    const tokens: number[][] = [[], [], []];
    let taken = 0;
    const proceed = () => {
      const count = inbox.drain(16, (thread, record) => tokens[thread]?.push(recordToken(record)));
      taken += count;
      if (taken === total * 2) return;
      if (count > 0) return void setImmediate(proceed);
      sleeps += 1;
      inbox.sleep(proceed);
    };
    proceed();
    // A lost wake leaves everything asleep for ever; nothing else keeps this waiting.
    await waitFor("all records", 60_000, () => taken === total * 2);
    await Promise.all(exits);
    assert.deepEqual(tokens[1], wanted);
    assert.deepEqual(tokens[2], wanted);
  };
  // How often there is nothing to take depends on which threads the machine has room for.
  await waitFor("enough sleeps", 60_000, async () => {
    await round();
    return sleeps > 500;
  });
});

test("of what anybody may send for keys and zones a bounded number waits, and leaves room for the rest", () => {
  const query = Buffer.alloc(60);
  for (const from of [0, 2 ** 31 - 70_000, -70_000]) {
    const shared = createSharedImage(1);
    const { words } = handoverRing(shared, 0);
    words[HANDOVER_RING.HEAD] = from & ~3;
    words[HANDOVER_RING.TAIL] = from & ~3;
    const handover = createHandover(shared, 0);
    const inbox = openHandoverInbox(shared, [0]);
    const push = (route: number) =>
      handover.admits(route) && handover.pushMessage(1, TRANSPORT.TCP, ADDRESS, 5_353, query, 0, query.length);
    const count = (times: number, route: number) =>
      Array.from({ length: times }, () => push(route)).filter(Boolean).length;
    const take = (most: number) => inbox.drain(most, () => {});
    for (let round = 0; round < 20; round++) {
      assert.equal(count(2_000, ROUTE.PRIMARY), PRIMARY_HANDED_OVER_MAX);
      assert.equal(count(1_000, 1), 1_000);
      take(10);
      assert.equal(count(2_000, ROUTE.PRIMARY), 10);
      take(100_000);
    }
  }
});

test("one that was admitted and found the ring full keeps nobody out for ever", () => {
  const { handover, take, push } = openRing();
  while (push(1, Buffer.alloc(60_000)));
  for (let time = 0; time < 3 * PRIMARY_HANDED_OVER_MAX; time++) handover.admits(ROUTE.PRIMARY);
  take();
  assert.ok(handover.admits(ROUTE.PRIMARY));
});
