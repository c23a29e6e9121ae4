/**
 * The clients that wait: each query that was handed over is answered again here, what the answer lacks is resolved, and so on
 * until nothing is lacking, within bounds on rounds, time, clients and bytes.
 */
import { type Answerer, TAKEN } from "../answer/answerer.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, observeLatency, TRANSPORT, type Transport } from "../image/counters.ts";
import { HANDOVER_KIND } from "../image/handover.ts";
import { ROUTE } from "../image/shared.ts";
import {
  recordAddress,
  recordKind,
  recordPort,
  recordQuery,
  recordToken,
  recordTransport,
} from "../listen/handover-record.ts";
import { STREAM_MESSAGE_BYTES, UDP_SLOT_BYTES } from "../listen/limits.ts";
import type { Exchanger } from "../resolve/exchange.ts";
import type { Resolved, Resolver } from "../resolve/resolver-types.ts";
import { CLIENT_BYTES_MAX, CLIENT_MS, CLIENT_ROUNDS_MAX, CLIENTS_MAX } from "./limits.ts";
import type { Replies } from "./resolve-replies.ts";

/** A message whose signature is good. */
export type Signing = {
  /** What is answered: the message without its signature. */
  readonly message: Uint8Array;
  /** Lower-case wire name of the key. */
  readonly keyName: Uint8Array;
  /** Bytes that the answer's signature takes. */
  readonly bytes: number;
  /** The answer is everything that is stored. */
  readonly hasManagementView: boolean;
  /** Signs the messages of the answer, in turn. */
  readonly sign: (message: Uint8Array) => Uint8Array;
};

/** A record of a thread; `signing` where its message was signed and was found to be right. */
export type Asked = {
  readonly thread: number;
  readonly record: Uint8Array;
  readonly sinceMs: number;
  readonly signing: Signing | undefined;
};

/** The message that is to be answered. */
export function askedMessage({ record, signing }: Asked): Uint8Array {
  return signing?.message ?? recordQuery(record);
}

export type ClientsOptions = {
  readonly answerer: Answerer;
  readonly counters: Float64Array;
  readonly resolver: Resolver;
  /** CacheWriter.position. */
  readonly position: () => number;
  /** Whether the resolver has been told of a route of this number. */
  readonly knowsRoute: (route: number) => boolean;
  readonly isOurs: Exchanger["isOurs"];
  readonly replies: Pick<Replies, "add" | "isFull">;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Something is ready that was not: `serve` is to be called. */
  readonly onReady: () => void;
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
  /** Takes over what needs keys or `control`; left out: all of it is SERVFAIL. */
  readonly toPrimary?: (asked: Asked) => void;
};

export type Clients = {
  /** A record of a thread: see HANDOVER. */
  readonly take: (thread: number, record: Uint8Array) => void;
  /** A message whose signature was verified is answered as others are, and signed. */
  readonly serveSigned: (asked: Asked) => void;
  /** Answers with an RCODE below 16 and nothing else, signed where the message was. */
  readonly answerWith: (asked: Asked, rcode: number) => void;
  /** Sends this answer, which is signed already where it has to be. */
  readonly reply: (asked: Asked, answer: Uint8Array) => void;
  /** Counts and logs an answer that is sent by other ways. */
  readonly note: (asked: Asked, answer: Uint8Array) => void;
  /** Answers clients whose question is resolved, at most `most`; whether others are left that can be answered. */
  readonly serve: (most: number) => boolean;
  /** A thread that had too many answers to come has taken some. */
  readonly relieve: () => void;
  /** Those that have waited too long are told so. */
  readonly sweep: () => void;
  /** All that wait are told so. */
  readonly endAll: () => void;
  readonly waiting: () => number;
  /** Queries that came back to this node, and those for which there was no room. */
  readonly loops: () => number;
  readonly refusedFull: () => number;
};

type Client = Asked & {
  /** Of the cache, when something was lacking for the first time: what came later counts, expired or not. */
  position: number;
  rounds: number;
  isDone: boolean;
};

type Ready = { readonly client: Client; readonly resolved: Resolved };

type State = {
  readonly options: ClientsOptions;
  /** In the order in which they came. */
  readonly waiting: Set<Client>;
  readonly scratch: Uint8Array;
  bytes: number;
  loops: number;
  refusedFull: number;
};

export function createClients(options: ClientsOptions): Clients {
  const scratch = new Uint8Array(STREAM_MESSAGE_BYTES);
  const state: State = { options, waiting: new Set(), scratch, bytes: 0, loops: 0, refusedFull: 0 };
  const { resolver, replies, now } = options;
  const { waiting } = state;
  let ready: Ready[] = [];
  let served = 0;
  /** Those whose thread has too many answers to come. */
  let held: Ready[] = [];
  const onResolved = (client: Client, resolved: Resolved) => {
    if (client.isDone) return;
    ready.push({ client, resolved });
    options.onReady();
  };
  const admit = (asked: Asked) => {
    const client: Client = { ...asked, position: -1, rounds: 0, isDone: false };
    if (waiting.size < CLIENTS_MAX && state.bytes < CLIENT_BYTES_MAX) {
      if (!replies.isFull(asked.thread)) return proceed(state, client, onResolved);
      enlist(state, client);
      held.push({ client, resolved: STORED });
      return;
    }
    state.refusedFull += 1;
    giveUp(state, client, EDE.OTHER);
  };
  return {
    take: (thread, record) => {
      if (recordKind(record) === HANDOVER_KIND.REFRESH) return resolver.refresh(recordToken(record));
      admit({ thread, record, sinceMs: now(), signing: undefined });
    },
    serveSigned: admit,
    answerWith: (asked, rcode) => {
      const length = withAnswerer(state, asked, (answerer, query, address, transport) =>
        answerer.answerWith(state.scratch, 0, query.length, address, 0, address.length, transport, rcode),
      );
      send(state, asked, length);
    },
    reply: (asked, answer) => {
      note(state, asked, answer);
      replies.add(asked.thread, asked.record, answer);
      observe(state, asked);
    },
    note: (asked, answer) => note(state, asked, answer),
    relieve: () => {
      if (held.length === 0) return;
      ready = [...ready.slice(served), ...held];
      served = 0;
      held = [];
      options.onReady();
    },
    serve: (most) => {
      for (let count = 0; count < most && served < ready.length; count++) {
        const one = ready[served++]!;
        const { client, resolved } = one;
        if (client.isDone) continue;
        if (replies.isFull(client.thread)) held.push(one);
        else if (resolved.kind === "failed") giveUp(state, client, resolved.extendedError);
        else proceed(state, client, onResolved);
      }
      if (served < ready.length) return true;
      ready = [];
      served = 0;
      return false;
    },
    sweep: () => {
      const sinceMs = now() - CLIENT_MS;
      for (const client of waiting) {
        if (client.sinceMs > sinceMs) return;
        giveUp(state, client, EDE.NO_REACHABLE_AUTHORITY);
      }
    },
    endAll: () => {
      for (const client of waiting) giveUp(state, client, EDE.OTHER);
    },
    waiting: () => waiting.size,
    loops: () => state.loops,
    refusedFull: () => state.refusedFull,
  };
}

const STORED: Resolved = { kind: "stored" };

type OnResolved = (client: Client, resolved: Resolved) => void;

/** Answers the client, or has resolved what the answer lacks. */
function proceed(state: State, client: Client, onResolved: OnResolved): void {
  const { answerer, toPrimary } = state.options;
  const length = answer(state, client);
  if (length !== TAKEN) finish(state, client, length);
  else if (answerer.need.route === ROUTE.PRIMARY && toPrimary !== undefined) {
    leave(state, client);
    toPrimary(client);
  } else if (!resolve(state, client, onResolved)) giveUp(state, client, EDE.OTHER);
}

/** False: what is lacking is not to be had. */
function resolve(state: State, client: Client, onResolved: OnResolved): boolean {
  const { options } = state;
  const { key, type, flags, route } = options.answerer.need;
  const name = new Uint8Array(key.length + 1);
  name.set(key.lower.subarray(0, key.length));
  if (client.rounds === 0) {
    client.position = options.position();
    if (options.isOurs(recordAddress(client.record), recordPort(client.record), name, type)) {
      state.loops += 1;
      return false;
    }
    enlist(state, client);
  }
  client.rounds += 1;
  if (client.rounds > CLIENT_ROUNDS_MAX || !options.knowsRoute(route)) return false;
  options.resolver.resolve({ name, type, flags, route }, (resolved) => onResolved(client, resolved));
  return true;
}

function enlist(state: State, client: Client): void {
  if (state.waiting.has(client)) return;
  state.waiting.add(client);
  state.bytes += client.record.length;
}

/** Answers from what there is; not at all where the thread takes none. */
function giveUp(state: State, client: Client, extendedError: number): void {
  const { replies } = state.options;
  finish(state, client, replies.isFull(client.thread) ? 0 : answer(state, client, extendedError));
}

function finish(state: State, client: Client, length: number): void {
  leave(state, client);
  send(state, client, length);
}

function leave(state: State, client: Client): void {
  client.isDone = true;
  if (state.waiting.delete(client)) state.bytes -= client.record.length;
}

/** Sends what `scratch` has, signed where the message was. */
function send(state: State, asked: Asked, length: number): void {
  const { options, scratch } = state;
  const { thread, record, signing } = asked;
  const answer = scratch.subarray(0, length);
  options.replies.add(thread, record, signing === undefined || length === 0 ? answer : signing.sign(answer));
  observe(state, asked);
}

function observe({ options }: State, { sinceMs }: Asked): void {
  observeLatency(options.counters, Math.round((options.now() - sinceMs) * 1000), 1);
}

function note(state: State, asked: Asked, made: Uint8Array): void {
  withAnswerer(state, asked, (answerer, query, address, transport) => {
    answerer.note(state.scratch, 0, query.length, made, address, 0, address.length, transport);
    return 0;
  });
}

/** Puts the answer into `scratch`; its length, 0 for none. Nobody is waited for where `extendedError` is given. */
function answer(state: State, client: Client, extendedError?: number): number {
  const { scratch } = state;
  return withAnswerer(state, client, (answerer, { length: received }, address, transport) => {
    const room = transport === TRANSPORT.UDP ? UDP_SLOT_BYTES : STREAM_MESSAGE_BYTES;
    answerer.acceptFrom(client.position);
    return extendedError === undefined
      ? answerer.answer(scratch, 0, received, room, address, 0, address.length, transport)
      : answerer.answerNow(scratch, 0, received, room, address, 0, address.length, transport, extendedError);
  });
}

type WithAnswerer = (answerer: Answerer, query: Uint8Array, address: Uint8Array, transport: Transport) => number;

/** Runs with the message in `scratch`. Whatever one query provokes ends with that query; 0 then. */
function withAnswerer({ options, scratch }: State, asked: Asked, run: WithAnswerer): number {
  const { answerer, counters } = options;
  const { record, signing, sinceMs } = asked;
  const query = askedMessage(asked);
  scratch.set(query);
  answerer.enter();
  answerer.setView(signing?.bytes ?? 0, signing?.hasManagementView ?? false);
  answerer.client.port = recordPort(record);
  answerer.client.takenMs = sinceMs;
  try {
    return run(answerer, query, recordAddress(record), transportOf(record));
  } catch (thrown) {
    counters[COUNTER.FAILED]! += 1;
    options.onFailure(query, thrown);
    return 0;
  } finally {
    answerer.leave();
  }
}

const STREAM_TRANSPORTS: readonly Transport[] = [TRANSPORT.TCP, TRANSPORT.DOT, TRANSPORT.DOH];

function transportOf(record: Uint8Array): Transport {
  const transport = recordTransport(record);
  return STREAM_TRANSPORTS.find((one) => one === transport) ?? TRANSPORT.UDP;
}
