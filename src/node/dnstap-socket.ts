/**
 * The way to a receiver of dnstap: Frame Streams over a Unix socket, with its handshake. What the receiver does not take in time is
 * lost and counted; where it is away, it is tried again.
 */
import { createConnection, type Socket } from "node:net";
import type { Log } from "../base/log.ts";
import { CONTROL_FRAME, controlFrame, DNSTAP_CONTENT_TYPE, dataFrame, readControlFrame } from "./dnstap-message.ts";

export type DnstapSocket = {
  /** Whether a message would be taken now. */
  readonly isReady: () => boolean;
  readonly offer: (message: Uint8Array) => void;
  /** Says good-bye to the receiver. Resolves when it has taken all, or has had its time. */
  readonly close: () => Promise<void>;
};

export type DnstapSocketOptions = {
  readonly path: string;
  readonly onWritten: () => void;
  readonly onLost: () => void;
  readonly log: Log;
};

const RETRY_MS = 1_000;
const HANDSHAKE_MS = 5_000;
const CLOSE_MS = 500;
/** Bytes that wait for the receiver at most. */
const WAITING_BYTES_MAX = 2 ** 22;

type State = {
  readonly options: DnstapSocketOptions;
  socket: Socket | undefined;
  received: Buffer;
  isStarted: boolean;
  isClosed: boolean;
  isFailing: boolean;
  retry: NodeJS.Timeout | undefined;
};

export function openDnstapSocket(options: DnstapSocketOptions): DnstapSocket {
  const state: State = {
    options,
    socket: undefined,
    received: Buffer.alloc(0),
    isStarted: false,
    isClosed: false,
    isFailing: false,
    retry: undefined,
  };
  connect(state);
  const isReady = (): boolean => state.isStarted && (state.socket?.writableLength ?? 0) < WAITING_BYTES_MAX;
  return {
    isReady,
    offer(message) {
      if (!isReady()) return options.onLost();
      state.socket?.write(dataFrame(message));
      options.onWritten();
    },
    close: () => close(state),
  };
}

function connect(state: State): void {
  if (state.isClosed) return;
  const socket = createConnection(state.options.path);
  state.socket = socket;
  state.received = Buffer.alloc(0);
  state.isStarted = false;
  socket.setTimeout(HANDSHAKE_MS, () => {
    if (!state.isStarted) socket.destroy(new Error("it does not answer the handshake"));
  });
  socket.once("connect", () => socket.write(controlFrame(CONTROL_FRAME.READY, DNSTAP_CONTENT_TYPE)));
  socket.on("data", (bytes: Buffer) => receive(state, socket, bytes));
  socket.on("error", (error) => failed(state, error.message));
  socket.once("close", () => {
    state.isStarted = false;
    if (state.isClosed) return;
    failed(state, "it has closed the connection");
    state.retry = setTimeout(() => connect(state), RETRY_MS);
  });
}

function receive(state: State, socket: Socket, bytes: Buffer): void {
  // Once begun, a receiver has nothing to say but that it has finished.
  if (state.isStarted) return;
  state.received = Buffer.concat([state.received, bytes]);
  const frame = readControlFrame(state.received);
  if (frame === undefined) return;
  if (frame === "malformed" || frame.type !== CONTROL_FRAME.ACCEPT || !frame.text.includes(DNSTAP_CONTENT_TYPE)) {
    socket.destroy(new Error("it does not accept dnstap"));
    return;
  }
  socket.setTimeout(0);
  socket.write(controlFrame(CONTROL_FRAME.START, DNSTAP_CONTENT_TYPE));
  state.isStarted = true;
  if (state.isFailing) state.options.log("info", "the receiver of dnstap takes messages");
  state.isFailing = false;
}

function failed(state: State, reason: string): void {
  if (state.isFailing || state.isClosed) return;
  state.isFailing = true;
  state.options.log("warn", `the receiver of dnstap takes nothing: ${reason}`, { socket: state.options.path });
}

async function close(state: State): Promise<void> {
  const { socket, isStarted } = state;
  state.isClosed = true;
  clearTimeout(state.retry);
  if (socket === undefined || socket.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once("close", () => resolve());
  const timer = setTimeout(() => socket.destroy(), CLOSE_MS);
  if (isStarted) socket.end(controlFrame(CONTROL_FRAME.STOP));
  else socket.destroy();
  await promise;
  clearTimeout(timer);
}
