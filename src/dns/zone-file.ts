/**
 * Zone files (RFC 1035 section 5) into wire records, one pass over bytes. What an operator's tools write is read as
 * they mean it: BIND, Windows DNS exports, the output of `dig axfr`. An error costs its record and no other.
 * `$INCLUDE` and `$GENERATE` are refused: a zone here is what its text shows.
 */

import { RRTYPE } from "./codes.ts";
import { isAbsoluteText, isSubdomain, nameFaultText, namesEqual, nameToText, writeName } from "./name.ts";
import { isGeneric, readRdata } from "./rdata.ts";
import { readSeconds, TTL_SECONDS_MAX } from "./ttl.ts";
import {
  failToken,
  OWNER_BUFFER_BYTES,
  openParser,
  quoteToken,
  type ZoneFileOptions,
  type ZoneParser,
} from "./zone-parser.ts";
import { heldType, leaveOut, looksLikeSoa, readOwner, readTtlAndClass, readType, ttlOf } from "./zone-record.ts";
import { addError, type ZoneFileReport } from "./zone-report.ts";
import { columnOf, ENTRY, readEntry } from "./zone-tokens.ts";

const DOLLAR = 0x24;
const UTF16_NAME = "the file is UTF-16: save it as UTF-8";

/**
 * Parses a whole file and hands each good record to `options.onRecord` in file order. Never throws on what the file
 * holds: the report has the errors. Rules between records (CNAME beside other types...) are the caller's.
 */
export function parseZoneFile(text: Uint8Array, options: ZoneFileOptions): ZoneFileReport {
  const parser = openParser(text, options);
  if ((text[0] === 0xff && text[1] === 0xfe) || (text[0] === 0xfe && text[1] === 0xff)) {
    addError(parser.report, 1, 0, 0, UTF16_NAME);
    noteSoaError(parser);
    return finishReport(parser);
  }
  let more = true;
  while (more) more = readNext(parser);
  if (parser.soa === undefined && parser.soaError === undefined) {
    addError(parser.report, parser.tokens.line, text.length, text.length, "the file has no SOA record");
    noteSoaError(parser);
  }
  return finishReport(parser);
}

function finishReport(parser: ZoneParser): ZoneFileReport {
  const { report, soa } = parser;
  return {
    origin: soa?.owner,
    soaIsAbsolute: soa?.isAbsolute ?? false,
    soaError: soa === undefined ? parser.soaError : undefined,
    records: parser.records,
    errors: report.errors,
    errorsOmitted: report.errorsOmitted,
    leftOut: report.leftOut,
    leftOutOmitted: report.leftOutOmitted,
  };
}

/** Reads one entry; false at the end of the text. */
function readNext(parser: ZoneParser): boolean {
  const { tokens } = parser;
  const outcome = readEntry(tokens);
  if (outcome === ENTRY.END) return false;
  if (outcome === ENTRY.FAULT) {
    addError(parser.report, tokens.faultLine, tokens.faultLineStart, tokens.faultAt, tokens.fault);
    // The line may have named an owner, and the next lines would inherit the one before it.
    if (tokens.hasOwner) parser.ownerIsBroken = true;
  } else if (tokens.hasOwner && tokens.quoted[0] === 0 && tokens.text[tokens.starts[0]!] === DOLLAR) {
    readDirective(parser);
  } else {
    readRecord(parser);
  }
  return true;
}

function readDirective(parser: ZoneParser): void {
  const { tokens } = parser;
  switch (quoteToken(tokens, 0).toUpperCase()) {
    case "'$ORIGIN'":
      parser.originIsBroken = !readOrigin(parser);
      break;
    case "'$TTL'":
      parser.ttlIsBroken = !readDefaultTtl(parser);
      break;
    case "'$INCLUDE'":
      failToken(parser, 0, "$INCLUDE is refused: put the records of the other file in this one");
      break;
    case "'$GENERATE'":
      failToken(parser, 0, "$GENERATE is refused: write its records out");
      break;
    default:
      failToken(parser, 0, `unknown directive ${quoteToken(tokens, 0)}`);
  }
}

function readOrigin(parser: ZoneParser): boolean {
  const { tokens, input } = parser;
  if (!hasOneArgument(parser, "$ORIGIN", "a domain name")) return false;
  const start = tokens.starts[1]!;
  const end = tokens.ends[1]!;
  const isAbsolute = isAbsoluteText(tokens.text, start, end);
  if (!isAbsolute && parser.originIsBroken) return failToken(parser, 1, "relative to an $ORIGIN that is in error");
  const name = new Uint8Array(OWNER_BUFFER_BYTES);
  const length = writeName(tokens.text, start, end, input.origin, input.originLength, name, 0);
  if (length < 0) return failToken(parser, 1, `$ORIGIN: ${nameFaultText(length)}`);
  parser.originIsOfFile = isAbsolute || parser.originIsOfFile;
  input.origin = name;
  input.originLength = length;
  return true;
}

function readDefaultTtl(parser: ZoneParser): boolean {
  const { tokens } = parser;
  if (!hasOneArgument(parser, "$TTL", "a time")) return false;
  const seconds = readSeconds(tokens.text, tokens.starts[1]!, tokens.ends[1]!);
  if (seconds < 0) return failToken(parser, 1, `$TTL: ${quoteToken(tokens, 1)} is not a time`);
  if (seconds > TTL_SECONDS_MAX) return failToken(parser, 1, `$TTL: longer than ${TTL_SECONDS_MAX} seconds`);
  parser.defaultTtl = seconds;
  return true;
}

function hasOneArgument(parser: ZoneParser, directive: string, argument: string): boolean {
  const { count, quoted } = parser.tokens;
  if (count === 1) return failToken(parser, 1, `${directive} needs ${argument}`);
  if (count > 2) return failToken(parser, 2, `${directive} takes one argument`);
  return quoted[1] === 0 || failToken(parser, 1, `${directive}: quoted text where ${argument} belongs`);
}

/** The error just reported is why the file has no SOA, unless there is a reason already. */
function noteSoaError(parser: ZoneParser): void {
  parser.soaError ??= parser.report.lastError;
}

function readRecord(parser: ZoneParser): void {
  const { input } = parser;
  const type = readOwner(parser) && readTtlAndClass(parser) ? readType(parser) : -1;
  if (type < 0) {
    if (looksLikeSoa(parser.tokens)) noteSoaError(parser);
    return;
  }
  input.next = parser.typeToken + 1;
  const rdataType = heldType(parser, type);
  if (rdataType === undefined) {
    leaveOut(parser, type);
    return;
  }
  const { originLength } = input;
  // With an $ORIGIN in error a relative name fails for want of an origin, and an absolute one stands.
  if (parser.originIsBroken) input.originLength = 0;
  const rdataLength = readRdata(rdataType, input);
  input.originLength = originLength;
  if (rdataLength < 0) failToken(parser, input.faultToken, input.fault);
  const ttl = rdataLength < 0 ? -1 : ttlOf(parser, type, rdataLength);
  if (type === RRTYPE.SOA) {
    if (ttl >= 0) takeSoa(parser, ttl, rdataLength);
    else noteSoaError(parser);
  } else if (ttl >= 0) {
    takeRecord(parser, type, ttl, rdataLength);
  }
}

function takeRecord(parser: ZoneParser, type: number, ttl: number, rdataLength: number): void {
  if (parser.zone === undefined && !parser.zoneIsSought) {
    parser.zone = findZone(parser);
    parser.zoneIsSought = true;
    if (parser.zone !== undefined) parser.options.onZone?.(parser.zone);
  }
  const { zone, owner, ownerLength } = parser;
  if (zone !== undefined && !isSubdomain(owner, zone, ownerLength)) {
    failToken(parser, 0, `owner ${nameToText(owner)} is outside of the zone ${nameToText(zone)}`);
    return;
  }
  emit(parser, type, ttl, rdataLength);
}

/** Takes the zone's SOA. One that equals it again is how the output of `dig axfr` ends. */
function takeSoa(parser: ZoneParser, ttl: number, rdataLength: number): void {
  const { input, soa } = parser;
  const owner = parser.owner.slice(0, parser.ownerLength);
  const rdata = input.rdata.slice(0, rdataLength);
  if (soa !== undefined) {
    const isSame = namesEqual(owner, soa.owner) && rdata.every((byte, at) => byte === soa.rdata[at]);
    if (!isSame) failToken(parser, 0, "a second SOA record: a file holds one zone");
    return;
  }
  parser.soa = { owner, rdata, isAbsolute: parser.ownerIsAbsolute && hasAbsoluteNames(parser) };
  if (parser.zone === undefined) parser.options.onZone?.(owner);
  parser.zone = owner;
  emit(parser, RRTYPE.SOA, ttl, rdataLength);
}

/** True where mname and rname of the SOA in hand owe nothing to the caller's origin. */
function hasAbsoluteNames(parser: ZoneParser): boolean {
  const { tokens, typeToken } = parser;
  if (parser.originIsOfFile || isGeneric(tokens, typeToken + 1)) return true;
  const { text, starts, ends } = tokens;
  const mname = typeToken + 1;
  const rname = typeToken + 2;
  return isAbsoluteText(text, starts[mname]!, ends[mname]!) && isAbsoluteText(text, starts[rname]!, ends[rname]!);
}

function emit(parser: ZoneParser, type: number, ttl: number, rdataLength: number): void {
  const { tokens, options, owner, ownerLength, input } = parser;
  const column = columnOf(tokens.text, tokens.lineStarts[0]!, tokens.starts[0]! - tokens.quoted[0]!);
  parser.records++;
  options.onRecord(owner, ownerLength, type, ttl, input.rdata, rdataLength, tokens.lines[0]!, column);
}

/**
 * The owner of the first good SOA of a file that starts with other records, by a pass of its own: so a record outside
 * of the zone never reaches the sink.
 */
function findZone(parser: ZoneParser): Uint8Array | undefined {
  const { origin } = parser.options;
  const search = openParser(parser.tokens.text, { ...(origin === undefined ? {} : { origin }), onRecord: () => {} });
  search.zoneIsSought = true;
  while (search.soa === undefined && readNext(search));
  return search.soa?.owner;
}
