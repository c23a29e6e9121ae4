/**
 * The life of a query over a stream: cut out of the bytes of its connection, answered, and written back with the
 * answers beside it (RFC 7766). A connection belongs to one client; what it costs is bounded by the limits.
 */
import type { Socket } from "node:net";
import { type Answerer, TAKEN } from "../answer/answerer.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, observeLatency, type Transport } from "../image/counters.ts";
import { PART } from "./answer-frames.ts";
import type { Flow, OnResolved } from "./flows.ts";
import { STREAM_MESSAGE_BYTES, type StreamLimits } from "./limits.ts";
import type { Resolving } from "./resolving.ts";

const LENGTH_BYTES = 2;
/** Answers are collected here and written at once; behind the flush mark there is room for one more. */
const OUTPUT_FLUSH_BYTES = 65_536;
const OUTPUT_BYTES = OUTPUT_FLUSH_BYTES + LENGTH_BYTES + STREAM_MESSAGE_BYTES;

/** What the connections of a thread share. */
export type StreamContext = {
  readonly answerer: Answerer;
  /** Takes the queries that have to be resolved; their answers come when they come (RFC 7766 section 6.2.1.1). */
  readonly resolving: Resolving;
  readonly counters: Float64Array;
  readonly limits: StreamLimits;
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** So many bytes wait for a client that were not there before. */
  readonly onQueued: (bytes: number) => void;
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
  /** Queries whose answers are still to come. */
  resolving: number;
  /** Bytes waiting for the client of answers of several messages, whose sender waits for it: no query waits for them. */
  flowing: number;
  readonly openedMs: number;
  /** When something was last completed: a query taken or output written. */
  activeMs: number;
  /** Since when an unfinished message lies in `held`. */
  partialMs: number | undefined;
  /** Since when output waits without progress. */
  writingMs: number | undefined;
};

function createState(openedMs: number): State {
  return {
    held: EMPTY,
    hasEnded: false,
    isClosing: false,
    isScheduled: false,
    isBackedUp: false,
    resolving: 0,
    flowing: 0,
    openedMs,
    activeMs: openedMs,
    partialMs: undefined,
    writingMs: undefined,
  };
}

/** Whom a burst is answered for. */
type Client = {
  readonly transport: Transport;
  readonly address: Uint8Array;
  readonly port: number;
  /** Takes framed answers; false: the client has too many waiting. */
  readonly write: (bytes: Buffer) => boolean;
  readonly onResolved: OnResolved;
};

/** Serves a connection until it is closed; `address` is the client's, 4 or 16 bytes. */
export function serveConnection(
  context: StreamContext,
  socket: Socket,
  transport: Transport,
  address: Uint8Array,
): Connection {
  const { limits, now } = context;
  const state = createState(now());
  const close = () => {
    state.isClosing = true;
    state.held = EMPTY;
    socket.destroySoon();
  };
  const cut = () => {
    context.counters[COUNTER.CONNECTIONS_CUT]! += 1;
    socket.destroy();
  };
  const waitingBytes = () => socket.writableLength - state.flowing;
  const onWritten = () => {
    state.activeMs = now();
    state.writingMs = socket.writableLength > 0 ? state.activeMs : undefined;
    if (state.isBackedUp && waitingBytes() <= 0) proceed();
  };
  const write = (bytes: Buffer, onDone: OnDone = onWritten) => {
    state.writingMs ??= now();
    socket.write(bytes, onDone);
    if (socket.writableLength > 0) context.onQueued(bytes.length);
    return waitingBytes() <= limits.maxQueuedBytes;
  };
  const writePart = createPartWriter(state, socket, write, onWritten);
  const onResolved: OnResolved = (answer, part = PART.ONLY, flow) => {
    if (part !== PART.MORE) state.resolving -= 1;
    state.activeMs = now();
    if (state.isClosing || socket.destroyed) return flow?.gone();
    if (part === PART.CUT) return cut();
    if (flow !== undefined) writePart(answer ?? EMPTY, part === PART.LAST, flow);
    else if (answer !== undefined) write(framed(answer));
    if (part !== PART.MORE && !state.isScheduled && !state.isBackedUp) proceed();
  };
  const client: Client = { transport, address, port: socket.remotePort ?? 0, write, onResolved };
  const proceed = () => {
    state.isScheduled = false;
    if (state.isClosing || socket.destroyed) return;
    const outcome = answerBurst(context, state, client);
    state.isBackedUp = waitingBytes() > limits.maxQueuedBytes;
    if (outcome === "refused") return close();
    if (outcome === "more" || state.isBackedUp) {
      // The client's next bytes wait in the kernel, and so in the client, until these are answered and taken.
      socket.pause();
      if (state.isBackedUp) return;
      state.isScheduled = true;
      setImmediate(proceed);
    } else if (outcome === "full") socket.pause();
    else if (!state.hasEnded) socket.resume();
    else if (state.resolving === 0) close();
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
      if (isSlow(state, limits, nowMs)) cut();
      else if (isIdle(state) && isPast(state.activeMs, idleMs, nowMs)) close();
    },
    // What a connection that was cut had is on its way out.
    queuedBytes: () => (socket.destroyed ? 0 : socket.writableLength),
    cut,
    destroy: () => socket.destroy(),
  };
}

type OnDone = (error?: Error | null) => void;

/** Of answers whose messages come one by one; their senders hear what the client takes, and when it goes before the last. */
function createPartWriter(
  state: State,
  socket: Socket,
  write: (bytes: Buffer, onDone: OnDone) => void,
  onWritten: () => void,
) {
  const flows = new Set<Flow>();
  socket.once("close", () => {
    for (const flow of flows) flow.gone();
  });
  return (answer: Uint8Array, isLast: boolean, flow: Flow): void => {
    flows.add(flow);
    if (answer.length === 0) return;
    const bytes = framed(answer);
    state.flowing += bytes.length;
    write(bytes, (error) => {
      state.flowing -= bytes.length;
      onWritten();
      if (error) return;
      if (isLast) flows.delete(flow);
      flow.taken(answer.length);
    });
  };
}

/** It takes longer than it may to send a message, to take an answer, or altogether. */
function isSlow({ partialMs, writingMs, openedMs }: State, limits: StreamLimits, nowMs: number): boolean {
  const isStuck = isPast(partialMs, limits.messageMs, nowMs) || isPast(writingMs, limits.writeMs, nowMs);
  return isStuck || isPast(openedMs, limits.lifetimeMs, nowMs);
}

/** Nothing is under way. */
function isIdle({ partialMs, writingMs, isScheduled, resolving }: State): boolean {
  return partialMs === undefined && writingMs === undefined && !isScheduled && resolving === 0;
}

function framed(answer: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + answer.length);
  bytes.writeUInt16BE(answer.length);
  bytes.set(answer, LENGTH_BYTES);
  return bytes;
}

function isPast(sinceMs: number | undefined, limitMs: number, nowMs: number): boolean {
  return sinceMs !== undefined && nowMs - sinceMs >= limitMs;
}

/**
 * Answers whole messages of `held`, at most `maxBurst`, until the client takes no more. "more": others are left, perhaps;
 * "waiting": none is whole; "full": others are left, and must wait until some are resolved; "refused": the client sent a
 * message of no length, which ends the connection.
 */
function answerBurst(context: StreamContext, state: State, client: Client): "more" | "waiting" | "full" | "refused" {
  const { answerer, limits, output } = context;
  const { held } = state;
  const begin = context.now();
  const resolvingBefore = state.resolving;
  let at = 0;
  let taken = 0;
  let filled = 0;
  let outcome: "more" | "waiting" | "full" | "refused" = "waiting";
  answerer.enter();
  while (held.length - at >= LENGTH_BYTES) {
    const length = (held[at]! << 8) | held[at + 1]!;
    if (length === 0) outcome = "refused";
    if (length === 0 || held.length - at < LENGTH_BYTES + length) break;
    if (taken === limits.maxBurst) outcome = "more";
    else if (state.resolving >= limits.maxResolving) outcome = "full";
    if (outcome !== "waiting") break;
    const query = held.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    filled += answerInto(context, filled, query, state, client);
    at += LENGTH_BYTES + length;
    taken += 1;
    if (filled <= OUTPUT_FLUSH_BYTES) continue;
    const mayGoOn = client.write(Buffer.from(output.subarray(0, filled)));
    filled = 0;
    if (mayGoOn) continue;
    outcome = "more";
    break;
  }
  answerer.leave();
  if (filled > 0) client.write(Buffer.from(output.subarray(0, filled)));
  context.resolving.wake();
  state.held = at === held.length ? EMPTY : held.subarray(at);
  const endMs = context.now();
  if (taken > 0) {
    state.activeMs = endMs;
    const answered = taken - (state.resolving - resolvingBefore);
    observeLatency(context.counters, Math.round((endMs - begin) * 1000), answered);
  }
  if (outcome === "more" || outcome === "full" || state.held.length === 0) state.partialMs = undefined;
  else if (taken > 0) state.partialMs = endMs;
  else state.partialMs ??= endMs;
  return outcome;
}

const EMPTY = Buffer.alloc(0);

/** Puts the framed answer at output[at...]; the number of bytes put, 0 for silence or what is still to come. */
function answerInto(context: StreamContext, at: number, query: Uint8Array, state: State, client: Client): number {
  const { answerer, counters, output, resolving } = context;
  const { address, port, transport, onResolved } = client;
  const start = at + LENGTH_BYTES;
  output.set(query, start);
  const { length: received } = query;
  const room = STREAM_MESSAGE_BYTES;
  let length = 0;
  answerer.client.port = port;
  try {
    length = answerer.answer(output, start, received, room, address, 0, address.length, transport);
    if (answerer.refresh !== 0) resolving.pushRefresh(answerer.refresh);
    if (length === TAKEN) {
      const isAdmitted = resolving.admits(answerer.need.route);
      if (isAdmitted && resolving.handOver(transport, address, port, output, start, received, onResolved)) {
        state.resolving += 1;
        return 0;
      }
      counters[COUNTER.HANDOVER_FULL]! += 1;
      length = answerer.answerNow(output, start, received, room, address, 0, address.length, transport, EDE.OTHER);
    }
  } catch (thrown) {
    length = 0;
    counters[COUNTER.FAILED]! += 1;
    context.onFailure(query.slice(), thrown);
  }
  if (length === 0) return 0;
  output[at] = length >> 8;
  output[at + 1] = length & 255;
  return LENGTH_BYTES + length;
}
