import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { deflateLzw } from "../../tests/support/lzw.ts";
import { anyPacketMessage, anyStreamMessage } from "../../tests/support/membership-messages.ts";
import type { NodeState, PacketMessage } from "./messages.ts";
import { createWriter, type FieldValue, putFields, putUnsigned, written } from "./msgpack.ts";
import { MESSAGE_TYPE } from "./wire.ts";
import { INFLATED_FRAME_BYTES_MAX } from "./wire-limits.ts";
import { decodePacket, decodeStream } from "./wire-read.ts";
import { encodePacket, encodeStream } from "./wire-write.ts";

const NODE: NodeState = {
  incarnation: 3,
  node: "n",
  endpoint: { address: Uint8Array.of(192, 0, 2, 1), port: 7946 },
  meta: new Uint8Array(),
  versions: [1, 5, 2, 2, 5, 4],
  state: 0,
};
const NACK: PacketMessage = { type: "nack", sequence: 1 };
const MAPPED = Uint8Array.of(...new Uint8Array(10), 255, 255, 192, 0, 2, 1);

function body(type: number, fields: Readonly<Record<string, FieldValue>>, ...rest: readonly Uint8Array[]): Uint8Array {
  const writer = createWriter();
  putUnsigned(writer, type, 1);
  putFields(writer, fields);
  return Buffer.concat([written(writer), ...rest]);
}

function plain(message: PacketMessage): Uint8Array {
  return encodePacket([message], { peerProtocol: 0, bytesMax: 1_400 }).bytes;
}

function compound(...parts: readonly Uint8Array[]): Uint8Array {
  const lengths = parts.flatMap(({ length }) => [length >> 8, length & 0xff]);
  return Buffer.concat([Uint8Array.of(MESSAGE_TYPE.COMPOUND, parts.length, ...lengths), ...parts]);
}

function compressed(bytes: Uint8Array): Uint8Array {
  return body(MESSAGE_TYPE.COMPRESSED, { Algo: 0, Buf: deflateLzw(bytes) });
}

function checked(bytes: Uint8Array): Uint8Array {
  const sum = Buffer.alloc(5);
  sum[0] = MESSAGE_TYPE.CRC;
  sum.writeUInt32BE(crc32(bytes), 1);
  return Buffer.concat([sum, bytes]);
}

/** "1+2": one message, and two parts that could not be read. */
function tally(bytes: Uint8Array): string {
  const outcome = decodePacket(bytes);
  return "fault" in outcome ? outcome.fault : `${outcome.messages.length}+${outcome.malformed}`;
}

/** So often in a compound of one part. */
function nested(times: number): Uint8Array {
  let bytes = plain(NACK);
  for (let depth = 0; depth < times; depth++) bytes = compound(bytes);
  return bytes;
}

const nack = plain(NACK);
const zeros = new Uint8Array(40_000);
const many = compound(...Array<Uint8Array>(200).fill(nack));

const PACKETS: readonly (readonly [what: string, packet: Uint8Array, outcome: string])[] = [
  ["nothing", new Uint8Array(), "0+1"],
  ["a type alone", Uint8Array.of(0), "0+1"],
  ["a type that is not known", Uint8Array.of(99, 0x80), "0+1"],
  ["a push/pull", encodeStream({ type: "push-pull", isJoin: true, nodes: [], userState: zeros }), "0+1"],
  ["an error", encodeStream({ type: "error", text: "x" }), "0+1"],
  ["an empty user message", Uint8Array.of(MESSAGE_TYPE.USER), "1+0"],
  ["three parts, the second unknown", compound(nack, Uint8Array.of(99), nack), "2+1"],
  ["parts that are cut off", compound(nack, nack).subarray(0, -1), "1+1"],
  ["lengths that are cut off", Uint8Array.of(MESSAGE_TYPE.COMPOUND, 200, 0, 1), "0+1"],
  ["a compound without a count", Uint8Array.of(MESSAGE_TYPE.COMPOUND), "0+1"],
  ["a compound of none", Uint8Array.of(MESSAGE_TYPE.COMPOUND, 0), "0+1"],
  ["a part without bytes", compound(nack, new Uint8Array()), "1+1"],
  ["parts in eight parts", nested(8), "1+0"],
  ["parts in nine parts", nested(9), "0+1"],
  ["compressed", compressed(many), "200+0"],
  ["compressed within compressed", compressed(compressed(many)), "200+0"],
  ["another compression", body(MESSAGE_TYPE.COMPRESSED, { Algo: 1, Buf: deflateLzw(nack) }), "0+1"],
  ["compressed bytes that are none", body(MESSAGE_TYPE.COMPRESSED, { Algo: 0, Buf: nack }), "0+1"],
  ["a CRC that is right", checked(many), "200+0"],
  ["a CRC within a part", compound(checked(nack), nack), "2+0"],
  ["a CRC that is wrong", Uint8Array.of(...checked(nack).subarray(0, -1), 9), "0+1"],
  ["a CRC that is cut off", checked(nack).subarray(0, 4), "0+1"],
  ["40,000 bytes", compressed(Uint8Array.of(8, ...zeros)), "1+0"],
  ["70,000 bytes", compressed(Uint8Array.of(8, ...zeros, ...zeros)), "oversized"],
  ["eight compressed parts", compound(...Array<Uint8Array>(8).fill(compressed(nack))), "8+0"],
  ["nine compressed parts", compound(...Array<Uint8Array>(9).fill(compressed(nack))), "oversized"],
  [
    "nine compressed parts of nothing",
    compound(...Array<Uint8Array>(9).fill(compressed(zeros.subarray(0, 0)))),
    "oversized",
  ],
  ["40,000 bytes twice", compound(...[1, 2].map(() => compressed(Uint8Array.of(8, ...zeros)))), "oversized"],
];

for (const [what, packet, outcome] of PACKETS) {
  test(`a packet of ${what}`, () => assert.equal(tally(packet), outcome));
}

/** Fields of an alive message besides those that are given. */
function alive(fields: Readonly<Record<string, FieldValue>>): Uint8Array {
  const usual = { Node: "n", Addr: NODE.endpoint.address, Port: 7946, Incarnation: 3, Meta: NODE.meta };
  return body(MESSAGE_TYPE.ALIVE, { ...usual, Vsn: Uint8Array.of(1, 5, 2, 2, 5, 4), ...fields });
}

const REFUSED: readonly (readonly [what: string, fields: Readonly<Record<string, FieldValue>>])[] = [
  ["no name", { Node: "" }],
  ["a name that is no UTF-8", { Node: Uint8Array.of(0xff) }],
  ["a name that is a number", { Node: 1 }],
  ["a name of 513 bytes", { Node: "x".repeat(513) }],
  ["an address of five bytes", { Addr: new Uint8Array(5) }],
  ["no address", { Addr: "" }],
  ["an address of 17 bytes", { Addr: new Uint8Array(17) }],
  ["port 0", { Port: 0 }],
  ["port 65,536", { Port: 65_536 }],
  ["513 bytes of meta", { Meta: new Uint8Array(513) }],
  ["an incarnation that is true", { Incarnation: true }],
];

for (const [what, fields] of REFUSED) {
  test(`an alive member with ${what} is malformed`, () => assert.equal(tally(alive(fields)), "0+1"));
}

const { state: _, ...MEMBER } = NODE;

test("what a message leaves out is as nothing, and IPv4 in 16 bytes is IPv4", () => {
  const addressed = { Node: "n", Addr: MAPPED, Port: 7946 };
  assert.deepEqual(decodePacket(alive({ Addr: MAPPED })), { messages: [{ type: "alive", ...MEMBER }], malformed: 0 });
  assert.deepEqual(decodePacket(body(MESSAGE_TYPE.ALIVE, addressed)), {
    messages: [{ type: "alive", ...MEMBER, incarnation: 0, versions: [0, 0, 0, 0, 0, 0] }],
    malformed: 0,
  });
  assert.deepEqual(decodePacket(body(MESSAGE_TYPE.PING, {})), {
    messages: [{ type: "ping", sequence: 0, node: "", source: undefined }],
    malformed: 0,
  });
  const versions = Uint8Array.of(1, 5, 2, 2, 5, 4, 9);
  assert.deepEqual(decodePacket(alive({ Vsn: versions, Later: "unknown" })), {
    messages: [{ type: "alive", ...MEMBER }],
    malformed: 0,
  });
});

function pushPull(header: Readonly<Record<string, FieldValue>>, ...parts: readonly Uint8Array[]): Uint8Array {
  return body(MESSAGE_TYPE.PUSH_PULL, header, ...parts);
}

function nodeBytes(fields: Readonly<Record<string, FieldValue>>): Uint8Array {
  const usual = { Name: "n", Addr: NODE.endpoint.address, Port: 7946, Incarnation: 3, State: 0 };
  return body(0, { ...usual, Vsn: Uint8Array.from(NODE.versions), ...fields }).subarray(1);
}

test("members of a push/pull that cannot be are left out, the others stand", () => {
  const states = [nodeBytes({ State: 4 }), nodeBytes({}), nodeBytes({ Name: "" }), nodeBytes({ Port: 0 })];
  const frame = pushPull({ Nodes: 4, UserStateLen: 2, Join: true }, ...states, Uint8Array.of(7, 8));
  const userState = Uint8Array.of(7, 8);
  assert.deepEqual(decodeStream(frame), { message: { type: "push-pull", isJoin: true, nodes: [NODE], userState } });
});

const zeroFrame = new Uint8Array(INFLATED_FRAME_BYTES_MAX);

const FRAMES: readonly (readonly [what: string, frame: Uint8Array, outcome: string])[] = [
  ["nothing", new Uint8Array(), "malformed"],
  ["a type that is not known", Uint8Array.of(99, 0x80), "malformed"],
  ["what only packets have", plain(NACK), "malformed"],
  ["a compound", many, "malformed"],
  ["fewer members than it says", pushPull({ Nodes: 2 }, nodeBytes({})), "malformed"],
  ["more members than may be", pushPull({ Nodes: 70_000 }, new Uint8Array(70_000).fill(0x80)), "malformed"],
  ["4,097 members", pushPull({ Nodes: 4_097 }, ...Array<Uint8Array>(4_097).fill(nodeBytes({}))), "malformed"],
  ["4,096 members", pushPull({ Nodes: 4_096 }, ...Array<Uint8Array>(4_096).fill(nodeBytes({}))), "push-pull"],
  ["4 MiB and more, compressed", compressed(pushPull({ UserStateLen: zeroFrame.length }, zeroFrame)), "oversized"],
  ["less state than it says", pushPull({ UserStateLen: 3 }, new Uint8Array(2)), "malformed"],
  ["a member that is no map", pushPull({ Nodes: 1 }, Uint8Array.of(1)), "malformed"],
  ["a user message that is cut off", body(MESSAGE_TYPE.USER, { UserMsgLen: 5 }, new Uint8Array(4)), "malformed"],
  ["bytes behind a user message", body(MESSAGE_TYPE.USER, { UserMsgLen: 5 }, new Uint8Array(9)), "user"],
  ["a compressed push/pull", compressed(pushPull({ Nodes: 1 }, nodeBytes({}))), "push-pull"],
  ["compressed within compressed", compressed(compressed(pushPull({}))), "malformed"],
  ["an error of 5,000 bytes", encodeStream({ type: "error", text: "x".repeat(5_000) }), "malformed"],
];

for (const [what, frame, outcome] of FRAMES) {
  test(`a frame of ${what}`, () => {
    const decoded = decodeStream(frame);
    assert.equal("fault" in decoded ? decoded.fault : decoded.message.type, outcome);
  });
}

test("what is kept does not hold on to the bytes that it came in", () => {
  const decoded = decodeStream(encodeStream({ type: "push-pull", isJoin: false, nodes: [NODE], userState: zeros }));
  assert.ok("message" in decoded && decoded.message.type === "push-pull");
  const [node] = decoded.message.nodes;
  assert.deepEqual([node?.meta.buffer.byteLength, node?.endpoint.address.buffer.byteLength], [0, 4]);
});

/** A message with some bytes changed: nearer to a message than arbitrary bytes are. */
function damaged(bytes: Uint8Array, changes: readonly (readonly [number, number])[]): Uint8Array {
  const copy = Uint8Array.from(bytes);
  for (const [at, value] of changes) copy[at % copy.length] = value;
  return copy;
}

const byte = fc.integer({ min: 0, max: 255 });
const anyChanges = fc.array(fc.tuple(fc.integer({ min: 0, max: 2_000 }), byte), { maxLength: 6 });

test("arbitrary and damaged packets are read to their end", () => {
  fc.assert(
    fc.property(
      fc.array(anyPacketMessage, { minLength: 1, maxLength: 5 }),
      anyChanges,
      fc.uint8Array({ maxLength: 300 }),
      (messages, changes, bytes) => {
        const { bytes: packet } = encodePacket(messages, { peerProtocol: 0, bytesMax: 1_400 });
        for (const text of [damaged(packet, changes), compressed(damaged(packet, changes)), bytes]) {
          assert.notEqual(tally(text), "0+0");
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("arbitrary and damaged frames are read to their end", () => {
  fc.assert(
    fc.property(anyStreamMessage, anyChanges, fc.uint8Array({ maxLength: 300 }), (message, changes, bytes) => {
      for (const text of [damaged(encodeStream(message), changes), bytes]) {
        const decoded = decodeStream(text);
        assert.ok("message" in decoded || decoded.fault === "malformed" || decoded.fault === "oversized");
      }
    }),
    { numRuns: 500 },
  );
});
