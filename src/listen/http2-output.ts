/** What an HTTP/2 connection sends: frames in order, answers within the windows that the client gives (RFC 9113 section 5.2). */
import type { Writable } from "node:stream";
import {
  FRAME,
  FRAME_BYTES_MAX,
  FRAME_FLAG,
  FRAME_HEADER_BYTES,
  putFrameHeader,
  WINDOW_FIRST,
  WINDOW_MAX,
} from "./http2-frames.ts";

export type Http2Output = {
  readonly control: (frame: Buffer) => void;
  /** The stream may be answered from now on. */
  readonly open: (stream: number) => void;
  /** Answers a stream and ends it; `onSent` is called once, when the last byte is handed to the system, or never will be. */
  readonly answer: (stream: number, fields: Buffer, body: Uint8Array, onSent: () => void) => void;
  /** The client has reset the stream. */
  readonly forget: (stream: number) => void;
  /** The window of a stream, or of the connection (0), is wider by so much. False: wider than it may be. */
  readonly widen: (stream: number, bytes: number) => boolean;
  /** The window that streams begin with. False: some are wider than they may be. */
  readonly setFirstWindow: (bytes: number) => boolean;
  /** Frames that the client has not taken, in bytes. */
  readonly waitingBytes: () => number;
};

type Item = { readonly bytes: Buffer; readonly onSent: (() => void) | undefined };

/** An answer that waits for a window. */
type Blocked = {
  readonly stream: number;
  readonly body: Uint8Array;
  at: number;
  readonly onSent: () => void;
};

type Writer = {
  /** `onSent` is called when the bytes are handed to the system. */
  readonly put: (bytes: Buffer, onSent?: () => void) => void;
  readonly waitingBytes: () => number;
};

/**
 * Every frame or answer is a write of its own, and so a record of TLS of its own: there are clients, dnsperf among them, that
 * take one answer out of a record and forget the others.
 */
function createWriter(socket: Writable, onDrained: () => void): Writer {
  let queue: Item[] = [];
  let next = 0;
  let waiting = 0;
  let isWriting = false;
  const write = () => {
    if (isWriting) return;
    const item = queue[next];
    if (item === undefined) {
      queue = [];
      next = 0;
      return onDrained();
    }
    next += 1;
    isWriting = true;
    socket.write(item.bytes, () => {
      isWriting = false;
      waiting -= item.bytes.length;
      item.onSent?.();
      if (!socket.destroyed) write();
    });
  };
  return {
    put: (bytes, onSent) => {
      queue.push({ bytes, onSent });
      waiting += bytes.length;
      write();
    },
    waitingBytes: () => waiting,
  };
}

/** `onDrained` is called when all that was waiting has been taken. */
export function createHttp2Output(socket: Writable, onDrained: () => void): Http2Output {
  const windows = new Map<number, number>();
  const blocked = new Map<number, Blocked>();
  let connectionWindow = WINDOW_FIRST;
  let firstWindow = WINDOW_FIRST;
  const { put, waitingBytes } = createWriter(socket, onDrained);

  const send = (answer: Blocked) => {
    const { stream, body, onSent } = answer;
    for (;;) {
      const left = body.length - answer.at;
      const length = Math.min(left, FRAME_BYTES_MAX, connectionWindow, windows.get(stream) ?? 0);
      if (left > 0 && length <= 0) return void blocked.set(stream, answer);
      const isLast = length === left;
      connectionWindow -= length;
      windows.set(stream, (windows.get(stream) ?? 0) - length);
      const frame = dataFrame(stream, body.subarray(answer.at, answer.at + length), isLast);
      answer.at += length;
      if (!isLast) {
        put(frame);
        continue;
      }
      windows.delete(stream);
      blocked.delete(stream);
      return put(frame, onSent);
    }
  };
  const sendBlocked = () => {
    for (const answer of [...blocked.values()]) send(answer);
  };
  return {
    control: (frame) => put(frame),
    open: (stream) => windows.set(stream, firstWindow),
    answer: (stream, fields, body, onSent) => {
      const window = windows.get(stream);
      if (window === undefined) return onSent();
      if (body.length <= Math.min(FRAME_BYTES_MAX, connectionWindow, window)) {
        connectionWindow -= body.length;
        windows.delete(stream);
        return put(wholeAnswer(stream, fields, body), onSent);
      }
      put(headersFrame(stream, fields, false));
      send({ stream, body, at: 0, onSent });
    },
    forget: (stream) => {
      windows.delete(stream);
      const answer = blocked.get(stream);
      blocked.delete(stream);
      answer?.onSent();
    },
    widen: (stream, bytes) => {
      if (stream === 0) connectionWindow += bytes;
      const window = windows.get(stream);
      if (window !== undefined) windows.set(stream, window + bytes);
      if (Math.max(connectionWindow, windows.get(stream) ?? 0) > WINDOW_MAX) return false;
      sendBlocked();
      return true;
    },
    setFirstWindow: (bytes) => {
      const more = bytes - firstWindow;
      firstWindow = bytes;
      for (const [stream, window] of windows) {
        if (window + more > WINDOW_MAX) return false;
        windows.set(stream, window + more);
      }
      sendBlocked();
      return true;
    },
    waitingBytes,
  };
}

function headersFrame(stream: number, fields: Buffer, isLast: boolean): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + fields.length);
  const flags = FRAME_FLAG.END_HEADERS | (isLast ? FRAME_FLAG.END_STREAM : 0);
  bytes.set(fields, putFrameHeader(bytes, 0, fields.length, FRAME.HEADERS, flags, stream));
  return bytes;
}

function dataFrame(stream: number, body: Uint8Array, isLast: boolean): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + body.length);
  const flags = isLast ? FRAME_FLAG.END_STREAM : 0;
  bytes.set(body, putFrameHeader(bytes, 0, body.length, FRAME.DATA, flags, stream));
  return bytes;
}

function wholeAnswer(stream: number, fields: Buffer, body: Uint8Array): Buffer {
  const isEmpty = body.length === 0;
  const head = headersFrame(stream, fields, isEmpty);
  return isEmpty ? head : Buffer.concat([head, dataFrame(stream, body, true)]);
}
