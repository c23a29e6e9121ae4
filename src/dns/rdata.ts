/**
 * Rdata of the types that zones hold, between zone-file text and wire form (RFC 1035 section 3.3, RFC 3596, RFC 2782,
 * RFC 8659), with the generic form of RFC 3597. Wire rdata here never has compressed names.
 * A type is one entry of RDATA_TYPES; nothing else in the library lists them.
 */

import { RRTYPE } from "./codes.ts";
import {
  type FieldKind,
  failAt,
  IPV4_FIELD,
  IPV6_FIELD,
  NAME_FIELD,
  RDATA_BYTES_MAX,
  type RdataInput,
  REST_FIELD,
  SECONDS_FIELD,
  STRINGS_FIELD,
  TAG_FIELD,
  UINT8_FIELD,
  UINT16_FIELD,
  UINT32_FIELD,
} from "./rdata-fields.ts";
import { readDecimal } from "./ttl.ts";
import { typeToText } from "./type-names.ts";
import { columnOf, ENTRY, openZoneTokens, readEntry, type ZoneTokens } from "./zone-tokens.ts";

export type RdataField = { readonly label: string; readonly kind: FieldKind };

export type RdataType = {
  readonly type: number;
  readonly fields: readonly RdataField[];
  /** Names may be compressed when written: only those of RFC 1035 itself (RFC 3597 section 4). */
  readonly isCompressible: boolean;
};

export type RdataResult =
  | { readonly kind: "rdata"; readonly rdata: Uint8Array }
  | { readonly kind: "error"; readonly detail: string; readonly column: number };

const COMPRESSED = true;

const RDATA_TYPES: readonly RdataType[] = [
  entry(RRTYPE.A, [["address", IPV4_FIELD]]),
  entry(RRTYPE.AAAA, [["address", IPV6_FIELD]]),
  entry(RRTYPE.CNAME, [["target", NAME_FIELD]], COMPRESSED),
  entry(RRTYPE.NS, [["name server", NAME_FIELD]], COMPRESSED),
  entry(RRTYPE.PTR, [["target", NAME_FIELD]], COMPRESSED),
  entry(RRTYPE.ALIAS, [["target", NAME_FIELD]]),
  entry(
    RRTYPE.MX,
    [
      ["preference", UINT16_FIELD],
      ["exchange", NAME_FIELD],
    ],
    COMPRESSED,
  ),
  entry(RRTYPE.SRV, [
    ["priority", UINT16_FIELD],
    ["weight", UINT16_FIELD],
    ["port", UINT16_FIELD],
    ["target", NAME_FIELD],
  ]),
  entry(RRTYPE.TXT, [["text", STRINGS_FIELD]]),
  entry(RRTYPE.CAA, [
    ["flags", UINT8_FIELD],
    ["tag", TAG_FIELD],
    ["value", REST_FIELD],
  ]),
  entry(
    RRTYPE.SOA,
    [
      ["mname", NAME_FIELD],
      ["rname", NAME_FIELD],
      ["serial", UINT32_FIELD],
      ["refresh", SECONDS_FIELD],
      ["retry", SECONDS_FIELD],
      ["expire", SECONDS_FIELD],
      ["minimum", SECONDS_FIELD],
    ],
    COMPRESSED,
  ),
];

const BY_TYPE: ReadonlyMap<number, RdataType> = new Map(RDATA_TYPES.map((each) => [each.type, each]));
const HASH = 0x23;
const BACKSLASH = 0x5c;
const encoder = new TextEncoder();
/** For `rdataFromText`, which copies the result out before it returns. */
const oneRdata = new Uint8Array(RDATA_BYTES_MAX);

/** The types whose records a zone can hold. */
export const ZONE_TYPES: readonly number[] = RDATA_TYPES.map((each) => each.type);

/** How the rdata of a type is made, or undefined for a type that zones here do not hold. */
export function rdataTypeOf(type: number): RdataType | undefined {
  return BY_TYPE.get(type);
}

/** An input for `readRdata` over `tokens`, with a buffer for the longest rdata there can be. */
export function openRdataInput(tokens: ZoneTokens, rdata = new Uint8Array(RDATA_BYTES_MAX)): RdataInput {
  return { tokens, next: 0, origin: new Uint8Array(0), originLength: 0, rdata, fault: "", faultToken: 0 };
}

/**
 * Reads the tokens from `input.next` to the entry's end as rdata of `type` into `input.rdata`. Gives its length, or -1
 * with `input.fault` and `input.faultToken` set.
 */
export function readRdata(rdataType: RdataType, input: RdataInput): number {
  if (isGeneric(input.tokens, input.next)) return readKnownGeneric(rdataType, input);
  let end = 0;
  for (const field of rdataType.fields) {
    const next = field.kind.read(input, end);
    if (next < 0) {
      input.fault = `${typeToText(rdataType.type)} ${field.label}: ${input.fault}`;
      return -1;
    }
    end = next;
  }
  if (end > RDATA_BYTES_MAX) return failAt(input, input.next - 1, `rdata longer than ${RDATA_BYTES_MAX} bytes`);
  if (input.next < input.tokens.count) return failAt(input, input.next, "text behind the end of the record");
  return end;
}

/** True where the token at `index` is the `\#` that opens generic rdata. */
export function isGeneric(tokens: ZoneTokens, index: number): boolean {
  if (index >= tokens.count || tokens.quoted[index] === 1) return false;
  const start = tokens.starts[index]!;
  return tokens.ends[index]! - start === 2 && tokens.text[start] === BACKSLASH && tokens.text[start + 1] === HASH;
}

/** Reads `\# length hex...` (RFC 3597 section 5) into `input.rdata`: its length, or -1 with the fault set. */
export function readGeneric(input: RdataInput): number {
  const { tokens, rdata } = input;
  const { text, starts, ends } = tokens;
  const lengthToken = input.next + 1;
  const length =
    lengthToken < tokens.count && tokens.quoted[lengthToken] === 0
      ? readDecimal(text, starts[lengthToken]!, ends[lengthToken]!, RDATA_BYTES_MAX)
      : -1;
  if (length < 0) return failAt(input, lengthToken, "generic rdata needs its length in bytes behind \\#");
  let digits = 0;
  for (let index = lengthToken + 1; index < tokens.count; index++) {
    for (let at = starts[index]!; at < ends[index]!; at++) {
      const digit = tokens.quoted[index] === 1 ? Number.NaN : Number.parseInt(String.fromCharCode(text[at]!), 16);
      if (Number.isNaN(digit)) return failAt(input, index, "not hexadecimal digits");
      if (digits >= length * 2) return failAt(input, index, `more than the ${length} bytes that were stated`);
      rdata[digits >> 1] = digits % 2 === 0 ? digit << 4 : rdata[digits >> 1]! | digit;
      digits++;
    }
  }
  if (digits !== length * 2) return failAt(input, lengthToken, `not the ${length} bytes of hexadecimal digits stated`);
  input.next = tokens.count;
  return length;
}

/** What is wrong with the `length` bytes at `offset` as uncompressed rdata of a type; undefined where nothing is. */
export function checkRdata(type: number, bytes: Uint8Array, offset: number, length: number): string | undefined {
  const rdataType = BY_TYPE.get(type);
  if (rdataType === undefined) return "a type that zones do not hold";
  const end = offset + length;
  if (length > RDATA_BYTES_MAX || end > bytes.length) return "rdata ends outside its bytes";
  let at = offset;
  for (const field of rdataType.fields) {
    const fieldLength = field.kind.measure(bytes, at, end);
    if (fieldLength < 0 || at + fieldLength > end) return `not a valid ${field.label}`;
    at += fieldLength;
  }
  return at === end ? undefined : "bytes behind the end of the rdata";
}

/** The wire rdata of a text like `10 mail.example.test.`; relative names are completed by the wire name `origin`. */
export function rdataFromText(type: number, text: string, origin?: Uint8Array): RdataResult {
  const rdataType = BY_TYPE.get(type);
  if (rdataType === undefined) return { kind: "error", detail: `${typeToText(type)} is not held here`, column: 1 };
  const tokens = openZoneTokens(encoder.encode(text));
  const input = openRdataInput(tokens, oneRdata);
  input.origin = origin ?? input.origin;
  input.originLength = origin?.length ?? 0;
  const outcome = readEntry(tokens);
  if (outcome === ENTRY.FAULT) {
    return {
      kind: "error",
      detail: tokens.fault,
      column: columnOf(tokens.text, tokens.faultLineStart, tokens.faultAt),
    };
  }
  const length = readRdata(rdataType, input);
  if (length < 0) return { kind: "error", detail: input.fault, column: tokenColumn(tokens, input.faultToken) };
  if (readEntry(tokens) !== ENTRY.END) return { kind: "error", detail: "more than one line", column: 1 };
  return { kind: "rdata", rdata: input.rdata.slice(0, length) };
}

/** Zone-file text of the rdata at `offset`; names are absolute. What the type does not explain is printed generically. */
export function rdataToText(type: number, bytes: Uint8Array, offset = 0, length = bytes.length - offset): string {
  const rdataType = BY_TYPE.get(type);
  if (rdataType === undefined || checkRdata(type, bytes, offset, length) !== undefined) {
    const hex = Array.from(bytes.subarray(offset, offset + length), (byte) => byte.toString(16).padStart(2, "0"));
    return `\\# ${length}${length > 0 ? " " : ""}${hex.join("")}`;
  }
  const parts: string[] = [];
  const end = offset + length;
  let at = offset;
  for (const field of rdataType.fields) {
    parts.push(field.kind.print(bytes, at, end));
    at += field.kind.measure(bytes, at, end);
  }
  return parts.join(" ");
}

/** The column of a token; behind the last one, the column behind it. */
export function tokenColumn(tokens: ZoneTokens, index: number): number {
  const last = Math.min(index, tokens.count - 1);
  if (last < 0) return 1;
  const at = last === index ? tokens.starts[last]! - tokens.quoted[last]! : tokens.ends[last]! + tokens.quoted[last]!;
  return columnOf(tokens.text, tokens.lineStarts[last]!, at);
}

function readKnownGeneric(rdataType: RdataType, input: RdataInput): number {
  const first = input.next;
  const length = readGeneric(input);
  if (length < 0) return -1;
  const fault = checkRdata(rdataType.type, input.rdata, 0, length);
  return fault === undefined ? length : failAt(input, first, `${typeToText(rdataType.type)}: ${fault}`);
}

function entry(type: number, fields: readonly (readonly [string, FieldKind])[], isCompressible = false): RdataType {
  return { type, fields: fields.map(([label, kind]) => ({ label, kind })), isCompressible };
}
