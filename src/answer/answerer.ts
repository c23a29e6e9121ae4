/**
 * Answers queries: bytes in, bytes out, in the same place. One answerer a thread; it allocates nothing once it is warm,
 * and no query can make it throw.
 */
import type { Cidr } from "../base/ip.ts";
import { CLASS, EDE, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { refreshCache } from "../image/cache-view.ts";
import { COUNTER, queryPlace, TRANSPORT, type Transport, threadCounters, typeClass } from "../image/counters.ts";
import { CONTROL, ROUTE, type SharedImage } from "../image/shared.ts";
import { enterImage, leaveImage, openView } from "../image/view.ts";
import { answerChaos } from "./chaos.ts";
import { noteClient, takeSubnet } from "./client.ts";
import { answerCookie, type CookieMaker, createCookieMaker } from "./cookie.ts";
import { type EdnsOptions, optLength, putOpt } from "./edns.ts";
import { putHeader, refuseUnread, unreadRcode } from "./header.ts";
import { CACHE_USE } from "./hit.ts";
import { type AnswerLog, beginLog, type Client, createAnswerLog, enterLog, logAnswer } from "./log-event.ts";
import { createMadeAnswers, isForPrimary, type MadeAnswers } from "./made-answers.ts";
import { answerQuestion } from "./pipeline.ts";
import { type Query, READ, readQuery } from "./query.ts";
import { createReadAhead, readNext, startReadAhead, takeRead, touchAll } from "./read-ahead.ts";
import {
  type AnswerState,
  type AnswerStateOptions,
  createAnswerState,
  isQueryWhole,
  type Need,
  restoreQuery,
  startAnswer,
  zonesUnchanged,
} from "./state.ts";

/** What `answer` returns where the cache lacks something of the answer, or where another thread has to make it. */
export const TAKEN = -1;

/** `forwards` and `isResolver` are for threads that answer clients; what state.ts adds is for whoever explains answers. */
export type AnswererOptions = AnswerStateOptions & {
  /** Index of the thread, below MAX_THREADS: nobody else may use it. */
  readonly thread: number;
  /** What `id.server` and NSID answer; undefined for nothing. At most 63 bytes of it are used. */
  readonly nodeId: string | undefined;
  /** The most bytes of an answer over UDP, 512 to 4096. */
  readonly maxUdpSize: number;
  /** Idle time of a TCP connection, told to clients that ask. */
  readonly tcpIdleSeconds: number;
  /** Networks of resolvers whose EDNS Client Subnet (RFC 7871) is believed; from elsewhere the option is ignored. */
  readonly clientSubnetSources?: readonly Cidr[];
  /** Hits and misses of the cache are not counted: who took the queries has done so. */
  readonly isResolver?: boolean;
  /**
   * Answers are told to the query log and to debug capture, where those want them. "socket-names": client addresses are given
   * inside of socket names as the kernel has them, and so with the port; else `client` has it.
   */
  readonly logs?: "socket-names" | "addresses";
};

export type Answerer = MadeAnswers & {
  /** Begins a batch: takes over growth of the image and the time. */
  readonly enter: () => void;
  /**
   * Reads a query that `answer` will be asked for, in the same order, once up to READ_AHEAD_MAX are read and `prefetch` was
   * called. It changes no answer, it only makes many together cheaper.
   */
  readonly readAhead: (bytes: Uint8Array, offset: number, length: number) => void;
  readonly prefetch: () => void;
  /** Ends it: no reference into the image is held any more. */
  readonly leave: () => void;
  /**
   * Answers the query in bytes[offset, offset + length) over itself and returns the answer's length, or 0 for silence.
   * `room` bytes from `offset` on may be written; the client's address is the 4 or 16 bytes at `addressOffset`.
   * TAKEN: the cache lacks what `need` tells, and the query's bytes are as they were received. A need of ROUTE.PRIMARY: the
   * message is signed, or an update or transfer while those are on; it is for the thread that resolves.
   */
  readonly answer: (
    bytes: Uint8Array,
    offset: number,
    length: number,
    room: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
  ) => number;
  /** As `answer`, but nobody is waited for: what is lacking is SERVFAIL with this extended error, behind the CNAMEs there are. */
  readonly answerNow: (
    bytes: Uint8Array,
    offset: number,
    length: number,
    room: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
    extendedError: number,
  ) => number;
  /** Valid until the next query is read or answered. */
  readonly need: Need;
  /** Entries that the cache's writer has put at or behind this position of its count although expired; -1: none do. */
  readonly acceptFrom: (position: number) => void;
  /** After `answer`: word of a popular cache entry near its end that is to be fetched anew, 0 for none. */
  readonly refresh: number;
  /** After `answer`: whether it depends on who asked, so that nobody may keep it for others. */
  readonly isForClient: boolean;
  /** Who asks the next query, as far as only the log wants to know it. */
  readonly client: Client;
};

const NODE_ID_MAX = 63;
const SMALLEST_UDP_SIZE = 512;
/** How often an answer is made again because its zone changed under it. */
const REPEATS_MAX = 2;

/** What an answerer has besides the queries that it reads. */
type Tools = {
  readonly state: AnswerState;
  readonly counters: Float64Array;
  readonly cookies: CookieMaker;
  readonly edns: EdnsOptions;
  readonly subnetSources: readonly Cidr[];
  readonly isResolver: boolean;
  readonly log: AnswerLog;
};

export function createAnswerer(shared: SharedImage, options: AnswererOptions): Answerer {
  const { thread } = options;
  const view = openView(shared);
  const state = createAnswerState(view, options);
  const alone = state.query;
  const ahead = createReadAhead(state.forwards ? state.cache : undefined);
  const tools = createTools(shared, options, state);
  const seed = view.control[CONTROL.HASH_SEED]!;

  function answer(
    bytes: Uint8Array,
    offset: number,
    length: number,
    room: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
  ): number {
    let query = takeRead(ahead, bytes, offset);
    if (query === undefined) {
      query = alone;
      readQuery(query, bytes, offset, offset + length, seed);
    }
    state.query = query;
    query.transport = transport;
    return answerRead(tools, room, address, addressOffset, addressLength);
  }

  function answerNow(
    bytes: Uint8Array,
    offset: number,
    length: number,
    room: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
    extendedError: number,
  ): number {
    readQuery(alone, bytes, offset, offset + length, seed);
    state.query = alone;
    alone.transport = transport;
    state.lackError = extendedError;
    try {
      return answerRead(tools, room, address, addressOffset, addressLength);
    } finally {
      state.lackError = -1;
    }
  }

  return {
    enter() {
      enterImage(view, thread);
      startReadAhead(ahead);
      beginBatch(tools);
    },
    readAhead: (bytes, offset, length) => readNext(ahead, view, bytes, offset, offset + length, seed),
    prefetch: () => touchAll(ahead, view),
    leave: () => leaveImage(view, thread),
    answer,
    answerNow,
    need: state.need,
    acceptFrom(position) {
      state.acceptedFrom = position;
    },
    get refresh() {
      return state.refresh;
    },
    get isForClient() {
      return state.isForClient || state.isRecursionRefused;
    },
    client: tools.log.client,
    ...createMadeAnswers(tools, alone, seed),
  };
}

function createTools(shared: SharedImage, options: AnswererOptions, state: AnswerState): Tools {
  return {
    state,
    counters: threadCounters(shared, options.thread),
    cookies: createCookieMaker(),
    edns: {
      nodeId: new TextEncoder().encode(options.nodeId ?? "").subarray(0, NODE_ID_MAX),
      maxUdpSize: options.maxUdpSize,
      tcpIdleSeconds: options.tcpIdleSeconds,
    },
    subnetSources: options.clientSubnetSources ?? [],
    isResolver: options.isResolver ?? false,
    log: createAnswerLog(shared, options),
  };
}

/** What holds for all answers of a batch. */
function beginBatch({ state, log }: Tools): void {
  const { control } = state.view;
  state.turns?.clear();
  state.nowSeconds = control[CONTROL.CLOCK_SECONDS]!;
  enterLog(log, control);
  if (!state.forwards) return;
  state.defaultRoute = control[CONTROL.DEFAULT_ROUTE]!;
  refreshCache(state.cache);
}

/** Answers `state.query`, which was read. */
function answerRead(
  tools: Tools,
  room: number,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
): number {
  const { state, counters, edns, log } = tools;
  const { query } = state;
  if (log.isOn) beginLog(log);
  startAnswer(state);
  if (query.read === READ.SILENCE) {
    counters[COUNTER.SILENT]! += 1;
    return 0;
  }
  const isForOther = state.handsOver && isForPrimary(state);
  if (isForOther && state.lackError < 0) {
    state.need.route = ROUTE.PRIMARY;
    return TAKEN;
  }
  noteClient(state, address, addressOffset, addressLength);
  if (query.subnetAt !== 0) takeSubnet(state, tools.subnetSources);
  const isQuery = query.read === READ.QUERY && !isForOther;
  if (!isQuery) refuseUnread(query, isForOther ? RCODE.SERVFAIL : unreadRcode(query));
  const size = Math.min(room, sizeLimit(query, edns.maxUdpSize)) - state.signatureBytes;
  query.limit = query.start + size - optLength(query, edns);
  if (isQuery) {
    if (query.cookieLength > 0) makeCookie(tools, address, addressOffset, addressLength);
    if (answerQuery(state, edns, counters)) {
      restoreQuery(state);
      if (!tools.isResolver) counters[COUNTER.CACHE_MISSES]! += 1;
      return TAKEN;
    }
  }
  if (state.trace !== undefined) traceResult(state);
  putOpt(query, edns, state.signatureBytes);
  putHeader(query, state.headerFlags);
  if (query.truncated) counters[COUNTER.TRUNCATED]! += 1;
  if (state.isBlocked) counters[COUNTER.BLOCKED]! += 1;
  if (state.isRecursionRefused) counters[COUNTER.RECURSION_REFUSED]! += 1;
  if (state.cacheUse !== CACHE_USE.NONE && state.lackError < 0) countCached(tools, counters);
  counters[queryPlace(query.transport, query.hasQuestion ? typeClass(query.type) : 0, query.rcode)]! += 1;
  if (log.isOn) logAnswer(log, state, address, addressOffset, addressLength);
  return query.at - query.start;
}

/** To the resolver a query comes because it was no hit; that its answer is a stale one shows there alone. */
function countCached({ isResolver, state }: Tools, counters: Float64Array): void {
  if (!isResolver) counters[COUNTER.CACHE_HITS]! += 1;
  if (state.cacheUse === CACHE_USE.STALE) counters[COUNTER.CACHE_STALE]! += 1;
}

function makeCookie(
  { state, cookies }: Tools,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
): void {
  const { query, view, nowSeconds } = state;
  answerCookie(
    cookies,
    view.control,
    CONTROL.COOKIE_SECRET,
    CONTROL.COOKIE_SECRET_BEFORE,
    query.cookie,
    query.cookieLength,
    address,
    addressOffset,
    addressLength,
    nowSeconds,
  );
}

function traceResult({ query, trace }: AnswerState): void {
  const { rcode, truncated: isTruncated, answers } = query;
  trace?.({ kind: "result", rcode, isTruncated, answers });
}

/** The most bytes that the client takes (RFC 1035 section 4.2.1, RFC 6891 section 6.2.5). */
function sizeLimit(query: Query, maxUdpSize: number): number {
  if (query.transport !== TRANSPORT.UDP) return 65_535;
  if (!query.hasEdns) return SMALLEST_UDP_SIZE;
  return Math.min(Math.max(query.udpSize, SMALLEST_UDP_SIZE), maxUdpSize);
}

/** Answers a message that is a query in form. Returns true where the cache lacks something of the answer. */
function answerQuery(state: AnswerState, edns: EdnsOptions, counters: Float64Array): boolean {
  const { query } = state;
  query.at = query.questionEnd;
  if (query.ednsVersion > 0) {
    query.rcode = RCODE.BADVERS;
    return false;
  }
  // Only a cookie is asked for (RFC 7873 section 5.4).
  if (!query.hasQuestion) return false;
  const refusal = refusalOf(query);
  if (refusal !== RCODE.NOERROR) {
    query.rcode = refusal;
    return false;
  }
  if (query.class === CLASS.CH) {
    answerChaos(query, edns.nodeId);
    return false;
  }
  let taken = answerQuestion(state);
  for (let repeat = 0; repeat < REPEATS_MAX && !taken && !zonesUnchanged(state); repeat++) {
    counters[COUNTER.REPEATED]! += 1;
    state.trace?.({ kind: "again" });
    taken = answerAgain(state);
  }
  return taken;
}

/** Where the query is written over and was not kept, nobody can be given it who would see to what is lacking now. */
function answerAgain(state: AnswerState): boolean {
  const { lackError } = state;
  if (lackError < 0 && !isQueryWhole(state)) state.lackError = EDE.OTHER;
  startAgain(state);
  const taken = answerQuestion(state);
  state.lackError = lackError;
  return taken;
}

/** The client's region is known already, and so the scope that it gave the answer stays. */
function startAgain(state: AnswerState): void {
  const { query } = state;
  state.cacheUse = CACHE_USE.NONE;
  state.isBlocked = false;
  state.isOverridden = false;
  state.isRecursionRefused = false;
  query.zone = 0;
  query.elsewhere = -1;
  query.at = query.questionEnd;
  query.answers = 0;
  query.authorities = 0;
  query.additionals = 0;
  query.rcode = RCODE.NOERROR;
  query.truncated = false;
  query.authoritative = false;
  query.extendedError = -1;
}

/** The rcode for what we do not serve whatever the name is; NOERROR where the name decides. */
function refusalOf(query: Query): number {
  // Inbound NOTIFY: there are no secondary zones here.
  if (query.opcode === OPCODE.NOTIFY) return RCODE.REFUSED;
  switch (query.type) {
    // They are no types of data that a question could ask for (RFC 6891 section 6.1.1, RFC 8945 section 4.2).
    case RRTYPE.OPT:
    case RRTYPE.TSIG:
      return RCODE.FORMERR;
    case RRTYPE.TKEY:
    case RRTYPE.IXFR:
    case RRTYPE.MAILA:
    case RRTYPE.MAILB:
      return RCODE.NOTIMP;
    case RRTYPE.AXFR:
      // Over UDP there are no transfers (RFC 5936 section 4.2); NSD and Knot say so by this too.
      if (query.transport === TRANSPORT.UDP) return RCODE.NOTIMP;
      query.extendedError = EDE.PROHIBITED;
      return RCODE.REFUSED;
    default:
  }
  if (query.class !== CLASS.IN && query.class !== CLASS.ANY && query.class !== CLASS.CH) return RCODE.REFUSED;
  return RCODE.NOERROR;
}
