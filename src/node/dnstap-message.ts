/** Events as messages of dnstap (dnstap.proto, in the encoding of protocol buffers), and the frames that they travel in. */
import { TRANSPORT } from "../image/counters.ts";
import { EVENT, type EventRing } from "../image/events.ts";

/** Fields of Dnstap and of Message, by the numbers that dnstap.proto gives them. */
const DNSTAP = { IDENTITY: 1, VERSION: 2, MESSAGE: 14, TYPE: 15 } as const;
const MESSAGE = {
  TYPE: 1,
  SOCKET_FAMILY: 2,
  SOCKET_PROTOCOL: 3,
  QUERY_ADDRESS: 4,
  QUERY_PORT: 6,
  QUERY_TIME_SEC: 8,
  QUERY_TIME_NSEC: 9,
  RESPONSE_TIME_SEC: 12,
  RESPONSE_TIME_NSEC: 13,
  RESPONSE_MESSAGE: 14,
} as const;
const DNSTAP_TYPE_MESSAGE = 1;
const CLIENT_RESPONSE = 6;
const FAMILY = { INET: 1, INET6: 2 } as const;
const PROTOCOLS: Readonly<Record<number, number>> = {
  [TRANSPORT.UDP]: 1,
  [TRANSPORT.TCP]: 2,
  [TRANSPORT.DOT]: 3,
  [TRANSPORT.DOH]: 4,
};

/** What a receiver is told that the frames hold. */
export const DNSTAP_CONTENT_TYPE = "protobuf:dnstap.Dnstap";

/** Types of control frames (the Frame Streams protocol of fstrm). */
export const CONTROL_FRAME = { ACCEPT: 1, START: 2, STOP: 3, READY: 4, FINISH: 5 } as const;
const CONTENT_TYPE_FIELD = 1;

const utf8 = new TextEncoder();

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return bytes;
}

function numberField(field: number, value: number): Uint8Array {
  return Uint8Array.from([...varint(field << 3), ...varint(value)]);
}

function fixedField(field: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return Uint8Array.from([...varint((field << 3) | 5), ...bytes]);
}

function bytesField(field: number, value: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.from([...varint((field << 3) | 2), ...varint(value.length)]), value]);
}

/** The event at `at`, which has the whole answer, as CLIENT_RESPONSE. */
export function dnstapMessage({ data, bytes }: EventRing, at: number, nodeId: string, version: string): Uint8Array {
  const addressBytes = bytes[at + EVENT.ADDRESS_BYTES]!;
  const answeredUs = Math.round(data.getFloat64(at + EVENT.TIME, true) * 1_000);
  const askedUs = answeredUs - data.getUint32(at + EVENT.MICROS, true);
  const answerBytes = data.getUint16(at + EVENT.MESSAGE_BYTES, true);
  const seconds = (us: number): number => Math.floor(us / 1e6);
  const nanoseconds = (us: number): number => (us % 1e6) * 1_000;
  const message = Buffer.concat([
    numberField(MESSAGE.TYPE, CLIENT_RESPONSE),
    numberField(MESSAGE.SOCKET_FAMILY, addressBytes === 4 ? FAMILY.INET : FAMILY.INET6),
    numberField(MESSAGE.SOCKET_PROTOCOL, PROTOCOLS[bytes[at + EVENT.TRANSPORT]!] ?? 1),
    bytesField(MESSAGE.QUERY_ADDRESS, bytes.slice(at + EVENT.ADDRESS, at + EVENT.ADDRESS + addressBytes)),
    numberField(MESSAGE.QUERY_PORT, data.getUint16(at + EVENT.PORT, true)),
    numberField(MESSAGE.QUERY_TIME_SEC, seconds(askedUs)),
    fixedField(MESSAGE.QUERY_TIME_NSEC, nanoseconds(askedUs)),
    numberField(MESSAGE.RESPONSE_TIME_SEC, seconds(answeredUs)),
    fixedField(MESSAGE.RESPONSE_TIME_NSEC, nanoseconds(answeredUs)),
    bytesField(MESSAGE.RESPONSE_MESSAGE, bytes.slice(at + EVENT.MESSAGE, at + EVENT.MESSAGE + answerBytes)),
  ]);
  return Buffer.concat([
    bytesField(DNSTAP.IDENTITY, utf8.encode(nodeId)),
    bytesField(DNSTAP.VERSION, utf8.encode(version)),
    bytesField(DNSTAP.MESSAGE, message),
    numberField(DNSTAP.TYPE, DNSTAP_TYPE_MESSAGE),
  ]);
}

/** A frame of data: its length, then itself. */
export function dataFrame(content: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(4 + content.length);
  frame.writeUInt32BE(content.length);
  frame.set(content, 4);
  return frame;
}

/** A control frame: an empty length that says it is one, its length, its type, and the content type where it has one. */
export function controlFrame(type: number, contentType?: string): Uint8Array {
  const field = contentType === undefined ? new Uint8Array(0) : utf8.encode(contentType);
  const body = Buffer.alloc(4 + (contentType === undefined ? 0 : 8 + field.length));
  body.writeUInt32BE(type);
  if (contentType !== undefined) {
    body.writeUInt32BE(CONTENT_TYPE_FIELD, 4);
    body.writeUInt32BE(field.length, 8);
    body.set(field, 12);
  }
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

/** Type and content type of the control frame at the start of what was received; undefined: it is not all there yet. */
export function readControlFrame(
  received: Buffer,
): { readonly type: number; readonly bytes: number; readonly text: string } | "malformed" | undefined {
  if (received.length < 8) return undefined;
  const length = received.readUInt32BE(4);
  if (received.readUInt32BE(0) !== 0 || length < 4 || length > 512) return "malformed";
  if (received.length < 8 + length) return undefined;
  return { type: received.readUInt32BE(8), bytes: 8 + length, text: received.toString("latin1", 12, 8 + length) };
}
