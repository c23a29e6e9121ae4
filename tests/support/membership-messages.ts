/** Messages of the membership protocol by chance, with everything that their bytes can carry. */
import fc, { type Arbitrary } from "fast-check";
import type {
  AliveMessage,
  Endpoint,
  MemberState,
  NodeState,
  PacketMessage,
  Source,
  StreamMessage,
  Versions,
} from "../../src/cluster/messages.ts";

/** Objects with a prototype, as every other has. */
function record<Model>(model: { [Key in keyof Model]: Arbitrary<Model[Key]> }): Arbitrary<Model> {
  return fc.record(model, { noNullPrototype: true });
}

/** A plain Uint8Array: what comes out of a decoder is one. */
export function anyBytes(maxLength: number): Arbitrary<Uint8Array> {
  return fc.uint8Array({ maxLength }).map((bytes) => Uint8Array.from(bytes));
}

function bytesOf(length: number): Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Uint8Array.from(bytes));
}

/** IPv6 that is not IPv4 in disguise, which would come out as IPv4. */
const anyIpv6 = bytesOf(14).map((tail) => Uint8Array.from([0x20, 0x01, ...tail]));
const anyEndpoint: Arbitrary<Endpoint> = record({
  address: fc.oneof(bytesOf(4), anyIpv6),
  port: fc.integer({ min: 1, max: 65_535 }),
});
const anyText = fc.string({ unit: "grapheme", maxLength: 40 });
const anyNode = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
const anyNumber = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 0xffff_ffff }));
const anyByte = fc.integer({ min: 0, max: 255 });
const anyVersions: Arbitrary<Versions> = fc.tuple(anyByte, anyByte, anyByte, anyByte, anyByte, anyByte);
const anySource: Arbitrary<Source | undefined> = fc.option(record({ endpoint: anyEndpoint, node: anyText }), {
  nil: undefined,
});

const member = {
  incarnation: anyNumber,
  node: anyNode,
  endpoint: anyEndpoint,
  meta: anyBytes(512),
  versions: anyVersions,
};
const anyAlive: Arbitrary<AliveMessage> = record({ type: fc.constant("alive"), ...member });
const anyState: Arbitrary<MemberState> = fc.constantFrom(0, 1, 2, 3);
const anyNodeState: Arbitrary<NodeState> = record({ ...member, state: anyState });

const ping = record({ type: fc.constant("ping"), sequence: anyNumber, node: anyText, source: anySource });
const ack = record({ type: fc.constant("ack"), sequence: anyNumber, payload: anyBytes(300) });
const user = record({ type: fc.constant("user"), payload: anyBytes(600) });

export const anyPacketMessage: Arbitrary<PacketMessage> = fc.oneof(
  ping,
  ack,
  user,
  anyAlive,
  record({ type: fc.constant("nack"), sequence: anyNumber }),
  record({ type: fc.constantFrom("suspect", "dead"), incarnation: anyNumber, node: anyNode, from: anyText }),
  record({
    type: fc.constant("indirect-ping"),
    sequence: anyNumber,
    target: anyEndpoint,
    node: anyText,
    wantsNack: fc.boolean(),
    source: anySource,
  }),
);

export const anyStreamMessage: Arbitrary<StreamMessage> = fc.oneof(
  ping,
  ack,
  user,
  record({ type: fc.constant("error"), text: anyText }),
  record({
    type: fc.constant("push-pull"),
    isJoin: fc.boolean(),
    nodes: fc.array(anyNodeState, { maxLength: 20 }),
    userState: anyBytes(400),
  }),
);
