import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createFrameReader, createFrameWriter, FRAME_HEADER_BYTES } from "./framing.ts";

type Frame = { readonly kind: number; readonly body: Uint8Array };

function reader(bodyBytesMax = 1_000_000) {
  const frames: Frame[] = [];
  const oversized: number[] = [];
  const { push } = createFrameReader({
    bodyBytesMax: () => bodyBytesMax,
    onFrame: (kind, body) => frames.push({ kind, body }) > 0,
    onOversized: (bytes) => void oversized.push(bytes),
  });
  return { push, frames, oversized };
}

function frameBytes(kind: number, body: Uint8Array): Uint8Array {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUInt32BE(body.length);
  header[4] = kind;
  return Buffer.concat([header, body]);
}

/** A network that takes what it is given when the test says so. */
function network() {
  const given: Uint8Array[] = [];
  let waiting: (() => void) | undefined;
  return {
    given,
    write: (bytes: Uint8Array, onTaken: () => void) => {
      assert.equal(waiting, undefined, "one write at a time");
      given.push(Buffer.from(bytes));
      waiting = onTaken;
    },
    take: (): boolean => {
      const run = waiting;
      waiting = undefined;
      run?.();
      return run !== undefined;
    },
  };
}

/** Bodies of any length up to this, short ones as often as long ones; no two stretches of one are alike. */
function bodyOf(bytesMax: number): fc.Arbitrary<Uint8Array> {
  return fc.oneof(fc.nat(20), fc.nat(bytesMax)).map((length) => {
    const body = Buffer.alloc(length);
    for (let at = 0; at + 4 <= length; at += 4) body.writeUInt32BE(Math.imul(at + length, 0x9e3779b1) >>> 0, at);
    return body;
  });
}

/** Those that `nextTick` has queued by now. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("frames come out as they went in, however the network cuts them", () => {
  const frame = fc.record({ kind: fc.nat(255), body: bodyOf(40_000) });
  const property = fc.property(
    fc.array(frame, { maxLength: 6 }),
    fc.infiniteStream(fc.integer({ min: 1, max: 20_000 })),
    (frames, sizes) => {
      const bytes = Buffer.concat(frames.map(({ kind, body }) => frameBytes(kind, body)));
      const { push, frames: read } = reader();
      for (let at = 0; at < bytes.length; ) {
        const end = at + (sizes.next().value ?? 1);
        push(bytes.subarray(at, end));
        at = end;
      }
      assert.deepEqual(
        read.map(({ kind }) => kind),
        frames.map(({ kind }) => kind),
      );
      for (const [index, { body }] of frames.entries()) {
        assert.ok(Buffer.from(body).equals(read[index]?.body ?? Buffer.of()), `frame ${index}`);
      }
    },
  );
  fc.assert(property, { numRuns: 60 });
});

test("frames come out as they went in, byte for byte", () => {
  const { push, frames } = reader();
  const bytes = Buffer.concat([
    frameBytes(1, Buffer.from("one")),
    frameBytes(2, Buffer.of()),
    frameBytes(3, Buffer.from("three")),
  ]);
  for (const byte of bytes) push(Buffer.of(byte));
  assert.deepEqual(
    frames.map(({ kind, body }) => `${kind} ${Buffer.from(body)}`),
    ["1 one", "2 ", "3 three"],
  );
});

test("a frame that is too long is refused by its header, and nothing behind it is read", () => {
  const { push, frames, oversized } = reader(10);
  push(
    Buffer.concat([frameBytes(1, Buffer.alloc(10)), frameBytes(2, Buffer.alloc(11)).subarray(0, FRAME_HEADER_BYTES)]),
  );
  push(frameBytes(1, Buffer.alloc(1)));
  assert.equal(frames.length, 1);
  assert.deepEqual(oversized, [11]);
});

test("a length of 4 GiB is a length, and not a negative number", () => {
  const { push, oversized } = reader();
  push(Buffer.of(0xff, 0xff, 0xff, 0xff, 1));
  assert.deepEqual(oversized, [0xffffffff]);
});

test("memory follows what has arrived and not what was announced", () => {
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 100 }, () => reader(8 * 2 ** 20));
  for (const { push } of readers) push(Buffer.of(0x00, 0x7f, 0xff, 0xff, 1, 42));
  assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 2 ** 20);
});

test("whoever is called may stop the reading", () => {
  const kinds: number[] = [];
  const { push } = createFrameReader({
    bodyBytesMax: () => 10,
    onFrame: (kind) => {
      kinds.push(kind);
      return false;
    },
    onOversized: () => assert.fail("nothing is too long"),
  });
  push(Buffer.concat([frameBytes(1, Buffer.of()), frameBytes(2, Buffer.of())]));
  push(frameBytes(3, Buffer.of()));
  assert.deepEqual(kinds, [1]);
});

test("what is sent in one turn goes out in one piece, and large messages in several", async () => {
  const { write, take, given } = network();
  const writer = createFrameWriter({ write, onTaken: () => {} });
  for (let count = 0; count < 100; count++) writer.send(4, Buffer.alloc(300, count));
  await nextTurn();
  assert.equal(given.length, 1);
  assert.equal(writer.untakenBytes(), 100 * 305);
  const large = Buffer.alloc(500_000, 9);
  writer.send(5, large);
  while (take());
  assert.equal(writer.untakenBytes(), 0);
  assert.equal(writer.takenBytes(), 100 * 305 + 500_005);
  assert.ok(given.every((batch) => batch.length <= 128 * 1024));
  const { push, frames } = reader();
  for (const batch of given) push(batch);
  assert.equal(frames.length, 101);
  assert.ok(Buffer.from(frames[100]?.body ?? []).equals(large));
});

test("any frames go through the writer whole and in order, while they are sent and taken in any order", async () => {
  const step = fc.oneof(fc.constant("take" as const), bodyOf(200_000));
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const { write, take, given } = network();
    const writer = createFrameWriter({ write, onTaken: () => {} });
    const sent: Uint8Array[] = [];
    for (const one of steps) {
      if (one === "take") {
        await nextTurn();
        take();
      } else {
        sent.push(one);
        writer.send(sent.length % 256, one);
      }
    }
    await nextTurn();
    while (take());
    const { push, frames } = reader();
    for (const batch of given) push(batch);
    assert.equal(frames.length, sent.length);
    for (const [at, { kind, body }] of frames.entries()) {
      assert.equal(kind, (at + 1) % 256);
      assert.ok(Buffer.from(body).equals(sent[at] ?? Buffer.of()));
    }
  });
  await fc.assert(property, { numRuns: 40 });
});

test("whoever waits for everything to be taken is called when it is; a stopped writer sends nothing more", async () => {
  const { write, take, given } = network();
  const writer = createFrameWriter({ write, onTaken: () => {} });
  let calls = 0;
  writer.whenTaken(() => calls++);
  assert.equal(calls, 1, "nothing was sent yet");
  writer.send(1, Buffer.alloc(200_000));
  writer.whenTaken(() => calls++);
  await nextTurn();
  take();
  assert.equal(calls, 1);
  take();
  assert.equal(calls, 2);
  writer.send(1, Buffer.alloc(10));
  writer.stop();
  await nextTurn();
  assert.equal(given.length, 2);
  assert.equal(writer.untakenBytes(), 0);
});
