/**
 * Bytes to messages of the membership protocol. Whoever has the key may send anything: nothing here throws, and time and memory
 * are bounded by wire-limits.ts.
 */
import { crc32 } from "node:zlib";
import { IPV4_BYTES, IPV6_BYTES, unmappedIp } from "../base/ip.ts";
import { type Inflated, inflateLzw } from "./lzw.ts";
import {
  type AliveMessage,
  type Endpoint,
  MEMBER_STATE,
  type MemberState,
  type NodeState,
  type PacketMessage,
  type PushPullMessage,
  type Source,
  type StreamMessage,
  type Versions,
} from "./messages.ts";
import { createReader, type Fields, type Reader, readFields, remaining, type Scalar } from "./msgpack.ts";
import { COMPRESSION_LZW, CRC_BYTES, MESSAGE_TYPE, type WireFault } from "./wire.ts";
import {
  COMPRESSED_PARTS_MAX,
  ERROR_TEXT_BYTES_MAX,
  INFLATED_FRAME_BYTES_MAX,
  INFLATED_PACKET_BYTES_MAX,
  META_BYTES_MAX,
  NODE_NAME_BYTES_MAX,
  NODES_MAX,
  PART_DEPTH_MAX,
} from "./wire-limits.ts";

/** Every name of a field in any message; all others are passed over. */
const FIELD_NAMES: ReadonlySet<string> = new Set([
  ...["SeqNo", "Node", "SourceAddr", "SourcePort", "SourceNode", "Target", "Port", "Nack", "Payload"],
  ...["Incarnation", "From", "Addr", "Meta", "Vsn", "Nodes", "UserStateLen", "Join", "Name", "State"],
  ...["UserMsgLen", "Algo", "Buf", "Error"],
]);

const UINT32_MAX = 0xffff_ffff;
const PORT_MAX = 0xffff;
const NOTHING = new Uint8Array();
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The fields of a message while they are read; once one cannot be what it should be, all of it is broken. */
type Body = { readonly fields: Fields; broken: boolean };

function readBody(reader: Reader): Body | undefined {
  const fields = readFields(reader, FIELD_NAMES);
  return fields === undefined ? undefined : { fields, broken: false };
}

function field(body: Body, name: string): Scalar {
  return body.fields.get(name);
}

/** A whole number from 0 to `most`; 0 where it is missing. */
function numberOf(body: Body, name: string, most: number): number {
  const value = field(body, name) ?? 0;
  if (typeof value === "number" && value >= 0 && value <= most) return value;
  body.broken = true;
  return 0;
}

function flagOf(body: Body, name: string): boolean {
  const value = field(body, name) ?? false;
  if (typeof value === "boolean") return value;
  body.broken = true;
  return false;
}

/** A part of the message's bytes, none where it is missing. */
function partOf(body: Body, name: string, most: number): Uint8Array {
  const value = field(body, name) ?? NOTHING;
  if (value instanceof Uint8Array && value.length <= most) return value;
  body.broken = true;
  return NOTHING;
}

/** A copy: what a member is known by must not hold on to the frame that told of it. */
function bytesOf(body: Body, name: string, most: number): Uint8Array {
  return new Uint8Array(partOf(body, name, most));
}

function textOf(body: Body, name: string, most = NODE_NAME_BYTES_MAX): string {
  try {
    return utf8.decode(partOf(body, name, most));
  } catch {
    body.broken = true;
    return "";
  }
}

/** The name of a member, which cannot be empty. */
function memberName(body: Body, name: string): string {
  const text = textOf(body, name);
  if (text === "") body.broken = true;
  return text;
}

/** An address as others spell it: IPv4 in 16 bytes is IPv4. Undefined where it is none, or the port is 0. */
function findEndpoint(body: Body, addressName: string, portName: string): Endpoint | undefined {
  const address = unmappedIp(bytesOf(body, addressName, IPV6_BYTES));
  const port = numberOf(body, portName, PORT_MAX);
  const isAddress = address.length === IPV4_BYTES || address.length === IPV6_BYTES;
  return isAddress && port > 0 ? { address: new Uint8Array(address), port } : undefined;
}

const NO_ENDPOINT: Endpoint = { address: new Uint8Array(IPV4_BYTES), port: 0 };

function endpointOf(body: Body, addressName: string): Endpoint {
  const endpoint = findEndpoint(body, addressName, "Port");
  if (endpoint === undefined) body.broken = true;
  return endpoint ?? NO_ENDPOINT;
}

function sourceOf(body: Body): Source | undefined {
  const endpoint = findEndpoint(body, "SourceAddr", "SourcePort");
  return endpoint === undefined ? undefined : { endpoint, node: textOf(body, "SourceNode") };
}

/** All zero where nothing is said; a later protocol may say more. */
function versionsOf(body: Body): Versions {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = partOf(body, "Vsn", 255);
  return [a, b, c, d, e, f];
}

function memberOf(body: Body, nameField: string): Omit<AliveMessage, "type"> {
  return {
    incarnation: numberOf(body, "Incarnation", UINT32_MAX),
    node: memberName(body, nameField),
    endpoint: endpointOf(body, "Addr"),
    meta: bytesOf(body, "Meta", META_BYTES_MAX),
    versions: versionsOf(body),
  };
}

function sequenceOf(body: Body): number {
  return numberOf(body, "SeqNo", UINT32_MAX);
}

/** What a body says where its message is of that type; undefined for a type that is not known. */
function messageOf(type: number | undefined, body: Body): PacketMessage | undefined {
  switch (type) {
    case MESSAGE_TYPE.PING:
      return { type: "ping", sequence: sequenceOf(body), node: textOf(body, "Node"), source: sourceOf(body) };
    case MESSAGE_TYPE.INDIRECT_PING:
      return {
        type: "indirect-ping",
        sequence: sequenceOf(body),
        target: endpointOf(body, "Target"),
        node: textOf(body, "Node"),
        wantsNack: flagOf(body, "Nack"),
        source: sourceOf(body),
      };
    case MESSAGE_TYPE.ACK:
      return { type: "ack", sequence: sequenceOf(body), payload: bytesOf(body, "Payload", Number.MAX_SAFE_INTEGER) };
    case MESSAGE_TYPE.NACK:
      return { type: "nack", sequence: sequenceOf(body) };
    case MESSAGE_TYPE.SUSPECT:
    case MESSAGE_TYPE.DEAD:
      return {
        type: type === MESSAGE_TYPE.SUSPECT ? "suspect" : "dead",
        incarnation: numberOf(body, "Incarnation", UINT32_MAX),
        node: memberName(body, "Node"),
        from: textOf(body, "From"),
      };
    case MESSAGE_TYPE.ALIVE:
      return { type: "alive", ...memberOf(body, "Node") };
    default:
      return undefined;
  }
}

function readMessage(type: number | undefined, reader: Reader): PacketMessage | undefined {
  const body = readBody(reader);
  if (body === undefined) return undefined;
  const message = messageOf(type, body);
  return body.broken ? undefined : message;
}

/** What a compressed message stands for. */
function inflate(reader: Reader, bytesMax: number): Inflated {
  const body = readBody(reader);
  if (body === undefined) return { fault: "malformed" };
  const algorithm = numberOf(body, "Algo", UINT32_MAX);
  const text = partOf(body, "Buf", Number.MAX_SAFE_INTEGER);
  if (body.broken || algorithm !== COMPRESSION_LZW) return { fault: "malformed" };
  return inflateLzw(text, bytesMax);
}

/** A packet while it is read. */
type Opening = {
  readonly messages: PacketMessage[];
  malformed: number;
  isOversized: boolean;
  compressedPartsLeft: number;
  /** Bytes that compressed parts may still come to, all together. */
  inflatedBytesLeft: number;
};

/** The parts that a compound names; those that are cut off count as one. */
function openCompound(opening: Opening, reader: Reader, depth: number): void {
  const { bytes, view } = reader;
  const count = bytes[reader.at] ?? 0;
  const lengthsAt = reader.at + 1;
  let at = lengthsAt + 2 * count;
  for (let index = 0; index < count && at <= bytes.length; index++) {
    const end = at + view.getUint16(lengthsAt + 2 * index);
    if (end <= bytes.length) openPart(opening, bytes.subarray(at, end), depth);
    at = end;
  }
  if (count === 0 || at > bytes.length) opening.malformed++;
}

function openCompressed(opening: Opening, reader: Reader, depth: number): void {
  // Bytes alone would not bound it: what turns out to be malformed, or is next to nothing, has been worked on too.
  opening.compressedPartsLeft--;
  const inflated: Inflated =
    opening.compressedPartsLeft < 0 ? { fault: "oversized" } : inflate(reader, opening.inflatedBytesLeft);
  if ("bytes" in inflated) {
    opening.inflatedBytesLeft -= inflated.bytes.length;
    openPart(opening, inflated.bytes, depth);
  } else if (inflated.fault === "oversized") opening.isOversized = true;
  else opening.malformed++;
}

function openChecked(opening: Opening, { bytes, view }: Reader, depth: number): void {
  const checked = bytes.subarray(CRC_BYTES);
  if (bytes.length < CRC_BYTES || view.getUint32(1) !== crc32(checked)) opening.malformed++;
  else openPart(opening, checked, depth);
}

function openMessage(opening: Opening, type: number | undefined, reader: Reader): void {
  const message =
    type === MESSAGE_TYPE.USER
      ? ({ type: "user", payload: takeCopy(reader, remaining(reader)) ?? NOTHING } as const)
      : readMessage(type, reader);
  if (message === undefined) opening.malformed++;
  else opening.messages.push(message);
}

/** Reads a message, or the parts of one that holds others. */
function openPart(opening: Opening, bytes: Uint8Array, depth: number): void {
  const [type] = bytes;
  const reader = createReader(bytes);
  reader.at = 1;
  if (type === undefined || depth > PART_DEPTH_MAX || opening.isOversized) opening.malformed++;
  else if (type === MESSAGE_TYPE.COMPOUND) openCompound(opening, reader, depth + 1);
  else if (type === MESSAGE_TYPE.COMPRESSED) openCompressed(opening, reader, depth + 1);
  else if (type === MESSAGE_TYPE.CRC) openChecked(opening, reader, depth + 1);
  else openMessage(opening, type, reader);
}

/**
 * The messages of a packet in their order, and how many of its parts could not be read. A fault where compressed parts come to
 * more than they may.
 */
export function decodePacket(
  bytes: Uint8Array,
): { readonly messages: readonly PacketMessage[]; readonly malformed: number } | { readonly fault: WireFault } {
  const inflatedBytesLeft = INFLATED_PACKET_BYTES_MAX;
  const compressedPartsLeft = COMPRESSED_PARTS_MAX;
  const opening: Opening = { messages: [], malformed: 0, isOversized: false, compressedPartsLeft, inflatedBytesLeft };
  openPart(opening, bytes, 0);
  const { messages, malformed, isOversized } = opening;
  return isOversized ? { fault: "oversized" } : { messages, malformed };
}

function isState(value: number): value is MemberState {
  return value <= MEMBER_STATE.LEFT;
}

/** The next member of a push/pull; "unknown" where its bytes are well formed, but say what a member cannot be. */
function readNode(reader: Reader): NodeState | "unknown" | undefined {
  const body = readBody(reader);
  if (body === undefined) return undefined;
  const member = memberOf(body, "Name");
  const state = numberOf(body, "State", UINT32_MAX);
  return body.broken || !isState(state) ? "unknown" : { ...member, state };
}

/** Members that cannot be are left out: one that is odd must not keep all others from hearing of each other. */
function readPushPull(reader: Reader): PushPullMessage | undefined {
  const header = readBody(reader);
  if (header === undefined) return undefined;
  const count = numberOf(header, "Nodes", NODES_MAX);
  const stateBytes = numberOf(header, "UserStateLen", remaining(reader));
  const isJoin = flagOf(header, "Join");
  if (header.broken) return undefined;
  const nodes: NodeState[] = [];
  for (let index = 0; index < count; index++) {
    const node = readNode(reader);
    if (node === undefined) return undefined;
    if (node !== "unknown") nodes.push(node);
  }
  const userState = takeCopy(reader, stateBytes);
  return userState === undefined ? undefined : { type: "push-pull", isJoin, nodes, userState };
}

function takeCopy(reader: Reader, length: number): Uint8Array | undefined {
  if (length > remaining(reader)) return undefined;
  return new Uint8Array(reader.bytes.subarray(reader.at, reader.at + length));
}

function readUser(reader: Reader): StreamMessage | undefined {
  const header = readBody(reader);
  if (header === undefined) return undefined;
  const length = numberOf(header, "UserMsgLen", remaining(reader));
  const payload = takeCopy(reader, length);
  return header.broken || payload === undefined ? undefined : { type: "user", payload };
}

function readError(reader: Reader): StreamMessage | undefined {
  const body = readBody(reader);
  if (body === undefined) return undefined;
  const text = textOf(body, "Error", ERROR_TEXT_BYTES_MAX);
  return body.broken ? undefined : { type: "error", text };
}

function readStream(bytes: Uint8Array): StreamMessage | undefined {
  const [type] = bytes;
  if (type === undefined) return undefined;
  const reader = createReader(bytes);
  reader.at = 1;
  if (type === MESSAGE_TYPE.PUSH_PULL) return readPushPull(reader);
  if (type === MESSAGE_TYPE.USER) return readUser(reader);
  if (type === MESSAGE_TYPE.ERROR) return readError(reader);
  const message = readMessage(type, reader);
  return message?.type === "ping" || message?.type === "ack" ? message : undefined;
}

/** The one message of a frame. Bytes behind it are passed over. */
export function decodeStream(bytes: Uint8Array): { readonly message: StreamMessage } | { readonly fault: WireFault } {
  let plain = bytes;
  if (bytes[0] === MESSAGE_TYPE.COMPRESSED) {
    const reader = createReader(bytes);
    reader.at = 1;
    const inflated = inflate(reader, INFLATED_FRAME_BYTES_MAX);
    if ("fault" in inflated) return inflated;
    plain = inflated.bytes;
  }
  const message = readStream(plain);
  return message === undefined ? { fault: "malformed" } : { message };
}
