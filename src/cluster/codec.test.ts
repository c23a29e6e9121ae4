import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyBytes, anyPacketMessage, anyStreamMessage } from "../../tests/support/membership-messages.ts";
import { createCodec } from "./codec.ts";
import type { PacketMessage } from "./messages.ts";
import { FRAME_BYTES_MAX } from "./wire-limits.ts";

const KEY = Buffer.from("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "hex");
const OTHER_KEY = Buffer.alloc(32, 7);

const codec = createCodec({ key: KEY });
const labelled = createCodec({ key: KEY, label: "blue" });
const nack: PacketMessage = { type: "nack", sequence: 70_000 };

function user(bytes: number): PacketMessage {
  return { type: "user", payload: new Uint8Array(bytes).fill(bytes) };
}

for (const peerProtocol of [0, 4, 5]) {
  test(`packets come out as they went in, for a peer of protocol ${peerProtocol}`, () => {
    fc.assert(
      fc.property(fc.array(anyPacketMessage, { minLength: 1, maxLength: 40 }), (messages) => {
        const { packet, count } = codec.packPacket(messages, peerProtocol);
        assert.deepEqual(codec.unpackPacket(packet), { messages: messages.slice(0, count), malformed: 0 });
        assert.ok(count === 1 || packet.length <= 1_400);
      }),
    );
  });
}

test("frames come out as they went in, of both sides and with a label", () => {
  fc.assert(
    fc.property(anyStreamMessage, fc.constantFrom<"request" | "reply">("request", "reply"), (message, side) => {
      assert.deepEqual(codec.unpackFrame(codec.packFrame(message, side)), { message });
      assert.deepEqual(labelled.unpackFrame(labelled.packFrame(message, side)), { message });
    }),
  );
});

test("a packet takes as many messages as fit, and the first whatever its size", () => {
  const three = [user(600), user(600), user(600)];
  assert.equal(codec.packPacket(three, 0).count, 2);
  assert.equal(codec.packPacket([user(3_000), nack], 0).count, 1);
  assert.equal(
    codec.packPacket(Array<PacketMessage>(300).fill({ type: "user", payload: new Uint8Array(1) }), 0).count,
    255,
  );
  // The first alone fills it: 1,400 less seal, label of six, CRC of five, what a compound takes, and the type of the first.
  const room = 1_400 - 29 - 6 - 5 - 6 - 1;
  const nackBytes = 13;
  for (const [bytes, count] of [
    [room - nackBytes, 2],
    [room - nackBytes + 1, 1],
  ] as const) {
    const { packet, count: taken } = labelled.packPacket([user(bytes), nack], 5);
    assert.deepEqual([taken, packet.length <= 1_400], [count, true], `${bytes} bytes`);
  }
});

test("what is no packet and no frame at all is refused to whoever would send it", () => {
  assert.throws(() => codec.packPacket([], 5), RangeError);
  assert.throws(() => codec.packPacket([user(65_536)], 5), RangeError);
  const payload = new Uint8Array(FRAME_BYTES_MAX);
  assert.throws(() => codec.packFrame({ type: "user", payload }, "request"), RangeError);
});

test("another key is told apart from bytes that cannot be read", () => {
  const other = createCodec({ key: OTHER_KEY });
  const message = { type: "error", text: "no" } as const;
  assert.deepEqual(other.unpackPacket(codec.packPacket([nack], 5).packet), { fault: "sealed" });
  assert.deepEqual(other.unpackFrame(codec.packFrame(message, "request")), { fault: "sealed" });
  assert.deepEqual(codec.unpackPacket(new Uint8Array()), { fault: "sealed" });
  assert.deepEqual(codec.unpackFrame(new Uint8Array()), { fault: "malformed" });
});

test("a label is expected where there is one, and refused where there is none", () => {
  const packed = (of: typeof codec) => of.packPacket([nack], 0).packet;
  const framed = (of: typeof codec) => of.packFrame({ type: "error", text: "" }, "request");
  const green = createCodec({ key: KEY, label: "green" });
  for (const [sender, receiver] of [
    [labelled, codec],
    [codec, labelled],
    [green, labelled],
  ] as const) {
    assert.deepEqual(receiver.unpackPacket(packed(sender)), { fault: "label" });
  }
  assert.deepEqual(codec.unpackFrame(framed(labelled)), { fault: "label" });
  assert.deepEqual(labelled.unpackFrame(framed(green)), { fault: "label" });
  // Without a label ahead it could be a reply; the seal does not fit.
  assert.deepEqual(labelled.unpackFrame(framed(codec)), { fault: "sealed" });
  assert.equal(Buffer.from(packed(labelled)).subarray(0, 6).toString("latin1"), "\u{f4}\u{4}blue");
});

test("a key of no size of AES, and a label that is too long, are refused", () => {
  assert.throws(() => createCodec({ key: new Uint8Array(20) }), RangeError);
  assert.throws(() => createCodec({ key: KEY, label: "x".repeat(256) }), RangeError);
  for (const bytes of [16, 24, 32]) createCodec({ key: new Uint8Array(bytes) });
});

test("any change of a sealed packet or frame is noticed", () => {
  const { packet } = labelled.packPacket([nack], 5);
  const frame = labelled.packFrame({ type: "error", text: "x" }, "request");
  for (let at = 0; at < packet.length; at++) {
    assert.ok("fault" in labelled.unpackPacket(changed(packet, at)), `byte ${at} of the packet`);
  }
  for (let at = 0; at < frame.length; at++) {
    assert.ok("fault" in labelled.unpackFrame(changed(frame, at)), `byte ${at} of the frame`);
  }
});

function changed(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[at] = copy[at]! ^ 0x20;
  return copy;
}

test("arbitrary bytes are a fault", () => {
  fc.assert(
    fc.property(anyBytes(200), (bytes) => {
      for (const reader of [codec, labelled]) {
        assert.ok("fault" in reader.unpackPacket(bytes));
        assert.ok("fault" in reader.unpackFrame(bytes));
      }
    }),
  );
});
