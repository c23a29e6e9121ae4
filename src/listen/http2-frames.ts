/** Frames of HTTP/2 (RFC 9113 sections 4 and 6): their numbers, and the bytes of those that are sent. */

export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FRAME_FLAG = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

export const SETTING = {
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** Section 7. */
export const HTTP2_ERROR = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;
export type Http2Error = (typeof HTTP2_ERROR)[keyof typeof HTTP2_ERROR];

/** Section 3.4. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
/** The longest payload that both sides take without having agreed on more (section 4.2). */
export const FRAME_BYTES_MAX = 16_384;
/** Of a flow-control window (section 6.9.1). */
export const WINDOW_MAX = 2 ** 31 - 1;
/** Both sides begin with it (section 6.9.2). */
export const WINDOW_FIRST = 65_535;

export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
};

/** Puts a frame's header at bytes[at...]; the offset behind it. */
export function putFrameHeader(
  bytes: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  bytes.writeUIntBE(length, at, 3);
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes.writeUInt32BE(stream, at + 5);
  return at + FRAME_HEADER_BYTES;
}

export function makeFrame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  bytes.set(payload, putFrameHeader(bytes, 0, payload.length, type, flags, stream));
  return bytes;
}

/** A frame whose payload is these 32-bit numbers. */
export function makeNumbersFrame(type: number, stream: number, ...numbers: readonly number[]): Buffer {
  const payload = Buffer.allocUnsafe(numbers.length * 4);
  for (const [index, number] of numbers.entries()) payload.writeUInt32BE(number, index * 4);
  return makeFrame(type, 0, stream, payload);
}

export function makeSettings(settings: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.allocUnsafe(settings.length * 6);
  for (const [index, [name, value]] of settings.entries()) {
    payload.writeUInt16BE(name, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return makeFrame(FRAME.SETTINGS, 0, 0, payload);
}

/** What a DATA or HEADERS frame carries, without padding and priority; undefined where those are longer than it. */
export function contentOf({ type, flags, payload }: Frame): Buffer | undefined {
  const isPadded = (flags & FRAME_FLAG.PADDED) !== 0;
  const hasPriority = type === FRAME.HEADERS && (flags & FRAME_FLAG.PRIORITY) !== 0;
  const from = (isPadded ? 1 : 0) + (hasPriority ? 5 : 0);
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0);
  return from > end ? undefined : payload.subarray(from, end);
}
