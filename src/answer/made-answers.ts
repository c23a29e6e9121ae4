/**
 * Answers that another thread makes, or that are made of more than image and cache: which messages they are for, and how those that
 * were made are counted and logged as all others are.
 */
import { CLASS, OPCODE, RRTYPE } from "../dns/codes.ts";
import { queryPlace, TRANSPORT, type Transport, typeClass } from "../image/counters.ts";
import { CONTROL, PRIMARY } from "../image/shared.ts";
import { type EdnsOptions, optLength, putOpt } from "./edns.ts";
import { putHeader, refuseUnread } from "./header.ts";
import { type AnswerLog, beginLog, logAnswer } from "./log-event.ts";
import { type Query, READ, readQuery } from "./query.ts";
import { type AnswerState, startAnswer } from "./state.ts";

/** What an answerer does for those who make answers. */
export type MadeAnswers = {
  /** From the next query on: so many bytes of each answer are left free, and whether it has all that is stored. */
  readonly setView: (signatureBytes: number, hasManagementView: boolean) => void;
  /**
   * As `answer` of an answerer, with header, question and OPT alone and this RCODE, below 16. All of `bytes` from `offset` on
   * may be written.
   */
  readonly answerWith: (
    bytes: Uint8Array,
    offset: number,
    length: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
    rcode: number,
  ) => number;
  /**
   * Counts and logs an answer that was not made here, to the query in bytes[offset, offset + length), over which it is written:
   * `bytes` has room for both.
   */
  readonly note: (
    bytes: Uint8Array,
    offset: number,
    length: number,
    answer: Uint8Array,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
  ) => void;
};

type MadeTools = {
  readonly state: AnswerState;
  readonly counters: Float64Array;
  readonly edns: EdnsOptions;
  readonly log: AnswerLog;
};

/** Whether the message is signed, or an update or a transfer that may be served. */
export function isForPrimary({ query, view }: AnswerState): boolean {
  if (query.hasTsig) return true;
  if (query.opcode === OPCODE.UPDATE) {
    return query.read === READ.HEADER_ONLY && (view.control[CONTROL.PRIMARY]! & PRIMARY.UPDATES) !== 0;
  }
  if (query.type !== RRTYPE.AXFR || query.read !== READ.QUERY || query.opcode !== OPCODE.QUERY) return false;
  // Over UDP there is none (RFC 5936 section 4.2), and an answer over HTTPS is one message (RFC 8484 section 4.2).
  if (query.transport !== TRANSPORT.TCP && query.transport !== TRANSPORT.DOT) return false;
  return query.class === CLASS.IN && (view.control[CONTROL.PRIMARY]! & PRIMARY.TRANSFERS) !== 0;
}

/** `alone` is what queries are read into, `seed` the start of its name's hashes. */
export function createMadeAnswers(tools: MadeTools, alone: Query, seed: number): MadeAnswers {
  const { state } = tools;

  function answerWith(
    bytes: Uint8Array,
    offset: number,
    length: number,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
    rcode: number,
  ): number {
    readQuery(alone, bytes, offset, offset + length, seed);
    state.query = alone;
    alone.transport = transport;
    refuseUnread(alone, rcode);
    alone.limit = bytes.length - state.signatureBytes - optLength(alone, tools.edns);
    putOpt(alone, tools.edns, state.signatureBytes);
    putHeader(alone, 0);
    return noteMade(tools, alone.at - offset, address, addressOffset, addressLength);
  }

  function note(
    bytes: Uint8Array,
    offset: number,
    length: number,
    made: Uint8Array,
    address: Uint8Array,
    addressOffset: number,
    addressLength: number,
    transport: Transport,
  ): void {
    readQuery(alone, bytes, offset, offset + length, seed);
    state.query = alone;
    alone.transport = transport;
    bytes.set(made, offset);
    noteMade(tools, made.length, address, addressOffset, addressLength);
  }

  return {
    setView: (signatureBytes, hasManagementView) => {
      state.signatureBytes = signatureBytes;
      state.hasManagementView = hasManagementView;
    },
    answerWith,
    note,
  };
}

/** Counts and logs the answer of `length` bytes that stands over `state.query`, which was read. */
function noteMade(
  { state, counters, log }: MadeTools,
  length: number,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
): number {
  const { query } = state;
  if (log.isOn) beginLog(log);
  startAnswer(state);
  state.zoneCount = 0;
  query.rcode = query.data.getUint16(query.start + 2) & 15;
  query.answers = query.data.getUint16(query.start + 6);
  query.at = query.start + length;
  counters[queryPlace(query.transport, query.hasQuestion ? typeClass(query.type) : 0, query.rcode)]! += 1;
  if (log.isOn) logAnswer(log, state, address, addressOffset, addressLength);
  return length;
}
