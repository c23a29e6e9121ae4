/**
 * Questions over connections (RFC 7766): framed, several on their way where the transport allows, answers in any order.
 * A connection serves one server, lives on for a while for the next question, and ends where what it says is no DNS.
 */
import type { Socket } from "node:net";
import { decodeMessage, HEADER_BYTES, type Message } from "../dns/message.ts";
import type { Chance } from "./chance.ts";
import type { ExchangeFault, Rejection, Server } from "./exchange.ts";
import { CONNECTIONS_MAX, STRAY_MESSAGES_MAX } from "./limits.ts";
import { matchResponse } from "./query-message.ts";
import { serverKey } from "./server-facts.ts";
import type { Timers } from "./timers.ts";

export type StreamQuery = {
  /** The message; its id is set for the connection. */
  readonly bytes: Uint8Array;
  readonly name: Uint8Array;
  readonly type: number;
};

export type StreamOutcome =
  | { readonly kind: "message"; readonly message: Message; readonly bytes: number }
  | { readonly kind: "fault"; readonly fault: ExchangeFault };

export type Streams = {
  /** As `Exchanger.ask`, but for when `onDone` is called: it may be before this returns. */
  readonly ask: (
    server: Server,
    query: StreamQuery,
    timeoutMs: number,
    onDone: (outcome: StreamOutcome) => void,
    onRejected: (rejection: Rejection) => void,
  ) => () => void;
  /** Connections that are open. */
  readonly connections: () => number;
  /** Ends all connections; those who wait hear "closed". */
  readonly close: () => void;
};

export type StreamsOptions = {
  /** Begins a connection; `onReady` when questions may be sent. Errors are told by the socket's events. */
  readonly connect: (server: Server, onReady: () => void) => Socket;
  /** Why a connection that has not become ready ended with this error. */
  readonly faultOf: (error: Error | undefined) => ExchangeFault;
  readonly connectionsMax: number;
  readonly pipelineMax: number;
  readonly idleMs: number;
  readonly timers: Timers;
  readonly chance: Chance;
};

type Waiting = {
  readonly query: StreamQuery;
  readonly peer: Peer;
  readonly onDone: (outcome: StreamOutcome) => void;
  readonly onRejected: (rejection: Rejection) => void;
  stopTimer: () => void;
  connection: Connection | undefined;
  id: number;
  sentMs: number;
  attempts: number;
  isDone: boolean;
};

type Connection = {
  readonly peer: Peer;
  readonly pending: Map<number, Waiting>;
  socket: Socket | undefined;
  isReady: boolean;
  isEnded: boolean;
  /** The length of the message that comes, as far as its two bytes have come; then the message, as far as it has. */
  readonly length: number[];
  frame: Buffer | undefined;
  filled: number;
  answers: number;
  strays: number;
  heardMs: number;
  error: Error | undefined;
  stopIdle: () => void;
};

type Peer = {
  readonly key: string;
  readonly server: Server;
  readonly connections: Set<Connection>;
  readonly queue: Set<Waiting>;
};

const LENGTH_BYTES = 2;
const nothing = (): void => {};

type State = {
  readonly options: StreamsOptions;
  readonly peers: Map<string, Peer>;
  count: number;
  isClosed: boolean;
};

export function createStreams(options: StreamsOptions): Streams {
  const state: State = { options, peers: new Map(), count: 0, isClosed: false };
  const { peers } = state;
  return {
    connections: () => state.count,
    ask: (server, query, timeoutMs, onDone, onRejected) => {
      const key = serverKey(server);
      const peer = peers.get(key) ?? { key, server, connections: new Set(), queue: new Set() };
      const waiting: Waiting = {
        query,
        peer,
        onDone,
        onRejected,
        stopTimer: nothing,
        connection: undefined,
        id: 0,
        sentMs: 0,
        attempts: 0,
        isDone: false,
      };
      waiting.stopTimer = options.timers.after(timeoutMs, () => {
        giveUp(state, waiting);
        onDone({ kind: "fault", fault: "timeout" });
      });
      place(state, waiting);
      return () => {
        if (!waiting.isDone) giveUp(state, waiting);
      };
    },
    close: () => {
      state.isClosed = true;
      for (const peer of [...peers.values()]) {
        for (const waiting of [...peer.queue]) settle(waiting, { kind: "fault", fault: "closed" });
        for (const connection of [...peer.connections]) end(state, connection);
      }
    },
  };
}

function leave(waiting: Waiting): void {
  waiting.isDone = true;
  waiting.stopTimer();
  waiting.peer.queue.delete(waiting);
  waiting.connection?.pending.delete(waiting.id);
}

function settle(waiting: Waiting, outcome: StreamOutcome): void {
  if (waiting.isDone) return;
  leave(waiting);
  waiting.onDone(outcome);
}

/** Finds a connection for a question, opens one, or lets it wait for one. */
function place(state: State, waiting: Waiting): void {
  const { peer } = waiting;
  const { pipelineMax, connectionsMax } = state.options;
  state.peers.set(peer.key, peer);
  const found = leastBusy(peer);
  if (found !== undefined && found.pending.size < pipelineMax) assign(state, found, waiting);
  else if (!state.isClosed && peer.connections.size < connectionsMax && makeRoom(state)) {
    assign(state, open(state, peer), waiting);
  } else if (found !== undefined) peer.queue.add(waiting);
  else settle(waiting, { kind: "fault", fault: "closed" });
}

/** Those who wait for a connection of the peer have one, as far as there is room. */
function fill(state: State, peer: Peer): void {
  const { pipelineMax, connectionsMax } = state.options;
  for (const waiting of peer.queue) {
    const found = leastBusy(peer);
    const hasRoom = found !== undefined && found.pending.size < pipelineMax;
    if (!hasRoom && (peer.connections.size >= connectionsMax || !makeRoom(state))) return;
    peer.queue.delete(waiting);
    place(state, waiting);
  }
  if (peer.connections.size === 0 && peer.queue.size === 0) state.peers.delete(peer.key);
}

/** False: as many connections as may be are open, and each has somebody who waits. */
function makeRoom(state: State): boolean {
  if (state.count < CONNECTIONS_MAX) return true;
  for (const { connections } of state.peers.values()) {
    for (const connection of connections) {
      if (connection.pending.size > 0) continue;
      end(state, connection);
      return true;
    }
  }
  return false;
}

function assign(state: State, connection: Connection, waiting: Waiting): void {
  const { chance, timers } = state.options;
  do waiting.id = chance.uint16();
  while (connection.pending.has(waiting.id));
  connection.pending.set(waiting.id, waiting);
  connection.stopIdle();
  connection.stopIdle = nothing;
  waiting.connection = connection;
  waiting.attempts++;
  waiting.sentMs = timers.nowMs();
  if (connection.isReady) write(connection, waiting);
}

function open(state: State, peer: Peer): Connection {
  const { timers } = state.options;
  const connection: Connection = {
    peer,
    pending: new Map(),
    socket: undefined,
    isReady: false,
    isEnded: false,
    length: [],
    frame: undefined,
    filled: 0,
    answers: 0,
    strays: 0,
    heardMs: timers.nowMs(),
    error: undefined,
    stopIdle: nothing,
  };
  state.count++;
  peer.connections.add(connection);
  try {
    connection.socket = state.options.connect(peer.server, () => {
      connection.isReady = true;
      for (const waiting of connection.pending.values()) write(connection, waiting);
    });
    listen(state, connection, connection.socket);
  } catch (error) {
    // Certificates that cannot be used, for one.
    connection.error = error instanceof Error ? error : undefined;
    queueMicrotask(() => end(state, connection));
  }
  return connection;
}

function listen(state: State, connection: Connection, socket: Socket): void {
  socket.on("error", (error: Error) => {
    connection.error = error;
    end(state, connection);
  });
  socket.on("close", () => end(state, connection));
  socket.on("end", () => end(state, connection));
  socket.on("data", (chunk: Buffer) => {
    for (const message of cut(connection, chunk)) hear(state, connection, message);
  });
}

/** Takes a message: the answer to one of those who wait, or a stray. */
function hear(state: State, connection: Connection, bytes: Uint8Array): void {
  if (connection.isEnded) return;
  connection.heardMs = state.options.timers.nowMs();
  const waiting = bytes.length < 2 ? undefined : connection.pending.get((bytes[0]! << 8) | bytes[1]!);
  if (waiting === undefined) {
    connection.strays++;
    for (const each of connection.pending.values()) each.onRejected(bytes.length < HEADER_BYTES ? "garbage" : "id");
    if (connection.strays > STRAY_MESSAGES_MAX || bytes.length < HEADER_BYTES) end(state, connection);
    return;
  }
  connection.answers++;
  settle(waiting, read(waiting, bytes));
  rest(state, connection);
}

/** Lets others have the room that has become free, or the connection wait for a while. */
function rest(state: State, connection: Connection): void {
  fill(state, connection.peer);
  if (connection.isEnded || connection.pending.size > 0) return;
  connection.stopIdle();
  connection.stopIdle = state.options.timers.after(state.options.idleMs, () => end(state, connection));
}

function end(state: State, connection: Connection): void {
  if (connection.isEnded) return;
  connection.isEnded = true;
  connection.stopIdle();
  connection.peer.connections.delete(connection);
  state.count--;
  connection.socket?.destroy();
  const fault = connection.isReady ? "network" : state.options.faultOf(connection.error);
  for (const waiting of [...connection.pending.values()]) {
    // A server may end an idle connection at any moment, and the question that crosses with that was never heard.
    const wasOfUse = connection.answers > 0 && waiting.attempts === 1;
    if (wasOfUse && !state.isClosed) {
      connection.pending.delete(waiting.id);
      waiting.connection = undefined;
      place(state, waiting);
    } else settle(waiting, { kind: "fault", fault: state.isClosed ? "closed" : fault });
  }
  fill(state, connection.peer);
}

function giveUp(state: State, waiting: Waiting): void {
  const { connection, sentMs } = waiting;
  leave(waiting);
  if (connection === undefined || connection.isEnded) {
    fill(state, waiting.peer);
    return;
  }
  // What was asked for may still come: one that carries one question at a time has no use until then.
  if (state.options.pipelineMax === 1 || connection.heardMs <= sentMs) end(state, connection);
  else rest(state, connection);
}

function leastBusy(peer: Peer): Connection | undefined {
  let least: Connection | undefined;
  for (const connection of peer.connections) {
    if (least === undefined || connection.pending.size < least.pending.size) least = connection;
  }
  return least;
}

function write(connection: Connection, waiting: Waiting): void {
  const { bytes } = waiting.query;
  const framed = Buffer.alloc(LENGTH_BYTES + bytes.length);
  framed.writeUInt16BE(bytes.length, 0);
  framed.set(bytes, LENGTH_BYTES);
  framed.writeUInt16BE(waiting.id, LENGTH_BYTES);
  connection.socket?.write(framed);
}

/** The whole messages that the chunk completes. Each byte is copied once, however small the chunks are. */
function cut(connection: Connection, chunk: Buffer): readonly Buffer[] {
  const messages: Buffer[] = [];
  let at = 0;
  while (at < chunk.length) {
    if (connection.frame === undefined) {
      connection.length.push(chunk[at]!);
      at++;
      const [upper, lower] = connection.length;
      if (upper === undefined || lower === undefined) continue;
      connection.frame = Buffer.alloc((upper << 8) | lower);
      connection.filled = 0;
      connection.length.length = 0;
    }
    const taken = chunk.copy(connection.frame, connection.filled, at);
    at += taken;
    connection.filled += taken;
    if (connection.filled < connection.frame.length) continue;
    messages.push(connection.frame);
    connection.frame = undefined;
  }
  return messages;
}

function read(waiting: Waiting, bytes: Uint8Array): StreamOutcome {
  const { name, type } = waiting.query;
  const match = matchResponse(bytes, { id: waiting.id, name, type });
  if (match === "garbage" || match === "question" || match === "id") {
    waiting.onRejected(match);
    return { kind: "fault", fault: "garbage" };
  }
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "message") return { kind: "message", message: decoded.message, bytes: bytes.length };
  waiting.onRejected("garbage");
  return { kind: "fault", fault: "garbage" };
}
