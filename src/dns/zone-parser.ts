/** The state of one pass over a zone file, and what its steps share. */

import { openRdataInput } from "./rdata.ts";
import type { RdataInput } from "./rdata-fields.ts";
import { addError, openReport, quoteBytes, type ReportBuilder, type ZoneFileError } from "./zone-report.ts";
import { openZoneTokens, type ZoneTokens } from "./zone-tokens.ts";

/**
 * Takes one record. `owner` (absolute, case as written) and `rdata` (uncompressed) are buffers that the next call uses
 * again; `ttl` is in seconds; `line` and `column` (from 1, in characters) are where the record starts.
 */
export type ZoneRecordSink = (
  owner: Uint8Array,
  ownerLength: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  rdataLength: number,
  line: number,
  column: number,
) => void;

export type ZoneFileOptions = {
  /** Completes relative names until the file's own $ORIGIN; wire form. */
  readonly origin?: Uint8Array;
  /** Is given the zone's name, which is its SOA's owner, before the first record; never where the file has no good SOA. */
  readonly onZone?: (apex: Uint8Array) => void;
  readonly onRecord: ZoneRecordSink;
};

export type SoaSeen = { readonly owner: Uint8Array; readonly rdata: Uint8Array; readonly isAbsolute: boolean };

export type ZoneParser = {
  readonly options: ZoneFileOptions;
  readonly tokens: ZoneTokens;
  readonly input: RdataInput;
  readonly report: ReportBuilder;
  /** The current origin comes from the file's own text. */
  originIsOfFile: boolean;
  /** A directive that could not be read: what depends on it is refused, lest it land elsewhere than was meant. */
  originIsBroken: boolean;
  ttlIsBroken: boolean;
  readonly owner: Uint8Array;
  /** 0: there is none to inherit. */
  ownerLength: number;
  ownerIsBroken: boolean;
  ownerIsAbsolute: boolean;
  /** In seconds; -1: not known. The default is that of $TTL or the SOA, the last one that of a record before. */
  defaultTtl: number;
  lastTtl: number;
  /** Of the current record: its own TTL or -1, and the token behind owner, TTL and class. */
  statedTtl: number;
  typeToken: number;
  /** The owner of the SOA, once it is known; it may be known before the SOA is reached. */
  zone: Uint8Array | undefined;
  zoneIsSought: boolean;
  soa: SoaSeen | undefined;
  /** What cost the file its first SOA, if anything did. */
  soaError: ZoneFileError | undefined;
  records: number;
};

/** Longest name and the label that makes it too long: `writeName` writes no further. */
export const OWNER_BUFFER_BYTES = 512;

export function openParser(text: Uint8Array, options: ZoneFileOptions): ZoneParser {
  const tokens = openZoneTokens(text);
  const input = openRdataInput(tokens);
  input.origin = options.origin ?? input.origin;
  input.originLength = options.origin?.length ?? 0;
  return {
    options,
    tokens,
    input,
    report: openReport(text),
    originIsOfFile: false,
    originIsBroken: false,
    ttlIsBroken: false,
    owner: new Uint8Array(OWNER_BUFFER_BYTES),
    ownerLength: 0,
    ownerIsBroken: false,
    ownerIsAbsolute: false,
    defaultTtl: -1,
    lastTtl: -1,
    statedTtl: -1,
    typeToken: 0,
    zone: undefined,
    zoneIsSought: false,
    soa: undefined,
    soaError: undefined,
    records: 0,
  };
}

/** Reports an error at a token (behind the last one: at its end) and returns false. */
export function failToken(parser: ZoneParser, index: number, detail: string): false {
  const { tokens } = parser;
  const token = Math.min(index, tokens.count - 1);
  const isBehind = token < index;
  const at = isBehind ? tokens.ends[token]! + tokens.quoted[token]! : tokens.starts[token]! - tokens.quoted[token]!;
  addError(parser.report, tokens.lines[token]!, tokens.lineStarts[token]!, at, detail);
  return false;
}

/** A token for a message. */
export function quoteToken(tokens: ZoneTokens, index: number): string {
  return quoteBytes(tokens.text, tokens.starts[index]!, tokens.ends[index]!);
}
