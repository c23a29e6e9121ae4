/** Messages of the membership protocol to bytes; wire-read.ts is the way back. */
import { crc32 } from "node:zlib";
import type { AliveMessage, NodeState, PacketMessage, PushPullMessage, Source, StreamMessage } from "./messages.ts";
import { createWriter, type FieldValue, putBytes, putFields, putUnsigned, type Writer, written } from "./msgpack.ts";
import { CRC_BYTES, CRC_PROTOCOL_MIN, MESSAGE_TYPE } from "./wire.ts";
import { COMPOUND_PARTS_MAX, FRAME_BYTES_MAX, PACKET_BYTES_MAX } from "./wire-limits.ts";

function putMessage(writer: Writer, type: number, fields: Readonly<Record<string, FieldValue>>): void {
  putUnsigned(writer, type, 1);
  putFields(writer, fields);
}

function sourceFields(source: Source | undefined): Readonly<Record<string, FieldValue>> {
  if (source === undefined) return {};
  const { endpoint, node } = source;
  return { SourceAddr: endpoint.address, SourcePort: endpoint.port, SourceNode: node };
}

function memberFields(member: Omit<AliveMessage, "type" | "node">): Readonly<Record<string, FieldValue>> {
  const { incarnation, endpoint, meta, versions } = member;
  const { address, port } = endpoint;
  return { Incarnation: incarnation, Addr: address, Port: port, Meta: meta, Vsn: Uint8Array.from(versions) };
}

/** Type and body of a message that is one map. */
type Spelling = readonly [type: number, fields: Readonly<Record<string, FieldValue>>];

function spell(message: Exclude<PacketMessage, { type: "user" }>): Spelling {
  switch (message.type) {
    case "ping": {
      const { sequence, node, source } = message;
      return [MESSAGE_TYPE.PING, { SeqNo: sequence, Node: node, ...sourceFields(source) }];
    }
    case "indirect-ping": {
      const { sequence, target, node, wantsNack, source } = message;
      const asked = { SeqNo: sequence, Target: target.address, Port: target.port, Node: node, Nack: wantsNack };
      return [MESSAGE_TYPE.INDIRECT_PING, { ...asked, ...sourceFields(source) }];
    }
    case "ack":
      return [MESSAGE_TYPE.ACK, { SeqNo: message.sequence, Payload: message.payload }];
    case "nack":
      return [MESSAGE_TYPE.NACK, { SeqNo: message.sequence }];
    case "suspect":
    case "dead": {
      const { type, incarnation, node, from } = message;
      const number = type === "suspect" ? MESSAGE_TYPE.SUSPECT : MESSAGE_TYPE.DEAD;
      return [number, { Incarnation: incarnation, Node: node, From: from }];
    }
    case "alive":
      return [MESSAGE_TYPE.ALIVE, { Node: message.node, ...memberFields(message) }];
  }
}

function putPacketMessage(writer: Writer, message: PacketMessage): void {
  if (message.type === "user") {
    putUnsigned(writer, MESSAGE_TYPE.USER, 1);
    putBytes(writer, message.payload);
  } else putMessage(writer, ...spell(message));
}

function encodeMessage(message: PacketMessage): Uint8Array {
  const writer = createWriter();
  putPacketMessage(writer, message);
  return written(writer);
}

/** What a compound takes besides its parts: type and count, and a length each. */
function compoundBytes(count: number): number {
  return 2 + 2 * count;
}

export type PacketOptions = {
  /** The greatest protocol that the receiver speaks. */
  readonly peerProtocol: number;
  /** What the packet is filled up to. */
  readonly bytesMax: number;
};

/** How many messages from the first on fit, the first always, and their bytes. */
function takeParts(messages: readonly PacketMessage[], bytesMax: number): readonly Uint8Array[] {
  const parts: Uint8Array[] = [];
  let length = 0;
  for (const message of messages) {
    const part = encodeMessage(message);
    const whole = compoundBytes(parts.length + 1) + length + part.length;
    if (parts.length > 0 && (whole > bytesMax || parts.length === COMPOUND_PARTS_MAX)) break;
    length += part.length;
    parts.push(part);
  }
  return parts;
}

function putCompound(writer: Writer, parts: readonly Uint8Array[]): void {
  putUnsigned(writer, MESSAGE_TYPE.COMPOUND, 1);
  putUnsigned(writer, parts.length, 1);
  for (const part of parts) putUnsigned(writer, part.length, 2);
  for (const part of parts) putBytes(writer, part);
}

/**
 * One packet of as many messages from the first on as fit, the first always. Throws RangeError where there is none, or where
 * the first is larger than a packet can be.
 */
export function encodePacket(
  messages: readonly PacketMessage[],
  { peerProtocol, bytesMax }: PacketOptions,
): { readonly bytes: Uint8Array; readonly count: number } {
  const hasCrc = peerProtocol >= CRC_PROTOCOL_MIN;
  const parts = takeParts(messages, bytesMax - (hasCrc ? CRC_BYTES : 0));
  const [first] = parts;
  if (first === undefined) throw new RangeError("a packet needs a message");
  if (first.length > PACKET_BYTES_MAX) throw new RangeError(`${first.length} bytes are more than a packet can be`);
  const writer = createWriter();
  if (hasCrc) {
    putUnsigned(writer, MESSAGE_TYPE.CRC, 1);
    putUnsigned(writer, 0, 4);
  }
  if (parts.length === 1) putBytes(writer, first);
  else putCompound(writer, parts);
  const bytes = written(writer);
  if (hasCrc) new DataView(bytes.buffer, bytes.byteOffset).setUint32(1, crc32(bytes.subarray(CRC_BYTES)));
  return { bytes, count: parts.length };
}

function nodeFields(node: NodeState): Readonly<Record<string, FieldValue>> {
  return { Name: node.node, ...memberFields(node), State: node.state };
}

function putPushPull(writer: Writer, { nodes, userState, isJoin }: PushPullMessage): void {
  const header = { Nodes: nodes.length, UserStateLen: userState.length, Join: isJoin };
  putMessage(writer, MESSAGE_TYPE.PUSH_PULL, header);
  for (const node of nodes) putFields(writer, nodeFields(node));
  putBytes(writer, userState);
}

/** The bytes of a message over TCP. Throws RangeError where they are more than a frame may be. */
export function encodeStream(message: StreamMessage): Uint8Array {
  const writer = createWriter();
  if (message.type === "push-pull") putPushPull(writer, message);
  else if (message.type === "error") putMessage(writer, MESSAGE_TYPE.ERROR, { Error: message.text });
  else if (message.type === "user") {
    // Over TCP its length is told: nothing else says where it ends.
    putMessage(writer, MESSAGE_TYPE.USER, { UserMsgLen: message.payload.length });
    putBytes(writer, message.payload);
  } else putPacketMessage(writer, message);
  const bytes = written(writer);
  if (bytes.length > FRAME_BYTES_MAX) throw new RangeError(`${bytes.length} bytes are more than a frame may be`);
  return bytes;
}
