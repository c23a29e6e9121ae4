/** The steps of one record of a zone file: owner, TTL and class, type, and the TTL that it ends up with. */

import { CLASS, RRTYPE } from "./codes.ts";
import { isAbsoluteText, nameFaultText, writeName } from "./name.ts";
import type { RdataType } from "./rdata.ts";
import { isGeneric, rdataTypeOf, readGeneric } from "./rdata.ts";
import { readSeconds, TTL_SECONDS_MAX } from "./ttl.ts";
import { classFromBytes, isMetaType, isNamedType, typeFromBytes, typeToText } from "./type-names.ts";
import { failToken, quoteToken, type ZoneParser } from "./zone-parser.ts";
import { addLeftOut } from "./zone-report.ts";
import type { ZoneTokens } from "./zone-tokens.ts";

const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;
const LOWER_T = 0x74;
const WINDOWS_AGE = /^'\[(aging|age):\d+\]'$/i;

/** Reads the owner where the entry has one; else the one before it stays. False after an error. */
export function readOwner(parser: ZoneParser): boolean {
  const { tokens, input } = parser;
  if (!tokens.hasOwner) {
    if (parser.ownerIsBroken) return failToken(parser, 0, "inherits an owner that is in error");
    return parser.ownerLength > 0 || failToken(parser, 0, "no owner: no record before this one has one to inherit");
  }
  const start = tokens.starts[0]!;
  const end = tokens.ends[0]!;
  const isAbsolute = isAbsoluteText(tokens.text, start, end);
  parser.ownerIsBroken = true;
  if (!isAbsolute && parser.originIsBroken) return failToken(parser, 0, "relative to an $ORIGIN that is in error");
  const length = writeName(tokens.text, start, end, input.origin, input.originLength, parser.owner, 0);
  if (length < 0) return failToken(parser, 0, `owner ${quoteToken(tokens, 0)}: ${nameFaultText(length)}`);
  parser.ownerIsBroken = false;
  parser.ownerLength = length;
  parser.ownerIsAbsolute = isAbsolute || parser.originIsOfFile;
  return true;
}

/** Passes TTL and class, in either order, and the age that Windows DNS writes before them. False after an error. */
export function readTtlAndClass(parser: ZoneParser): boolean {
  const { tokens } = parser;
  const { text, starts, ends, quoted } = tokens;
  let at = tokens.hasOwner ? 1 : 0;
  let hasClass = false;
  parser.statedTtl = -1;
  for (; at < tokens.count && quoted[at] === 0; at++) {
    const start = starts[at]!;
    const end = ends[at]!;
    const first = text[start]!;
    if (first >= 0x30 && first <= 0x39) {
      if (!readTtl(parser, at)) return false;
      continue;
    }
    // In exports of Windows DNS: the hour of the last dynamic update, which is no part of the record.
    if (first === LEFT_BRACKET && text[end - 1] === RIGHT_BRACKET && WINDOWS_AGE.test(quoteToken(tokens, at))) continue;
    const code = end - start === 1 ? -1 : classFromBytes(text, start, end);
    if (code < 0) break;
    if (hasClass) return failToken(parser, at, "a second class");
    if (code !== CLASS.IN && !isTransactionSignature(tokens, at + 1)) {
      return failToken(parser, at, `class ${quoteToken(tokens, at)}: zones here are of class IN`);
    }
    hasClass = true;
  }
  if (parser.statedTtl >= 0) parser.lastTtl = parser.statedTtl;
  parser.typeToken = at;
  return true;
}

/** The type named by the token at `parser.typeToken`, or -1 after an error. */
export function readType(parser: ZoneParser): number {
  const { tokens, typeToken } = parser;
  const type = readTypeWord(tokens, typeToken);
  if (typeToken >= tokens.count) failToken(parser, typeToken, "the record has no type");
  else if (type < 0) failToken(parser, typeToken, `${quoteToken(tokens, typeToken)} is not a type`);
  else if (isMetaType(type) && type !== RRTYPE.TSIG) {
    failToken(parser, typeToken, `type ${typeToText(type)} is for messages, not for zones`);
    return -1;
  }
  return type;
}

/**
 * How the rdata of the current record is made, or undefined where its type is not one of ours. TYPE65401 is somebody's
 * private type; only the word ALIAS means ours.
 */
export function heldType(parser: ZoneParser, type: number): RdataType | undefined {
  const first = parser.tokens.text[parser.tokens.starts[parser.typeToken]!]!;
  return type === RRTYPE.ALIAS && (first | 0x20) === LOWER_T ? undefined : rdataTypeOf(type);
}

/** Lists a record of a type that zones here do not hold. A type without a name has generic rdata or is an error. */
export function leaveOut(parser: ZoneParser, type: number): void {
  const { tokens, input, report } = parser;
  if (!isNamedType(type) || type === RRTYPE.ALIAS) {
    if (!isGeneric(tokens, input.next)) {
      failToken(parser, input.next, `TYPE${type} needs generic rdata: \\# length hexadecimal`);
      return;
    }
    if (readGeneric(input) < 0) {
      failToken(parser, input.faultToken, input.fault);
      return;
    }
  }
  const name = type === RRTYPE.ALIAS ? `TYPE${type}` : typeToText(type);
  addLeftOut(
    report,
    tokens.lines[0]!,
    tokens.lineStarts[0]!,
    tokens.starts[0]! - tokens.quoted[0]!,
    parser.owner,
    name,
  );
}

/**
 * The TTL of the current record in seconds, or -1 after an error: its own, else that of $TTL (RFC 2308 section 4),
 * else the last one stated (RFC 1035 section 5.1). An SOA that has none of these takes its minimum, which is then the
 * default, as in BIND and Windows DNS.
 */
export function ttlOf(parser: ZoneParser, type: number, rdataLength: number): number {
  if (parser.statedTtl >= 0) return parser.statedTtl;
  if (parser.ttlIsBroken) {
    failToken(parser, 0, "no TTL: the $TTL before this record is in error");
    return -1;
  }
  if (parser.defaultTtl >= 0) return parser.defaultTtl;
  if (parser.lastTtl >= 0) return parser.lastTtl;
  if (type !== RRTYPE.SOA) {
    failToken(parser, 0, "no TTL: neither the record, nor $TTL, nor a record before it states one");
    return -1;
  }
  const minimum = new DataView(parser.input.rdata.buffer).getUint32(rdataLength - 4);
  parser.defaultTtl = Math.min(minimum, TTL_SECONDS_MAX);
  return parser.defaultTtl;
}

function readTtl(parser: ZoneParser, index: number): boolean {
  const { tokens } = parser;
  const seconds = readSeconds(tokens.text, tokens.starts[index]!, tokens.ends[index]!);
  if (seconds < 0) return failToken(parser, index, `${quoteToken(tokens, index)} is neither a TTL nor a type`);
  if (seconds > TTL_SECONDS_MAX) return failToken(parser, index, `TTL longer than ${TTL_SECONDS_MAX} seconds`);
  if (parser.statedTtl >= 0) return failToken(parser, index, "a second TTL");
  parser.statedTtl = seconds;
  return true;
}

/** Whether the first word that names a type is SOA; for entries that could not be read so far. */
export function looksLikeSoa(tokens: ZoneTokens): boolean {
  for (let at = tokens.hasOwner ? 1 : 0; at < tokens.count; at++) {
    const type = readTypeWord(tokens, at);
    if (type >= 0) return type === RRTYPE.SOA;
  }
  return false;
}

function readTypeWord(tokens: ZoneTokens, index: number): number {
  if (index >= tokens.count || tokens.quoted[index] === 1) return -1;
  return typeFromBytes(tokens.text, tokens.starts[index]!, tokens.ends[index]!);
}

/** `dig axfr -y` prints the TSIG records of its messages, of class ANY, among those of the zone. */
function isTransactionSignature(tokens: ZoneTokens, typeToken: number): boolean {
  return readTypeWord(tokens, typeToken) === RRTYPE.TSIG;
}
