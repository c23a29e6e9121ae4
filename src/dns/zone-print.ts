/** Wire records as zone-file text (RFC 1035 section 5): every name absolute, so that reading it needs no origin. */

import { nameToText } from "./name.ts";
import { rdataToText } from "./rdata.ts";
import { typeToText } from "./type-names.ts";

export type ZoneRecord = {
  /** Wire form. */
  readonly owner: Uint8Array;
  readonly type: number;
  /** Seconds. */
  readonly ttl: number;
  /** Uncompressed wire form. */
  readonly rdata: Uint8Array;
};

const CHUNK_CHARACTERS = 65_536;

/** One record as a line, `owner TTL IN TYPE rdata`, without the line's end. */
export function recordToText(record: ZoneRecord): string {
  const { owner, type, ttl, rdata } = record;
  return `${nameToText(owner)} ${ttl} IN ${typeToText(type)} ${rdataToText(type, rdata)}`;
}

/**
 * The text of a zone in chunks of some 64 KB, in the order of `records`; parsing it gives the same bytes again.
 * The caller puts the SOA first, which other servers expect.
 */
export function* printZone(records: Iterable<ZoneRecord>): Generator<string, void> {
  let chunk = "";
  for (const record of records) {
    chunk += `${recordToText(record)}\n`;
    if (chunk.length >= CHUNK_CHARACTERS) {
      yield chunk;
      chunk = "";
    }
  }
  if (chunk.length > 0) yield chunk;
}
