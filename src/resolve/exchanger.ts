/**
 * One question to one server, from the first datagram to what came of it. A datagram that is not the answer is counted and
 * waited on: whoever forges one must not be able to end the wait either. Where the server itself may be the reason, the
 * question goes out over TCP beside it, where nobody else can answer.
 */
import type { OpenUdpSockets, UdpSockets } from "../base/udp-sockets.ts";
import { RCODE } from "../dns/codes.ts";
import { decodeMessage, type Message } from "../dns/message.ts";
import { LOWER, namesEqual } from "../dns/name.ts";
import { type Bag, createBag, type Member } from "./bag.ts";
import { randomizeCase } from "./case.ts";
import type { Chance } from "./chance.ts";
import type { ExchangeFault, ExchangeOutcome, Exchanger, Question, Rejection, Server } from "./exchange.ts";
import { EXCHANGES_MAX, GIVES_WAY_AFTER_MS, PADDING_BYTES, UDP_SIZE } from "./limits.ts";
import { createLocalAddresses, type LocalAddresses, unmapped } from "./local-addresses.ts";
import { headerRcode, isTruncated, matchResponse, QUERY_BYTES_MAX, writeQuery } from "./query-message.ts";
import { CASE_FAULTS, createServerFacts, FACT_MS, type ServerFacts } from "./server-facts.ts";
import type { StreamOutcome, Streams } from "./stream.ts";
import type { Timers } from "./timers.ts";

export type ExchangerOptions = {
  readonly openSockets: OpenUdpSockets;
  readonly socketsMax: number;
  readonly tcp: Streams;
  readonly tls: Streams;
  readonly timers: Timers;
  readonly chance: Chance;
  readonly localAddresses?: LocalAddresses;
};

/** What of the question the datagram that is waited for must repeat. */
type Sent = {
  readonly id: number;
  readonly name: Uint8Array;
  readonly type: number;
  readonly cookie: Uint8Array | undefined;
  readonly hasEdns: boolean;
  readonly sentMs: number;
};

type Exchange = Member & {
  readonly server: Server;
  readonly question: Question;
  readonly facts: ServerFacts;
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly onDone: (outcome: ExchangeOutcome) => void;
  readonly onRejected: (rejection: Rejection) => void;
  stopTimer: () => void;
  /** -1: none is open. */
  socket: number;
  sent: Sent | undefined;
  /** Those whose sockets were opened before and after. */
  older: Exchange | undefined;
  newer: Exchange | undefined;
  stopStream: (() => void) | undefined;
  /** Why TCP is asked beside UDP. */
  doubt: "case" | "cookie" | undefined;
  /** EDNS was refused in this exchange. */
  isPlain: boolean;
  badCookies: number;
  rejected: number;
  /** `ask` has not returned yet. */
  isStarting: boolean;
  isDone: boolean;
};

type Listen = { readonly address: Uint8Array; readonly port: number };

type State = {
  readonly options: ExchangerOptions;
  readonly timers: Timers;
  readonly factsOf: (server: Server) => ServerFacts;
  readonly isLocal: LocalAddresses;
  readonly exchanges: Bag<Exchange>;
  readonly bySocket: (Exchange | undefined)[];
  /** Those that wait for a socket, in their order. */
  readonly queue: Set<Exchange>;
  readonly room: Uint8Array;
  sockets: UdpSockets | undefined;
  listens: readonly Listen[];
  openSockets: number;
  /** Of those with a socket. */
  oldest: Exchange | undefined;
  newest: Exchange | undefined;
  isPumping: boolean;
  isMakingWay: boolean;
  isClosed: boolean;
};

const nothing = (): void => {};

export function createExchanger(options: ExchangerOptions): Exchanger {
  const { timers } = options;
  const state: State = {
    options,
    timers,
    factsOf: createServerFacts(timers.nowMs),
    isLocal: options.localAddresses ?? createLocalAddresses(timers.nowMs),
    exchanges: createBag(),
    bySocket: new Array(options.socketsMax).fill(undefined),
    queue: new Set(),
    room: new Uint8Array(QUERY_BYTES_MAX),
    sockets: undefined,
    listens: [],
    openSockets: 0,
    oldest: undefined,
    newest: undefined,
    isPumping: false,
    isMakingWay: false,
    isClosed: false,
  };
  state.sockets = options.openSockets({
    capacity: options.socketsMax,
    randomPort: options.chance.port,
    events: {
      onDatagram: (socket, bytes) => {
        const exchange = state.bySocket[socket];
        if (exchange !== undefined) hear(state, exchange, bytes);
      },
      onError: (socket) => {
        const exchange = state.bySocket[socket];
        if (exchange === undefined) return;
        closeSocket(state, exchange);
        if (exchange.stopStream === undefined) fail(state, exchange, "network");
        pump(state);
      },
    },
  });
  return {
    ask: (server, question, timeoutMs, onDone, onRejected = nothing) => {
      const exchange = begin(state, server, question, timeoutMs, onDone, onRejected);
      return () => {
        if (exchange.isDone) return;
        finish(state, exchange);
        pump(state);
      };
    },
    isOurs: (address, port, name, type) => {
      const client = unmapped(address);
      const socket = state.sockets?.socketAt(port, client.length) ?? -1;
      const question = socket < 0 ? undefined : state.bySocket[socket]?.question;
      return (
        question !== undefined && question.type === type && namesEqual(question.name, name) && state.isLocal(client)
      );
    },
    setListens: (listens) => {
      state.listens = listens;
    },
    inFlight: state.exchanges.size,
    close: () => {
      if (state.isClosed) return;
      state.isClosed = true;
      for (const exchange of state.exchanges.all()) fail(state, exchange, "closed");
      options.tcp.close();
      options.tls.close();
      state.sockets?.end();
    },
  };
}

function begin(
  state: State,
  given: Server,
  question: Question,
  timeoutMs: number,
  onDone: (outcome: ExchangeOutcome) => void,
  onRejected: (rejection: Rejection) => void,
): Exchange {
  const address = unmapped(given.address);
  const server = address === given.address ? given : { ...given, address };
  const startedMs = state.timers.nowMs();
  const exchange: Exchange = {
    server,
    question,
    facts: state.factsOf(server),
    startedMs,
    deadlineMs: startedMs + timeoutMs,
    onDone,
    onRejected,
    stopTimer: nothing,
    socket: -1,
    sent: undefined,
    older: undefined,
    newer: undefined,
    stopStream: undefined,
    doubt: undefined,
    isPlain: false,
    badCookies: 0,
    rejected: 0,
    isStarting: true,
    place: -1,
    isDone: false,
  };
  const hasRoom = !state.isClosed && state.exchanges.size() < EXCHANGES_MAX;
  state.exchanges.add(exchange);
  if (!hasRoom) fail(state, exchange, "closed");
  else if (isListening(state, server)) fail(state, exchange, "loop");
  else {
    exchange.stopTimer = state.timers.after(timeoutMs, () => {
      fail(state, exchange, exchange.rejected > 0 ? "garbage" : "timeout");
    });
    const { facts } = exchange;
    const isCaseless = question.hardening?.caseRandomization === true && startedMs < facts.caselessUntilMs;
    if (server.transport === "tls" || isCaseless) askStream(state, exchange);
    else sendDatagram(state, exchange);
  }
  exchange.isStarting = false;
  return exchange;
}

function isListening({ listens, isLocal }: State, { address, port }: Server): boolean {
  return listens.some((each) => {
    if (each.port !== port) return false;
    // Nobody is asked at the address that stands for any: the system takes it for this machine.
    if (each.address.every((byte) => byte === 0) || address.every((byte) => byte === 0)) return isLocal(address);
    return Buffer.compare(each.address, address) === 0;
  });
}

function closeSocket(state: State, exchange: Exchange): void {
  const { socket } = exchange;
  if (socket < 0) return;
  exchange.socket = -1;
  state.bySocket[socket] = undefined;
  state.openSockets--;
  const { older, newer } = exchange;
  if (older === undefined) state.oldest = newer;
  else older.newer = newer;
  if (newer === undefined) state.newest = older;
  else newer.older = older;
  exchange.older = undefined;
  exchange.newer = undefined;
  state.sockets?.close(socket);
}

function finish(state: State, exchange: Exchange): void {
  exchange.isDone = true;
  exchange.stopTimer();
  state.exchanges.remove(exchange);
  // Nearly always nobody waits.
  if (state.queue.size > 0) state.queue.delete(exchange);
  closeSocket(state, exchange);
  const { stopStream } = exchange;
  exchange.stopStream = undefined;
  stopStream?.();
}

function settle(state: State, exchange: Exchange, outcome: ExchangeOutcome): void {
  if (exchange.isDone) return;
  if (exchange.isStarting) {
    queueMicrotask(() => settle(state, exchange, outcome));
    return;
  }
  finish(state, exchange);
  exchange.onDone(outcome);
  pump(state);
}

function fail(state: State, exchange: Exchange, fault: ExchangeFault): void {
  settle(state, exchange, { kind: "fault", fault });
}

function reject(exchange: Exchange, rejection: Rejection): void {
  exchange.rejected++;
  exchange.onRejected(rejection);
}

/** Sockets that have become free go to those who wait for one. */
function pump(state: State): void {
  if (state.isPumping) return;
  state.isPumping = true;
  for (const exchange of state.queue) {
    if (state.openSockets >= state.options.socketsMax || state.isClosed) break;
    state.queue.delete(exchange);
    sendDatagram(state, exchange);
  }
  state.isPumping = false;
}

function write(state: State, exchange: Exchange, id: number, name: Uint8Array): Sent & { readonly bytes: Uint8Array } {
  const { question, facts, server } = exchange;
  const { hardening, type, flags, recursionDesired } = question;
  const nowMs = state.timers.nowMs();
  const hasEdns = !exchange.isPlain && nowMs >= facts.plainUntilMs;
  const isSecure = server.transport === "tls";
  const cookie = hasEdns && hardening?.cookies === true && !isSecure ? facts.cookies.cookie() : undefined;
  const padding = isSecure ? PADDING_BYTES : 0;
  const edns = hasEdns ? { udpSize: hardening?.maxUdpSize ?? UDP_SIZE, cookie, padding } : undefined;
  const length = writeQuery(state.room, { id, name, type, flags, recursionDesired, edns });
  return { id, name, type, cookie, hasEdns, sentMs: nowMs, bytes: state.room.subarray(0, length) };
}

function sendDatagram(state: State, exchange: Exchange): void {
  if (state.openSockets >= state.options.socketsMax) {
    state.queue.add(exchange);
    makeWay(state);
    return;
  }
  const { question, server } = exchange;
  const { chance } = state.options;
  const isCased = question.hardening?.caseRandomization === true;
  const name = isCased ? randomizeCase(question.name, chance) : question.name;
  const sent = write(state, exchange, chance.uint16(), name);
  const socket = state.sockets?.open(server.address, server.port, sent.bytes) ?? -1;
  if (socket < 0) {
    fail(state, exchange, "network");
    return;
  }
  state.openSockets++;
  exchange.socket = socket;
  exchange.sent = sent;
  state.bySocket[socket] = exchange;
  exchange.older = state.newest;
  if (state.newest === undefined) state.oldest = exchange;
  else state.newest.newer = exchange;
  state.newest = exchange;
}

/** Whoever asks for many names that nobody answers for would have all the sockets to himself. */
function makeWay(state: State): void {
  const { oldest } = state;
  if (oldest === undefined || state.isMakingWay) return;
  if (state.timers.nowMs() - (oldest.sent?.sentMs ?? 0) < GIVES_WAY_AFTER_MS) return;
  state.isMakingWay = true;
  closeSocket(state, oldest);
  if (oldest.stopStream === undefined) fail(state, oldest, "timeout");
  state.isMakingWay = false;
  pump(state);
}

function askStream(state: State, exchange: Exchange): void {
  if (exchange.stopStream !== undefined) return;
  const { server, question } = exchange;
  const name = question.name.map((byte) => LOWER[byte]!);
  const sent = write(state, exchange, 0, name);
  const streams = server.transport === "tls" ? state.options.tls : state.options.tcp;
  let isOver = false;
  exchange.stopStream = nothing;
  const stop = streams.ask(
    server,
    { bytes: sent.bytes.slice(), name, type: question.type },
    Math.max(1, exchange.deadlineMs - state.timers.nowMs()),
    (outcome) => {
      isOver = true;
      exchange.stopStream = undefined;
      if (!exchange.isDone) hearStream(state, exchange, sent, outcome);
    },
    (rejection) => reject(exchange, rejection),
  );
  if (!isOver) exchange.stopStream = stop;
}

/** Takes a datagram from the server's address and port, which may still be anybody's. */
function hear(state: State, exchange: Exchange, bytes: Uint8Array): void {
  const { sent, question } = exchange;
  if (sent === undefined) return;
  const match = matchResponse(bytes, sent);
  const isCased = question.hardening?.caseRandomization === true;
  if (match === "case" && isCased) {
    reject(exchange, "case");
    doubt(state, exchange, "case");
    return;
  }
  const isRefusal = match === "no-question" && sent.hasEdns && refusesEdns(headerRcode(bytes));
  if (match !== "response" && match !== "case" && !isRefusal) {
    reject(exchange, match === "no-question" ? "question" : match);
    return;
  }
  // What is cut off may end in the middle of a record: no more than the header is needed of it.
  const decoded = isTruncated(bytes) ? undefined : decodeMessage(bytes);
  if (decoded?.kind === "error") {
    reject(exchange, "garbage");
    return;
  }
  if (isCased && match === "response") exchange.facts.caseFaults = 0;
  if (decoded !== undefined) {
    judge(state, exchange, sent, decoded.message, bytes.length);
    return;
  }
  closeSocket(state, exchange);
  askStream(state, exchange);
  pump(state);
}

/** The server may be one that changes letters, or gives no cookies any more: TCP will tell, and UDP is waited on. */
function doubt(state: State, exchange: Exchange, reason: "case" | "cookie"): void {
  exchange.doubt ??= reason;
  askStream(state, exchange);
}

function judge(state: State, exchange: Exchange, sent: Sent, message: Message, bytes: number): void {
  const { facts } = exchange;
  if (sent.cookie !== undefined) {
    const verdict = facts.cookies.take(message, sent.cookie);
    if (verdict === "wrong" || verdict === "missing") {
      reject(exchange, "cookie");
      doubt(state, exchange, "cookie");
      return;
    }
    // RFC 7873 section 5.3: once more with the cookie that came with it, then over TCP.
    if (message.rcode === RCODE.BADCOOKIE && verdict === "good") {
      exchange.badCookies++;
      closeSocket(state, exchange);
      if (exchange.badCookies === 1) sendDatagram(state, exchange);
      else askStream(state, exchange);
      return;
    }
  }
  if (sent.hasEdns && refusesEdns(message.rcode)) {
    exchange.isPlain = true;
    closeSocket(state, exchange);
    sendDatagram(state, exchange);
    return;
  }
  accept(state, exchange, message, sent.sentMs, bytes);
}

function hearStream(state: State, exchange: Exchange, sent: Sent, outcome: StreamOutcome): void {
  const { facts } = exchange;
  if (outcome.kind === "fault") {
    // Where the answer over UDP was only in doubt, another one may still come.
    if (exchange.socket < 0) fail(state, exchange, outcome.fault);
    return;
  }
  const { message, bytes } = outcome;
  if (sent.hasEdns && refusesEdns(message.rcode)) {
    exchange.isPlain = true;
    askStream(state, exchange);
    return;
  }
  if (sent.cookie !== undefined && facts.cookies.take(message, sent.cookie) !== "good") facts.cookies.forget();
  if (exchange.doubt === "case") {
    facts.caseFaults++;
    if (facts.caseFaults >= CASE_FAULTS) facts.caselessUntilMs = state.timers.nowMs() + FACT_MS;
  }
  accept(state, exchange, message, exchange.startedMs, bytes);
}

function accept(state: State, exchange: Exchange, message: Message, sentMs: number, bytes: number): void {
  const nowMs = state.timers.nowMs();
  // Only a server that has an answer without EDNS is one that does not know it.
  if (exchange.isPlain && !refusesEdns(message.rcode)) exchange.facts.plainUntilMs = nowMs + FACT_MS;
  settle(state, exchange, { kind: "answer", message, rttMs: nowMs - sentMs, bytes });
}

function refusesEdns(rcode: number): boolean {
  return rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
}
