/** Tells the query log and debug capture of an answer. Nothing here waits, and nothing is told while nobody wants it. */
import { CLASS, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { COUNTER, threadCounters } from "../image/counters.ts";
import {
  beginEvent,
  EVENT,
  type EventRing,
  endEvent,
  eventBytes,
  eventRing,
  SOURCE,
  TRAIT,
  WANTED,
} from "../image/events.ts";
import { CONTROL, type SharedImage } from "../image/shared.ts";
import { copyBytes } from "../image/view.ts";
import { CACHE_USE } from "./hit.ts";
import { type Query, READ } from "./query.ts";
import type { AnswerState } from "./state.ts";

/** To be set before a query is answered, where it is known. */
export type Client = {
  port: number;
  /** When the query was taken, on performance's clock, where that was before it is answered; 0: it was not. */
  takenMs: number;
};

export type AnswerLog = {
  readonly ring: EventRing;
  readonly counters: Float64Array;
  readonly client: Client;
  readonly isWanted: boolean;
  readonly hasSocketNames: boolean;
  readonly isResolver: boolean;
  /** One in so many queries is wanted, 0: none; for this batch. */
  every: number;
  isCaptured: boolean;
  /** The whole answer is wanted. */
  wantsMessages: boolean;
  isOn: boolean;
  /** Queries since the last one that was sampled. */
  count: number;
  /** When answering began, on performance's clock. */
  beganMs: number;
};

type LogOptions = {
  readonly thread: number;
  readonly logs?: "socket-names" | "addresses";
  readonly isResolver?: boolean;
};

/** See AnswererOptions. */
export function createAnswerLog(shared: SharedImage, { thread, logs, isResolver = false }: LogOptions): AnswerLog {
  return {
    ring: eventRing(shared, thread),
    counters: threadCounters(shared, thread),
    client: { port: 0, takenMs: 0 },
    isWanted: logs !== undefined,
    hasSocketNames: logs === "socket-names",
    isResolver,
    every: 0,
    isCaptured: false,
    wantsMessages: false,
    isOn: false,
    count: 0,
    beganMs: 0,
  };
}

/** For a batch: looks at what is wanted. */
export function enterLog(log: AnswerLog, control: Int32Array): void {
  log.every = control[CONTROL.LOG_EVERY]!;
  log.isCaptured = control[CONTROL.CAPTURE]! !== 0;
  log.isOn = log.isWanted && (log.every !== 0 || log.isCaptured);
  if (log.isOn) log.wantsMessages = control[CONTROL.LOG_MESSAGES]! !== 0;
}

/** A query is about to be answered. The clock is read for those alone that are told of. */
export function beginLog(log: AnswerLog): void {
  if (log.isCaptured || log.count + 1 >= log.every) log.beganMs = performance.now();
}

/** Tells of the answer to `state.query`, which is complete. */
export function logAnswer(
  log: AnswerLog,
  state: AnswerState,
  address: Uint8Array,
  addressOffset: number,
  addressLength: number,
): void {
  let wanted: number = log.isCaptured ? WANTED.CAPTURED : 0;
  if (log.every !== 0 && ++log.count >= log.every) {
    log.count = 0;
    wanted |= WANTED.SAMPLED;
  }
  if (wanted === 0) return;
  const { query } = state;
  const { ring, client } = log;
  const wholeBytes = query.at - query.start;
  const messageBytes =
    log.wantsMessages && (wanted & WANTED.SAMPLED) !== 0 ? wholeBytes : query.questionEnd - query.start;
  const length = eventBytes(messageBytes);
  const at = beginEvent(ring, length);
  if (at < 0) {
    log.counters[COUNTER.EVENTS_DROPPED]! += 1;
    return;
  }
  const { data, bytes } = ring;
  data.setUint32(at + EVENT.LENGTH, length, true);
  bytes[at + EVENT.WANTED] = wanted;
  bytes[at + EVENT.TRANSPORT] = query.transport;
  bytes[at + EVENT.ADDRESS_BYTES] = addressLength;
  bytes[at + EVENT.SOURCES] = sourcesOf(log, state);
  data.setFloat64(at + EVENT.TIME, Date.now(), true);
  const sinceMs = client.takenMs === 0 ? log.beganMs : client.takenMs;
  data.setUint32(at + EVENT.MICROS, (performance.now() - sinceMs) * 1_000, true);
  const port = log.hasSocketNames ? portBefore(address, addressOffset, addressLength) : client.port;
  data.setUint16(at + EVENT.PORT, port, true);
  data.setUint16(at + EVENT.FLAGS, query.data.getUint16(query.start + 2), true);
  data.setUint16(at + EVENT.RCODE, query.rcode, true);
  data.setUint16(at + EVENT.EXTENDED_ERROR, query.extendedError + 1, true);
  data.setUint16(at + EVENT.ANSWERS, query.answers, true);
  data.setUint16(at + EVENT.ANSWER_BYTES, wholeBytes, true);
  data.setUint16(at + EVENT.MESSAGE_BYTES, messageBytes, true);
  putAsked(data, at, query);
  for (let index = 0; index < addressLength; index++)
    bytes[at + EVENT.ADDRESS + index] = address[addressOffset + index]!;
  copyBytes(data, at + EVENT.MESSAGE, query.data, query.start, messageBytes);
  endEvent(ring, at, length);
}

function putAsked(data: DataView, at: number, query: Query): void {
  const { hasQuestion, hasEdns } = query;
  let traits: number = hasQuestion ? TRAIT.QUESTION : 0;
  if (hasEdns) traits |= TRAIT.EDNS;
  if (hasEdns && query.dnssecOk) traits |= TRAIT.DNSSEC_OK;
  data.setUint8(at + EVENT.TRAITS, traits);
  data.setUint16(at + EVENT.TYPE, hasQuestion ? query.type : 0, true);
  data.setUint16(at + EVENT.CLASS, hasQuestion ? query.class : 0, true);
  data.setUint16(at + EVENT.EDNS_BYTES, hasEdns ? query.udpSize : 0, true);
}

/** The port of a sockaddr_in or sockaddr_in6: its second word, in network order. */
function portBefore(address: Uint8Array, offset: number, length: number): number {
  const at = length === 4 ? offset - 2 : offset - 6;
  return (address[at]! << 8) | address[at + 1]!;
}

function sourcesOf({ isResolver }: AnswerLog, state: AnswerState): number {
  const { query, cacheUse } = state;
  if (isServersOwn(query)) return SOURCE.SERVER;
  if (query.rcode === RCODE.REFUSED) return SOURCE.REFUSED;
  // No name was looked up for it.
  if (query.type === RRTYPE.AXFR) return SOURCE.ZONE;
  let sources = state.isOverridden ? SOURCE.OVERRIDE : 0;
  // The overrides are noted as the first zone wherever there are any.
  if (state.zoneCount > (state.overrides === 0 ? 0 : 1)) sources |= SOURCE.ZONE;
  if (state.isBlocked) sources |= SOURCE.BLOCKED;
  if (cacheUse === CACHE_USE.STALE) return sources | SOURCE.STALE;
  // A signed query comes to the resolver whether or not anything is lacking.
  if (state.signatureBytes > 0 && cacheUse === CACHE_USE.NONE && state.lackError < 0) return sources;
  // What the cache has for one that was waited for, an upstream has just said.
  if (isResolver) return sources | SOURCE.FORWARDED;
  return cacheUse === CACHE_USE.NONE ? sources : sources | SOURCE.CACHE;
}

/** Whether no name decided about the answer. */
function isServersOwn({ read, opcode, hasQuestion, class: asked, rcode }: Query): boolean {
  if (read !== READ.QUERY || opcode !== OPCODE.QUERY || !hasQuestion || asked === CLASS.CH) return true;
  // NOTAUTH is about a signature (RFC 8945 section 5.2), or a zone that is not here.
  const isOwn = rcode === RCODE.BADVERS || rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP;
  return isOwn || rcode === RCODE.NOTAUTH;
}
