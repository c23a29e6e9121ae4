/** What a zone file's parse reports besides its records: bounded lists, so that a hostile file cannot fill memory. */

import { nameToText } from "./name.ts";
import { columnOf } from "./zone-tokens.ts";

/** Errors kept with their place; the rest are counted. */
export const ZONE_ERRORS_MAX = 100;
/** Records of unsupported types kept with their place; a signed zone has several for each of its names. */
export const ZONE_LEFT_OUT_MAX = 100;

export type ZoneFileError = { readonly line: number; readonly column: number; readonly detail: string };

export type LeftOutRecord = {
  readonly line: number;
  readonly column: number;
  readonly owner: string;
  readonly type: string;
};

export type ZoneFileReport = {
  /** The owner of the SOA, wire form, case as written. */
  readonly origin: Uint8Array | undefined;
  /** Owner, mname and rname of the SOA are absolute by the file's own text, without the caller's origin. */
  readonly soaIsAbsolute: boolean;
  /** Why there is no SOA, where there is none. Among `errors`, unless these are more than are kept. */
  readonly soaError: ZoneFileError | undefined;
  /** Records handed to the sink. */
  readonly records: number;
  readonly errors: readonly ZoneFileError[];
  readonly errorsOmitted: number;
  /** Records of real types that zones here do not hold. */
  readonly leftOut: readonly LeftOutRecord[];
  readonly leftOutOmitted: number;
};

export type ReportBuilder = {
  readonly text: Uint8Array;
  readonly errors: ZoneFileError[];
  errorsOmitted: number;
  /** The latest, kept or not. */
  lastError: ZoneFileError | undefined;
  readonly leftOut: LeftOutRecord[];
  leftOutOmitted: number;
};

const QUOTED_BYTES_MAX = 60;

export function openReport(text: Uint8Array): ReportBuilder {
  return { text, errors: [], errorsOmitted: 0, lastError: undefined, leftOut: [], leftOutOmitted: 0 };
}

/** Adds an error at the byte `at` of the line that starts at `lineStart`. */
export function addError(report: ReportBuilder, line: number, lineStart: number, at: number, detail: string): void {
  const error = { line, column: columnOf(report.text, lineStart, at), detail };
  report.lastError = error;
  if (report.errors.length >= ZONE_ERRORS_MAX) report.errorsOmitted++;
  else report.errors.push(error);
}

export function addLeftOut(
  report: ReportBuilder,
  line: number,
  lineStart: number,
  at: number,
  owner: Uint8Array,
  type: string,
): void {
  if (report.leftOut.length >= ZONE_LEFT_OUT_MAX) report.leftOutOmitted++;
  else report.leftOut.push({ line, column: columnOf(report.text, lineStart, at), owner: nameToText(owner), type });
}

/** A piece of the text for a message: in quotes, cut when long, with what is not printable ASCII as \DDD. */
export function quoteBytes(text: Uint8Array, start: number, end: number): string {
  const shownEnd = Math.min(end, start + QUOTED_BYTES_MAX);
  let quoted = "'";
  for (let at = start; at < shownEnd; at++) {
    const byte = text[at]!;
    quoted += byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, "0")}` : String.fromCharCode(byte);
  }
  return shownEnd < end ? `${quoted}...'` : `${quoted}'`;
}
