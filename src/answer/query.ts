/**
 * A query while it is answered: what was asked, and how far the answer is. A thread has one for each place of a batch and
 * fills it again for every query, so that answering allocates nothing.
 *
 * The answer is written over the query, in the same bytes: header and question stay where they are, and everything else of
 * the query is read before anything is written behind them.
 */
import { EDNS_OPTION, FLAG, OPCODE, RRTYPE } from "../dns/codes.ts";
import { QUESTION_FLAG } from "../image/cache.ts";
import { createNameKey, type NameKey, readNameKey } from "../image/name-key.ts";
import type { Spelled } from "./spelled.ts";

/** What reading a message came to. */
export const READ = {
  /** No query: nothing is sent back. */
  SILENCE: 0,
  /** A query of a known form. */
  QUERY: 1,
  /** An opcode whose form nobody here knows: the header alone is meaningful. */
  HEADER_ONLY: 2,
  /** Not what RFC 1035 section 4 lets a query be. */
  MALFORMED: 3,
} as const;
export type Read = (typeof READ)[keyof typeof READ];

export type Query = {
  bytes: Uint8Array;
  /** Over the same memory, at the same offsets: several bytes at a time. */
  data: DataView;
  /** The message is bytes[start, end); offsets in compression pointers count from `start`. */
  start: number;
  end: number;
  /** Big-endian flag word of the query's header. */
  flags: number;
  opcode: number;
  /** Offset behind the question; the header's end where there is none. */
  questionEnd: number;
  readonly name: NameKey;
  /** The same name as a part of the answer. */
  readonly question: Spelled;
  /** What reading it came to. */
  read: Read;
  /** Body of the zone that was found for the name ahead of answering, and its apex; 0 where none was. */
  zone: number;
  apexLabel: number;
  /** Where no zone of ours was found: the route that was, 0 for none; -1: nothing was sought. Its name is at `apexLabel`. */
  elsewhere: number;
  /** Where the batch notes what was found ahead of answering. */
  slot: number;
  type: number;
  class: number;
  hasQuestion: boolean;

  /** EDNS (RFC 6891): whether the query carried an OPT RR, and what it said. */
  hasEdns: boolean;
  ednsVersion: number;
  udpSize: number;
  dnssecOk: boolean;
  wantsNsid: boolean;
  wantsKeepalive: boolean;
  /** The query was padded (RFC 7830), and so is its answer where the transport is encrypted. */
  wantsPadding: boolean;
  /** Its additional section has a signature (RFC 8945), in whatever place. */
  hasTsig: boolean;
  /** Bytes of the COOKIE option that were sent, 0 for none: 8, or 16 to 40. `cookie` has whole words of them. */
  cookieLength: number;
  readonly cookie: Int32Array;

  /** Where the data of a CLIENT_SUBNET option stands in the query, 0 for none, and its bytes. */
  subnetAt: number;
  subnetBytes: number;
  /** Of one that is believed: bytes of the option's data in the answer, 0 for none, and what it says (RFC 7871 section 6). */
  subnetLength: number;
  subnetFamily: number;
  subnetSource: number;
  subnetScope: number;
  /** Its address, with zeros behind the prefix. */
  readonly subnet: Uint8Array;

  transport: number;

  /** Next byte of the answer, and the first that records may not use. */
  at: number;
  limit: number;
  answers: number;
  authorities: number;
  additionals: number;
  authoritative: boolean;
  truncated: boolean;
  rcode: number;
  /** Extended DNS Error to tell, -1 for none. */
  extendedError: number;
};

const NO_BYTES = new Uint8Array(0);

/** A thread answers in the few buffers of its sockets, again and again. */
const DATA_OF = new WeakMap<Uint8Array, DataView>();

/** Sets the memory that the message lies in. */
export function setMemory(query: Query, bytes: Uint8Array): void {
  if (query.bytes === bytes) return;
  let data = DATA_OF.get(bytes);
  if (data === undefined) {
    data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    DATA_OF.set(bytes, data);
  }
  query.bytes = bytes;
  query.data = data;
}

export function createQuery(): Query {
  const name = createNameKey();
  return {
    bytes: NO_BYTES,
    data: new DataView(NO_BYTES.buffer),
    start: 0,
    end: 0,
    flags: 0,
    opcode: 0,
    questionEnd: 0,
    name,
    question: { key: name, at: 0, literal: 0, restAt: 0, reach: 0 },
    read: READ.SILENCE,
    zone: 0,
    apexLabel: 0,
    elsewhere: -1,
    slot: 0,
    type: 0,
    class: 0,
    hasQuestion: false,
    hasEdns: false,
    ednsVersion: 0,
    udpSize: 0,
    dnssecOk: false,
    wantsNsid: false,
    wantsKeepalive: false,
    wantsPadding: false,
    hasTsig: false,
    cookieLength: 0,
    cookie: new Int32Array(10),
    subnetAt: 0,
    subnetBytes: 0,
    subnetLength: 0,
    subnetFamily: 0,
    subnetSource: 0,
    subnetScope: 0,
    subnet: new Uint8Array(16),
    transport: 0,
    at: 0,
    limit: 0,
    answers: 0,
    authorities: 0,
    additionals: 0,
    authoritative: false,
    truncated: false,
    rcode: 0,
    extendedError: -1,
  };
}

const HEADER_LENGTH = 12;

/** Reads the message in bytes[start, end) into `query`. Anything may stand in those bytes. */
export function readQuery(query: Query, bytes: Uint8Array, start: number, end: number, seed: number): Read {
  const read = readMessage(query, bytes, start, end, seed);
  query.read = read;
  return read;
}

function readMessage(query: Query, bytes: Uint8Array, start: number, end: number, seed: number): Read {
  setMemory(query, bytes);
  query.start = start;
  query.end = end;
  query.questionEnd = start + HEADER_LENGTH;
  query.hasQuestion = false;
  query.zone = 0;
  query.elsewhere = -1;
  query.hasEdns = false;
  query.ednsVersion = 0;
  query.udpSize = 512;
  query.dnssecOk = false;
  query.wantsNsid = false;
  query.wantsKeepalive = false;
  query.wantsPadding = false;
  query.hasTsig = false;
  query.cookieLength = 0;
  query.subnetAt = 0;
  query.subnetLength = 0;
  query.type = 0;
  query.answers = 0;
  query.authorities = 0;
  query.additionals = 0;
  query.authoritative = false;
  query.truncated = false;
  query.rcode = 0;
  query.extendedError = -1;
  if (end - start < HEADER_LENGTH) return READ.SILENCE;
  const flags = query.data.getUint16(start + 2);
  if (flags >= 0x8000) return READ.SILENCE;
  query.flags = flags;
  query.opcode = (flags >>> 11) & 15;
  return readSections(query, seed);
}

/**
 * Reads to the end of the message even where it is wrong already, so that the answer can have an OPT RR where the query
 * has one (RFC 6891 section 6.1.1).
 */
function readSections(query: Query, seed: number): Read {
  const { bytes, data, start, end, opcode } = query;
  const isKnown = opcode === OPCODE.QUERY || opcode === OPCODE.NOTIFY;
  const questions = data.getUint16(start + 4);
  const others = data.getUint16(start + 6) + data.getUint16(start + 8);
  // Of an UPDATE it is the zone (RFC 2136 section 2.3).
  let at = readQuestions(query, questions, isKnown || opcode === OPCODE.UPDATE, seed);
  for (let left = others; left > 0 && at >= 0; left--) at = skipRecord(bytes, start, at, end);
  for (let left = data.getUint16(start + 10); left > 0 && at >= 0; left--) at = readAdditional(query, at);
  // The version goes before everything else that could be said of the query (RFC 6891 section 6.1.3).
  if (query.ednsVersion > 0 && at >= 0) return READ.QUERY;
  if (!isKnown) return READ.HEADER_ONLY;
  return at === end && isWellFormed(query, questions) ? READ.QUERY : READ.MALFORMED;
}

/** Reads the one question that there should be, and passes over any other. The offset behind them, or -1. */
function readQuestions(query: Query, questions: number, isRead: boolean, seed: number): number {
  const { bytes, data, start, end } = query;
  let at = start + HEADER_LENGTH;
  for (let left = questions; left > 0; left--) {
    const isOnly = questions === 1 && isRead;
    at = isOnly ? readNameKey(query.name, bytes, at, end, seed) : skipName(bytes, start, at, end);
    if (at < 0 || at + 4 > end) return -1;
    if (isOnly) {
      query.type = data.getUint16(at);
      query.class = data.getUint16(at + 2);
      query.questionEnd = at + 4;
      query.hasQuestion = true;
    }
    at += 4;
  }
  return at;
}

/** What a message with intact records must have besides. */
function isWellFormed(query: Query, questions: number): boolean {
  const { data, start } = query;
  // One question (RFC 9619); none only to ask for a cookie (RFC 7873 section 5.4).
  if (questions !== 1 && (questions !== 0 || query.cookieLength === 0)) return false;
  // A query has no answers; authority only asks for the changes since a SOA (RFC 1995 section 3).
  if (query.opcode !== OPCODE.QUERY) return true;
  // Who asks for a whole zone may have begun with that.
  if (query.type === RRTYPE.AXFR) return true;
  return data.getUint16(start + 6) === 0 && (data.getUint16(start + 8) === 0 || query.type === RRTYPE.IXFR);
}

/** The offset behind a possibly compressed name, or -1. Pointers lead backwards, so that none loops. */
function skipName(bytes: Uint8Array, start: number, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const size = bytes[at]!;
    if (size === 0) return at + 1;
    if (size >= 0xc0) {
      if (at + 2 > end) return -1;
      return start + (((size & 0x3f) << 8) | bytes[at + 1]!) < from ? at + 2 : -1;
    }
    if (size > 63) return -1;
    at += size + 1;
    if (at - from > 254) return -1;
  }
  return -1;
}

function skipRecord(bytes: Uint8Array, start: number, from: number, end: number): number {
  const at = skipName(bytes, start, from, end);
  if (at < 0 || at + 10 > end) return -1;
  const next = at + 10 + ((bytes[at + 8]! << 8) | bytes[at + 9]!);
  return next > end ? -1 : next;
}

function readAdditional(query: Query, from: number): number {
  const { bytes, data, start, end } = query;
  const at = skipName(bytes, start, from, end);
  if (at < 0 || at + 10 > end) return -1;
  const next = at + 10 + data.getUint16(at + 8);
  if (next > end) return -1;
  const type = data.getUint16(at);
  if (type !== RRTYPE.OPT) {
    if (type === RRTYPE.TSIG) query.hasTsig = true;
    return next;
  }
  // One OPT RR, owned by the root (RFC 6891 section 6.1.1).
  if (query.hasEdns || bytes[from] !== 0) return -1;
  query.hasEdns = true;
  query.udpSize = data.getUint16(at + 2);
  query.ednsVersion = bytes[at + 5]!;
  query.dnssecOk = bytes[at + 6]! >= 0x80;
  // Options of a version that nobody here knows may look different.
  if (query.ednsVersion !== 0) return next;
  return readOptions(query, at + 10, next) ? next : -1;
}

function readOptions(query: Query, from: number, end: number): boolean {
  const { data, cookie } = query;
  let at = from;
  while (at < end) {
    if (at + 4 > end) return false;
    const code = data.getUint16(at);
    const length = data.getUint16(at + 2);
    at += 4;
    if (at + length > end) return false;
    if (code === EDNS_OPTION.COOKIE) {
      // RFC 7873 section 5.2.2: a cookie of any other length is a format error.
      if (length !== 8 && (length < 16 || length > 40)) return false;
      if (query.cookieLength === 0) {
        query.cookieLength = length;
        for (let word = 0; word < length >>> 2; word++) cookie[word] = data.getInt32(at + word * 4, true);
      }
    } else if (code === EDNS_OPTION.NSID) query.wantsNsid = true;
    else if (code === EDNS_OPTION.TCP_KEEPALIVE) query.wantsKeepalive = true;
    else if (code === EDNS_OPTION.PADDING) query.wantsPadding = true;
    else if (code === EDNS_OPTION.CLIENT_SUBNET && query.subnetAt === 0) {
      query.subnetAt = at;
      query.subnetBytes = length;
    }
    at += length;
  }
  return true;
}

/** Bits of QUESTION_FLAG. */
export function questionFlags(query: Query): number {
  const dnssecOk = query.dnssecOk ? QUESTION_FLAG.DNSSEC_OK : 0;
  return (query.flags & FLAG.CD) === 0 ? dnssecOk : dnssecOk | QUESTION_FLAG.CHECKING_DISABLED;
}
