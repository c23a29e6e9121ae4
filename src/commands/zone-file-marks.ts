/**
 * What a zone file says in comments, because RFC 1035 has no words for it: records that exist with no values, and the NS
 * that the server makes by itself. Export writes these lines and import reads them.
 */

import { RECORD_TYPES, type RecordType } from "../model/objects.ts";

export type AutoPopulateMark = { readonly name: string; readonly type: RecordType; readonly line: number };

const AUTO_POPULATE = /^;\s*auto_populate[ \t]+(\S{1,1016})[ \t]+([A-Za-z]{1,16})[ \t]*$/;
const SYNTHESISED_NS = "; synthesised @ NS";
const LINE_MAX = 1_100;
/** Room for the semicolon and blanks before the word. */
const LEAD_MAX = 16;

/** `name` is relative to the zone, or absolute with its dot. */
export function autoPopulateMark(name: string, type: RecordType): string {
  return `; auto_populate ${name} ${type}`;
}

export function synthesisedNsMark(): string {
  return SYNTHESISED_NS;
}

/** Whether the NS of the apex in this file is not stored in the zone: it follows from the SOA. */
export function hasSynthesisedNs(text: Uint8Array): boolean {
  return hasLine(bytesOf(text), SYNTHESISED_NS);
}

/** The records without values, each a whole line, in the order of the file. How many there are is for the caller to bound. */
export function* autoPopulateMarks(text: Uint8Array): Generator<AutoPopulateMark, void> {
  const bytes = bytesOf(text);
  let line = 1;
  let lineStart = 0;
  for (let at = bytes.indexOf("auto_populate"); at >= 0; at = bytes.indexOf("auto_populate", at + 1)) {
    // Lines are counted on the way, once for the whole text.
    for (let end = bytes.indexOf(0x0a, lineStart); end >= 0 && end < at; end = bytes.indexOf(0x0a, lineStart)) {
      lineStart = end + 1;
      line++;
    }
    if (at - lineStart > LEAD_MAX) continue;
    const mark = AUTO_POPULATE.exec(lineAt(bytes, lineStart));
    const type = RECORD_TYPES.find((known) => known === mark?.[2]?.toUpperCase());
    if (mark?.[1] !== undefined && type !== undefined) yield { name: mark[1], type, line };
  }
}

function bytesOf(text: Uint8Array): Buffer {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}

function lineAt(bytes: Buffer, start: number): string {
  const newline = bytes.subarray(start, start + LINE_MAX).indexOf(0x0a);
  const line = bytes.toString("latin1", start, newline < 0 ? start + LINE_MAX : start + newline);
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function hasLine(bytes: Buffer, wanted: string): boolean {
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) {
    const before = at === 0 ? 0x0a : bytes[at - 1];
    const after = bytes[at + wanted.length];
    if ((before === 0x0a || before === 0x0d) && (after === undefined || after === 0x0a || after === 0x0d)) return true;
  }
  return false;
}
