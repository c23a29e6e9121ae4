/**
 * The kinds of field that rdata is made of: each reads zone-file tokens into wire bytes, prints wire bytes as text and
 * checks wire bytes. A type is a list of these (rdata.ts).
 */

import { IPV4_BYTES, IPV6_BYTES, ipToText, writeIpv4, writeIpv6 } from "../base/ip.ts";
import { nameFaultText, nameLengthAt, nameToText, readEscape, writeName } from "./name.ts";
import { readDecimal, readSeconds, UINT32_MAX } from "./ttl.ts";
import type { ZoneTokens } from "./zone-tokens.ts";

export const RDATA_BYTES_MAX = 65_535;
export const STRING_BYTES_MAX = 255;

/** Where reading stands in the tokens of an entry, and the buffer that the wire form goes to. */
export type RdataInput = {
  readonly tokens: ZoneTokens;
  /** Index of the next token. */
  next: number;
  /** Completes relative names; length 0 means that there is none. */
  origin: Uint8Array;
  originLength: number;
  readonly rdata: Uint8Array;
  /** Why reading failed, and at which token. */
  fault: string;
  faultToken: number;
};

export type FieldKind = {
  /** Reads tokens from `input.next` on and writes at `offset`; gives the offset behind, or -1 with `input.fault` set. */
  readonly read: (input: RdataInput, offset: number) => number;
  /** The text of the field at `offset` of rdata that ends at `end`. The bytes have passed `measure`. */
  readonly print: (bytes: Uint8Array, offset: number, end: number) => string;
  /** Wire length of the field at `offset` of rdata that ends at `end`, or -1 where the bytes are not one. */
  readonly measure: (bytes: Uint8Array, offset: number, end: number) => number;
};

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BAD_ESCAPE = "bad escape: a backslash takes three digits up to 255, or one other character";

/** Sets the fault of `input` at token `index` and returns -1. */
export function failAt(input: RdataInput, index: number, fault: string): number {
  input.fault = fault;
  input.faultToken = index;
  return -1;
}

/** A domain name, completed by the origin where it is relative. */
export const NAME_FIELD: FieldKind = {
  read: (input, offset) => {
    const index = takeWord(input);
    if (index < 0) return -1;
    const { text, starts, ends } = input.tokens;
    const { origin, originLength, rdata } = input;
    const length = writeName(text, starts[index]!, ends[index]!, origin, originLength, rdata, offset);
    return length < 0 ? failAt(input, index, nameFaultText(length)) : offset + length;
  },
  print: (bytes, offset) => nameToText(bytes, offset),
  measure: nameLengthAt,
};

export const IPV4_FIELD: FieldKind = {
  read: (input, offset) => {
    const index = takeWord(input);
    if (index < 0) return -1;
    const { text, starts, ends } = input.tokens;
    if (!writeIpv4(text, starts[index]!, ends[index]!, input.rdata, offset)) {
      return failAt(input, index, "not an IPv4 address");
    }
    return offset + IPV4_BYTES;
  },
  print: (bytes, offset) => ipToText(bytes, offset, IPV4_BYTES),
  measure: (_bytes, offset, end) => (end - offset >= IPV4_BYTES ? IPV4_BYTES : -1),
};

export const IPV6_FIELD: FieldKind = {
  read: (input, offset) => {
    const index = takeWord(input);
    if (index < 0) return -1;
    const { text, starts, ends } = input.tokens;
    if (!writeIpv6(text, starts[index]!, ends[index]!, input.rdata, offset)) {
      return failAt(input, index, "not an IPv6 address");
    }
    return offset + IPV6_BYTES;
  },
  print: (bytes, offset) => ipToText(bytes, offset, IPV6_BYTES),
  measure: (_bytes, offset, end) => (end - offset >= IPV6_BYTES ? IPV6_BYTES : -1),
};

export const UINT8_FIELD = numberField(1, readDecimal);
export const UINT16_FIELD = numberField(2, readDecimal);
export const UINT32_FIELD = numberField(4, readDecimal);
/** 32 bits of seconds, written as a number or with units (`1h30m`). */
export const SECONDS_FIELD = numberField(4, readSeconds);

/** One or more character-strings up to the end of the rdata; a longer text becomes several of 255 bytes. */
export const STRINGS_FIELD: FieldKind = {
  read: (input, offset) => {
    if (input.next >= input.tokens.count) return failAt(input, input.next, "no text");
    let at = offset;
    while (input.next < input.tokens.count && at >= 0) {
      at = readText(input, input.next, at, true);
      input.next++;
    }
    return at;
  },
  print: (bytes, offset, end) => {
    const strings: string[] = [];
    for (let at = offset; at < end; at += bytes[at]! + 1) strings.push(quoteText(bytes, at + 1, at + 1 + bytes[at]!));
    return strings.join(" ");
  },
  measure: (bytes, offset, end) => {
    let at = offset;
    while (at < end) at += bytes[at]! + 1;
    return at === end && at > offset ? end - offset : -1;
  },
};

/** The property tag of CAA: 1 to 255 letters and digits behind their count (RFC 8659 section 4.1). */
export const TAG_FIELD: FieldKind = {
  read: (input, offset) => {
    const index = input.next;
    if (index >= input.tokens.count) return failAt(input, index, "missing");
    // NSD and Knot take it in quotes too.
    input.next = index + 1;
    const { text, starts, ends } = input.tokens;
    const start = starts[index]!;
    const length = ends[index]! - start;
    if (length === 0 || length > STRING_BYTES_MAX || !isAlphanumeric(text, start, start + length)) {
      return failAt(input, index, "not a tag of letters and digits");
    }
    input.rdata[offset] = length;
    for (let at = 0; at < length; at++) input.rdata[offset + 1 + at] = text[start + at]!;
    return offset + 1 + length;
  },
  print: (bytes, offset) => String.fromCharCode(...bytes.subarray(offset + 1, offset + 1 + bytes[offset]!)),
  measure: (bytes, offset, end) => {
    const length = offset < end ? bytes[offset]! : 0;
    if (length === 0 || offset + 1 + length > end) return -1;
    return isAlphanumeric(bytes, offset + 1, offset + 1 + length) ? length + 1 : -1;
  },
};

/** One text without a count, up to the end of the rdata. */
export const REST_FIELD: FieldKind = {
  read: (input, offset) => {
    if (input.next >= input.tokens.count) return failAt(input, input.next, "no text");
    const end = readText(input, input.next, offset, false);
    input.next++;
    return end;
  },
  print: (bytes, offset, end) => quoteText(bytes, offset, end),
  measure: (_bytes, offset, end) => end - offset,
};

function numberField(
  bytesWide: 1 | 2 | 4,
  readNumber: (text: Uint8Array, start: number, end: number, max: number) => number,
): FieldKind {
  const max = bytesWide === 4 ? UINT32_MAX : 2 ** (bytesWide * 8) - 1;
  return {
    read: (input, offset) => {
      const index = takeWord(input);
      if (index < 0) return -1;
      const { text, starts, ends } = input.tokens;
      const value = readNumber(text, starts[index]!, ends[index]!, max);
      if (value < 0) return failAt(input, index, `not a number from 0 to ${max}`);
      for (let at = 0; at < bytesWide; at++) input.rdata[offset + at] = value >>> ((bytesWide - 1 - at) * 8);
      return offset + bytesWide;
    },
    print: (bytes, offset) => {
      let value = 0;
      for (let at = offset; at < offset + bytesWide; at++) value = value * 256 + bytes[at]!;
      return String(value);
    },
    measure: (_bytes, offset, end) => (end - offset >= bytesWide ? bytesWide : -1),
  };
}

/** The index of the next token, an unquoted one, or -1: quotes are for text, as BIND and Knot have it. */
function takeWord(input: RdataInput): number {
  const index = input.next;
  if (index >= input.tokens.count) return failAt(input, index, "missing");
  if (input.tokens.quoted[index] === 1) return failAt(input, index, "quoted text where a plain word belongs");
  input.next = index + 1;
  return index;
}

/** Writes the token's text with its escapes resolved; with `counted`, as character-strings of at most 255 bytes. */
function readText(input: RdataInput, index: number, offset: number, counted: boolean): number {
  const { text, starts, ends } = input.tokens;
  const { rdata } = input;
  const end = ends[index]!;
  let countAt = offset;
  let at = counted ? offset + 1 : offset;
  for (let from = starts[index]!; from < end; from++) {
    let byte = text[from]!;
    if (byte === BACKSLASH) {
      const escaped = readEscape(text, from, end);
      if (escaped < 0) return failAt(input, index, BAD_ESCAPE);
      from += escaped >> 8;
      byte = escaped & 0xff;
    }
    if (counted && at - countAt > STRING_BYTES_MAX) {
      rdata[countAt] = STRING_BYTES_MAX;
      countAt = at;
      at++;
    }
    rdata[at] = byte;
    at++;
  }
  if (counted) rdata[countAt] = at - countAt - 1;
  return at;
}

function quoteText(bytes: Uint8Array, start: number, end: number): string {
  let text = '"';
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < 0x20 || byte > 0x7e) text += `\\${String(byte).padStart(3, "0")}`;
    else if (byte === QUOTE || byte === BACKSLASH) text += `\\${String.fromCharCode(byte)}`;
    else text += String.fromCharCode(byte);
  }
  return `${text}"`;
}

function isAlphanumeric(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    const letter = byte | 0x20;
    if (!((byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x7a))) return false;
  }
  return true;
}
