/** What an HTTP/2 connection receives: bytes become frames, frames become requests (RFC 9113 sections 4 to 6). */
import { createFieldDecoder, type RequestFields } from "./http2-fields.ts";
import {
  contentOf,
  FRAME,
  FRAME_BYTES_MAX,
  FRAME_FLAG,
  FRAME_HEADER_BYTES,
  type Frame,
  HTTP2_ERROR,
  type Http2Error,
  makeFrame,
  makeNumbersFrame,
  PREFACE,
  SETTING,
  WINDOW_FIRST,
  WINDOW_MAX,
} from "./http2-frames.ts";
import type { Http2Output } from "./http2-output.ts";

/** What comes of requests. */
export type Http2Requests = {
  /** `isLast`: no body follows. False: there are too many. */
  readonly onRequest: (stream: number, fields: RequestFields, isLast: boolean) => boolean;
  readonly onBody: (stream: number, chunk: Buffer, isLast: boolean) => void;
  /** The client takes it back. */
  readonly onReset: (stream: number) => void;
};

export type Http2InputOptions = {
  readonly output: Http2Output;
  readonly requests: Http2Requests;
  /** Of the fields of one request, in their code and out of it. */
  readonly headerBytes: number;
  /** Frames that ask for work and bring nothing, at once and a second after that (CVE-2023-44487, CVE-2019-9512 to 9518). */
  readonly idleBurst: number;
  readonly idlePerSecond: number;
  readonly now: () => number;
};

/** Takes bytes. An error ends the connection with that code, "left" without one. */
export type Http2Input = (chunk: Buffer) => Http2Error | "left" | undefined;

/** A block of fields that goes on in CONTINUATION frames. */
type OpenBlock = { readonly stream: number; readonly isLast: boolean; readonly parts: Buffer[]; bytes: number };

type State = Http2InputOptions & {
  readonly decoder: ReturnType<typeof createFieldDecoder>;
  block: OpenBlock | undefined;
  lastStream: number;
  isFirst: boolean;
  /** What the client may still send of bodies, and what of it is to be given back. */
  window: number;
  taken: number;
  /** Frames that may still be idle, as of `allowedMs`. */
  allowed: number;
  allowedMs: number;
};

/** Bodies are given back to the connection's window in pieces; streams need none, they begin with room for one. */
const WINDOW_STEP = 16_384;
/** Who widens a window by less would have its answers byte by byte (CVE-2019-9511). */
const WINDOW_STEP_MIN = 16;
/** A block of fields does not come in more frames than this: endless ones would never be looked at. */
const BLOCK_FRAMES_MAX = 8;

export function createHttp2Input(options: Http2InputOptions): Http2Input {
  const state: State = {
    ...options,
    decoder: createFieldDecoder(options.headerBytes),
    block: undefined,
    lastStream: 0,
    isFirst: true,
    window: WINDOW_FIRST,
    taken: 0,
    allowed: options.idleBurst,
    allowedMs: options.now(),
  };
  let held: Buffer = Buffer.alloc(0);
  let hasPreface = false;
  return (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    let at = 0;
    if (!hasPreface) {
      const length = Math.min(held.length, PREFACE.length);
      if (held.compare(PREFACE, 0, length, 0, length) !== 0) return HTTP2_ERROR.PROTOCOL_ERROR;
      if (length < PREFACE.length) return undefined;
      hasPreface = true;
      at = PREFACE.length;
    }
    while (held.length - at >= FRAME_HEADER_BYTES) {
      const length = held.readUIntBE(at, 3);
      if (length > FRAME_BYTES_MAX) return HTTP2_ERROR.FRAME_SIZE_ERROR;
      const end = at + FRAME_HEADER_BYTES + length;
      if (end > held.length) break;
      const outcome = takeFrame(state, {
        type: held[at + 3]!,
        flags: held[at + 4]!,
        stream: held.readUInt32BE(at + 5) & WINDOW_MAX,
        payload: held.subarray(at + FRAME_HEADER_BYTES, end),
      });
      if (outcome !== undefined) return outcome;
      at = end;
    }
    // What is kept of a chunk must not keep all of it.
    held = at === held.length ? Buffer.alloc(0) : Buffer.from(held.subarray(at));
    return undefined;
  };
}

type Outcome = Http2Error | "left" | undefined;

function takeFrame(state: State, frame: Frame): Outcome {
  const { type, stream, payload } = frame;
  if (state.isFirst && type !== FRAME.SETTINGS) return HTTP2_ERROR.PROTOCOL_ERROR;
  state.isFirst = false;
  // Nothing may come between the frames of a block (section 6.10).
  if (state.block !== undefined && (type !== FRAME.CONTINUATION || stream !== state.block.stream)) {
    return HTTP2_ERROR.PROTOCOL_ERROR;
  }
  switch (type) {
    case FRAME.HEADERS:
      return takeHeaders(state, frame);
    case FRAME.CONTINUATION:
      return state.block === undefined ? HTTP2_ERROR.PROTOCOL_ERROR : addToBlock(state, state.block, frame, payload);
    case FRAME.DATA:
      return takeData(state, frame);
    case FRAME.RST_STREAM:
      return takeReset(state, frame);
    case FRAME.SETTINGS:
      return takeSettings(state, frame);
    case FRAME.WINDOW_UPDATE:
      return takeWindow(state, frame);
    case FRAME.PING:
      return takePing(state, frame);
    case FRAME.GOAWAY:
      return "left";
    case FRAME.PUSH_PROMISE:
      return HTTP2_ERROR.PROTOCOL_ERROR;
    default:
      // PRIORITY is deprecated (section 5.3.2), and what nobody knows is ignored (section 4.1).
      return noteIdle(state);
  }
}

/** Counts a frame that brings nothing. */
function noteIdle(state: State): Outcome {
  const nowMs = state.now();
  const regained = ((nowMs - state.allowedMs) / 1000) * state.idlePerSecond;
  state.allowed = Math.min(state.idleBurst, state.allowed + regained) - 1;
  state.allowedMs = nowMs;
  return state.allowed < 0 ? HTTP2_ERROR.ENHANCE_YOUR_CALM : undefined;
}

function takeHeaders(state: State, frame: Frame): Outcome {
  const { stream, flags } = frame;
  const content = contentOf(frame);
  // Clients open streams with odd numbers (section 5.1.1).
  if (stream % 2 === 0 || content === undefined) return HTTP2_ERROR.PROTOCOL_ERROR;
  const isLast = (flags & FRAME_FLAG.END_STREAM) !== 0;
  state.block = { stream, isLast, parts: [], bytes: 0 };
  return addToBlock(state, state.block, frame, content);
}

function addToBlock(state: State, block: OpenBlock, { flags }: Frame, content: Buffer): Outcome {
  block.parts.push(content);
  block.bytes += content.length;
  if (block.bytes > state.headerBytes || block.parts.length > BLOCK_FRAMES_MAX) return HTTP2_ERROR.ENHANCE_YOUR_CALM;
  if ((flags & FRAME_FLAG.END_HEADERS) === 0) {
    // The chunk that the parts lie in is gone when the next one comes.
    block.parts[block.parts.length - 1] = Buffer.from(content);
    return undefined;
  }
  state.block = undefined;
  const [only] = block.parts;
  const fields = state.decoder.decode(block.parts.length === 1 && only ? only : Buffer.concat(block.parts));
  if (fields === "broken") return HTTP2_ERROR.COMPRESSION_ERROR;
  if (fields === "large") return HTTP2_ERROR.ENHANCE_YOUR_CALM;
  return takeRequest(state, block, fields);
}

function takeRequest(state: State, { stream, isLast }: OpenBlock, fields: RequestFields): Outcome {
  if (stream <= state.lastStream) {
    // Trailers, which end the body (section 8.1), or what a client has sent before it heard that its stream is over.
    if (!isLast) return noteIdle(state);
    state.requests.onBody(stream, NOTHING, true);
    return undefined;
  }
  state.lastStream = stream;
  state.output.open(stream);
  if (state.requests.onRequest(stream, fields, isLast)) return undefined;
  state.output.forget(stream);
  state.output.control(makeNumbersFrame(FRAME.RST_STREAM, stream, HTTP2_ERROR.REFUSED_STREAM));
  return noteIdle(state);
}

const NOTHING = Buffer.alloc(0);

function takeData(state: State, frame: Frame): Outcome {
  const { stream, flags, payload } = frame;
  const content = contentOf(frame);
  if (stream === 0 || stream > state.lastStream || content === undefined) return HTTP2_ERROR.PROTOCOL_ERROR;
  state.window -= payload.length;
  if (state.window < 0) return HTTP2_ERROR.FLOW_CONTROL_ERROR;
  state.taken += payload.length;
  if (state.taken >= WINDOW_STEP) {
    state.output.control(makeNumbersFrame(FRAME.WINDOW_UPDATE, 0, state.taken));
    state.window += state.taken;
    state.taken = 0;
  }
  const isLast = (flags & FRAME_FLAG.END_STREAM) !== 0;
  state.requests.onBody(stream, content, isLast);
  return content.length === 0 && !isLast ? noteIdle(state) : undefined;
}

function takeReset(state: State, { stream, payload }: Frame): Outcome {
  if (payload.length !== 4) return HTTP2_ERROR.FRAME_SIZE_ERROR;
  if (stream === 0 || stream > state.lastStream) return HTTP2_ERROR.PROTOCOL_ERROR;
  state.output.forget(stream);
  state.requests.onReset(stream);
  return noteIdle(state);
}

function takeSettings(state: State, { stream, flags, payload }: Frame): Outcome {
  if (stream !== 0) return HTTP2_ERROR.PROTOCOL_ERROR;
  const isAck = (flags & FRAME_FLAG.ACK) !== 0;
  if (payload.length % 6 !== 0 || (isAck && payload.length > 0)) return HTTP2_ERROR.FRAME_SIZE_ERROR;
  if (isAck) return noteIdle(state);
  for (let at = 0; at < payload.length; at += 6) {
    const value = payload.readUInt32BE(at + 2);
    switch (payload.readUInt16BE(at)) {
      case SETTING.ENABLE_PUSH:
        if (value > 1) return HTTP2_ERROR.PROTOCOL_ERROR;
        break;
      case SETTING.MAX_FRAME_SIZE:
        if (value < FRAME_BYTES_MAX || value > 2 ** 24 - 1) return HTTP2_ERROR.PROTOCOL_ERROR;
        break;
      case SETTING.INITIAL_WINDOW_SIZE:
        if (value > WINDOW_MAX || !state.output.setFirstWindow(value)) return HTTP2_ERROR.FLOW_CONTROL_ERROR;
        break;
      default:
    }
  }
  state.output.control(makeFrame(FRAME.SETTINGS, FRAME_FLAG.ACK, 0, NOTHING));
  return noteIdle(state);
}

function takeWindow(state: State, { stream, payload }: Frame): Outcome {
  if (payload.length !== 4) return HTTP2_ERROR.FRAME_SIZE_ERROR;
  if (stream > state.lastStream) return HTTP2_ERROR.PROTOCOL_ERROR;
  const bytes = payload.readUInt32BE(0) & WINDOW_MAX;
  if (bytes === 0) return HTTP2_ERROR.PROTOCOL_ERROR;
  if (!state.output.widen(stream, bytes)) return HTTP2_ERROR.FLOW_CONTROL_ERROR;
  return bytes < WINDOW_STEP_MIN ? noteIdle(state) : undefined;
}

function takePing(state: State, { stream, flags, payload }: Frame): Outcome {
  if (payload.length !== 8) return HTTP2_ERROR.FRAME_SIZE_ERROR;
  if (stream !== 0) return HTTP2_ERROR.PROTOCOL_ERROR;
  if ((flags & FRAME_FLAG.ACK) === 0) state.output.control(makeFrame(FRAME.PING, FRAME_FLAG.ACK, 0, payload));
  return noteIdle(state);
}
