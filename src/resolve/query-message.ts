/** The bytes of a question to an upstream, and whether what comes back is a response to it. */
import { CLASS, EDNS_OPTION, FLAG, RRTYPE } from "../dns/codes.ts";
import { HEADER_BYTES } from "../dns/message.ts";
import { LOWER } from "../dns/name.ts";
import { QUESTION_FLAG } from "../image/cache.ts";

export type QueryShape = {
  readonly id: number;
  /** Uncompressed wire name, in the case in which it is asked. */
  readonly name: Uint8Array;
  readonly type: number;
  /** Bits of QUESTION_FLAG. */
  readonly flags: number;
  readonly recursionDesired: boolean;
  readonly edns: EdnsShape | undefined;
};

export type EdnsShape = {
  readonly udpSize: number;
  /** Client cookie with the server's behind it, where that is known. */
  readonly cookie: Uint8Array | undefined;
  /** The message becomes a multiple of so many bytes (RFC 8467 section 4.1); 0: as long as it is. */
  readonly padding: number;
};

/** Header, name, type and class; OPT; a cookie of 40 bytes; padding. */
export const QUERY_BYTES_MAX = 512;

const OPT_BYTES = 11;
const OPTION_HEADER_BYTES = 4;
const OPCODE_MASK = 0x78;
const QR_BIT = 0x80;
const DNSSEC_OK = 0x8000;

/** Writes the query at the start of `target`, which has room for QUERY_BYTES_MAX; its length. */
export function writeQuery(target: Uint8Array, shape: QueryShape): number {
  const { id, name, type, flags, edns } = shape;
  target.fill(0, 0, HEADER_BYTES);
  put16(target, 0, id);
  const checkingDisabled = (flags & QUESTION_FLAG.CHECKING_DISABLED) === 0 ? 0 : FLAG.CD;
  put16(target, 2, (shape.recursionDesired ? FLAG.RD : 0) | checkingDisabled);
  put16(target, 4, 1);
  put16(target, 10, edns === undefined ? 0 : 1);
  target.set(name, HEADER_BYTES);
  const typeAt = HEADER_BYTES + name.length;
  put16(target, typeAt, type);
  put16(target, typeAt + 2, CLASS.IN);
  return edns === undefined ? typeAt + 4 : writeOpt(target, typeAt + 4, edns, flags);
}

function writeOpt(target: Uint8Array, start: number, edns: EdnsShape, flags: number): number {
  target[start] = 0;
  put16(target, start + 1, RRTYPE.OPT);
  put16(target, start + 3, edns.udpSize);
  put16(target, start + 5, 0);
  put16(target, start + 7, (flags & QUESTION_FLAG.DNSSEC_OK) === 0 ? 0 : DNSSEC_OK);
  let at = start + OPT_BYTES;
  if (edns.cookie !== undefined) {
    put16(target, at, EDNS_OPTION.COOKIE);
    put16(target, at + 2, edns.cookie.length);
    target.set(edns.cookie, at + OPTION_HEADER_BYTES);
    at += OPTION_HEADER_BYTES + edns.cookie.length;
  }
  if (edns.padding > 0) {
    const whole = Math.ceil((at + OPTION_HEADER_BYTES) / edns.padding) * edns.padding;
    put16(target, at, EDNS_OPTION.PADDING);
    put16(target, at + 2, whole - at - OPTION_HEADER_BYTES);
    target.fill(0, at + OPTION_HEADER_BYTES, whole);
    at = whole;
  }
  put16(target, start + 9, at - start - OPT_BYTES);
  return at;
}

/** What the first bytes of a message say about it. */
export type Match =
  /** The id and the question that were asked, or the id alone in a response that has no question. */
  | "response"
  | "no-question"
  /** The question, with letters in another case. */
  | "case"
  | "question"
  | "id"
  /** No response at all. */
  | "garbage";

/** Holds a message against the query: opcode QUERY, one question, and that the one asked in each of its bytes. */
export function matchResponse(bytes: Uint8Array, asked: Pick<QueryShape, "id" | "name" | "type">): Match {
  if (bytes.length < HEADER_BYTES || (bytes[2]! & (QR_BIT | OPCODE_MASK)) !== QR_BIT) return "garbage";
  if (get16(bytes, 0) !== asked.id) return "id";
  const questions = get16(bytes, 4);
  if (questions === 0) return "no-question";
  const { name } = asked;
  const typeAt = HEADER_BYTES + name.length;
  if (questions !== 1 || bytes.length < typeAt + 4) return "question";
  if (get16(bytes, typeAt) !== asked.type || get16(bytes, typeAt + 2) !== CLASS.IN) return "question";
  let isExact = true;
  for (let at = 0; at < name.length; at++) {
    const byte = bytes[HEADER_BYTES + at]!;
    if (byte === name[at]) continue;
    if (LOWER[byte] !== LOWER[name[at]!]) return "question";
    isExact = false;
  }
  return isExact ? "response" : "case";
}

/** TC of a message that has a header. */
export function isTruncated(bytes: Uint8Array): boolean {
  return (get16(bytes, 2) & FLAG.TC) !== 0;
}

/** The four bits of the header. */
export function headerRcode(bytes: Uint8Array): number {
  return bytes[3]! & 0xf;
}

function put16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value & 0xff;
}

function get16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}
