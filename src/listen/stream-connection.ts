/**
 * The life of a query over a stream: cut out of the bytes of its connection, answered, and written back with the
 * answers beside it (RFC 7766). A connection belongs to one client; what it costs is bounded by the limits.
 */
import type { Socket } from "node:net";
import type { Answerer } from "../answer/answerer.ts";
import { COUNTER, observeLatency, type Transport } from "../image/counters.ts";
import { STREAM_MESSAGE_BYTES, type StreamLimits } from "./limits.ts";

const LENGTH_BYTES = 2;
/** Answers are collected here and written at once; behind the flush mark there is room for one more. */
const OUTPUT_FLUSH_BYTES = 65_536;
const OUTPUT_BYTES = OUTPUT_FLUSH_BYTES + LENGTH_BYTES + STREAM_MESSAGE_BYTES;

/** What the connections of a thread share. */
export type StreamContext = {
  readonly answerer: Answerer;
  readonly counters: Float64Array;
  readonly limits: StreamLimits;
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Scratch memory for the answers of one burst. */
  readonly output: Uint8Array;
};

export function createOutput(): Uint8Array {
  return new Uint8Array(OUTPUT_BYTES);
}

export type Connection = {
  /** Looks at the times; cuts or closes the connection where one has passed. */
  readonly sweep: (nowMs: number, idleMs: number) => void;
  /** Answers that the client has not taken, in bytes. */
  readonly queuedBytes: () => number;
  /** Ends the connection against its client's will, and counts it. */
  readonly cut: () => void;
  /** Ends it at once. */
  readonly destroy: () => void;
};

type State = {
  /** Bytes received and not yet answered. */
  held: Buffer;
  /** The client sends no more. */
  hasEnded: boolean;
  /** No more queries are taken; what waits is still written. */
  isClosing: boolean;
  /** A further burst is due. */
  isScheduled: boolean;
  /** Nothing is read until the client has taken its answers. */
  isBackedUp: boolean;
  readonly openedMs: number;
  /** When something was last completed: a query taken or output written. */
  activeMs: number;
  /** Since when an unfinished message lies in `held`. */
  partialMs: number | undefined;
  /** Since when output waits without progress. */
  writingMs: number | undefined;
};

/** Serves a connection until it is closed; `address` is the client's, 4 or 16 bytes. */
export function serveConnection(
  context: StreamContext,
  socket: Socket,
  transport: Transport,
  address: Uint8Array,
): Connection {
  const { limits, now } = context;
  const openedMs = now();
  const state: State = {
    held: Buffer.alloc(0),
    hasEnded: false,
    isClosing: false,
    isScheduled: false,
    isBackedUp: false,
    openedMs,
    activeMs: openedMs,
    partialMs: undefined,
    writingMs: undefined,
  };
  const close = () => {
    state.isClosing = true;
    state.held = Buffer.alloc(0);
    socket.destroySoon();
  };
  const cut = () => {
    context.counters[COUNTER.CONNECTIONS_CUT]! += 1;
    socket.destroy();
  };
  const onWritten = () => {
    state.activeMs = now();
    state.writingMs = socket.writableLength > 0 ? state.activeMs : undefined;
    if (state.isBackedUp && socket.writableLength === 0) proceed();
  };
  const write = (bytes: Buffer) => {
    state.writingMs ??= now();
    socket.write(bytes, onWritten);
    return socket.writableLength <= limits.maxQueuedBytes;
  };
  const proceed = () => {
    state.isScheduled = false;
    if (state.isClosing || socket.destroyed) return;
    const outcome = answerBurst(context, state, transport, address, write);
    state.isBackedUp = socket.writableLength > limits.maxQueuedBytes;
    if (outcome === "refused") return close();
    if (outcome === "more" || state.isBackedUp) {
      // The client's next bytes wait in the kernel, and so in the client, until these are answered and taken.
      socket.pause();
      if (state.isBackedUp) return;
      state.isScheduled = true;
      setImmediate(proceed);
    } else if (state.hasEnded) {
      close();
    } else {
      socket.resume();
    }
  };
  socket.on("data", (chunk: Buffer) => {
    if (state.isClosing) return;
    state.held = state.held.length === 0 ? chunk : Buffer.concat([state.held, chunk]);
    proceed();
  });
  socket.on("end", () => {
    state.hasEnded = true;
    proceed();
  });
  socket.on("error", () => socket.destroy());
  return {
    sweep: (nowMs, idleMs) => {
      const isSlow = isPast(state.partialMs, limits.messageMs, nowMs) || isPast(state.writingMs, limits.writeMs, nowMs);
      const isIdle = state.partialMs === undefined && state.writingMs === undefined && !state.isScheduled;
      if (isSlow || isPast(state.openedMs, limits.lifetimeMs, nowMs)) cut();
      else if (isIdle && isPast(state.activeMs, idleMs, nowMs)) close();
    },
    queuedBytes: () => socket.writableLength,
    cut,
    destroy: () => socket.destroy(),
  };
}

function isPast(sinceMs: number | undefined, limitMs: number, nowMs: number): boolean {
  return sinceMs !== undefined && nowMs - sinceMs >= limitMs;
}

/**
 * Answers whole messages of `held`, at most `maxBurst`, until `write` says that the client takes no more. "more": others
 * are left, perhaps; "waiting": none is whole;
 * "refused": the client sent a message of no length, which ends the connection.
 */
function answerBurst(
  context: StreamContext,
  state: State,
  transport: Transport,
  address: Uint8Array,
  write: (bytes: Buffer) => boolean,
): "more" | "waiting" | "refused" {
  const { answerer, limits, output } = context;
  const { held } = state;
  const begin = context.now();
  let at = 0;
  let taken = 0;
  let filled = 0;
  let outcome: "more" | "waiting" | "refused" = "waiting";
  answerer.enter();
  while (held.length - at >= LENGTH_BYTES) {
    const length = (held[at]! << 8) | held[at + 1]!;
    if (length === 0) outcome = "refused";
    if (length === 0 || held.length - at < LENGTH_BYTES + length) break;
    if (taken === limits.maxBurst) {
      outcome = "more";
      break;
    }
    const query = held.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    filled += answerInto(context, output, filled, query, transport, address);
    at += LENGTH_BYTES + length;
    taken += 1;
    if (filled <= OUTPUT_FLUSH_BYTES) continue;
    const mayGoOn = write(Buffer.from(output.subarray(0, filled)));
    filled = 0;
    if (mayGoOn) continue;
    outcome = "more";
    break;
  }
  answerer.leave();
  if (filled > 0) write(Buffer.from(output.subarray(0, filled)));
  state.held = at === held.length ? EMPTY : held.subarray(at);
  const endMs = context.now();
  if (taken > 0) {
    state.activeMs = endMs;
    observeLatency(context.counters, Math.round((endMs - begin) * 1000), taken);
  }
  if (outcome === "more" || state.held.length === 0) state.partialMs = undefined;
  else if (taken > 0) state.partialMs = endMs;
  else state.partialMs ??= endMs;
  return outcome;
}

const EMPTY = Buffer.alloc(0);

/** Puts the framed answer at output[at...]; the number of bytes put, 0 for silence. */
function answerInto(
  context: StreamContext,
  output: Uint8Array,
  at: number,
  query: Uint8Array,
  transport: Transport,
  address: Uint8Array,
): number {
  const start = at + LENGTH_BYTES;
  output.set(query, start);
  let length = 0;
  try {
    length = context.answerer.answer(
      output,
      start,
      query.length,
      STREAM_MESSAGE_BYTES,
      address,
      0,
      address.length,
      transport,
    );
  } catch (thrown) {
    context.counters[COUNTER.FAILED]! += 1;
    context.onFailure(query.slice(), thrown);
  }
  if (length === 0) return 0;
  output[at] = length >> 8;
  output[at + 1] = length & 255;
  return LENGTH_BYTES + length;
}
