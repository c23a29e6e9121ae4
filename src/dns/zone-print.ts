/** Wire records as lines of a zone file (RFC 1035 section 5): every name absolute, so that reading them needs no origin. */

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

/** One record as a line, `owner TTL IN TYPE rdata`, without the line's end. */
export function recordToText(record: ZoneRecord): string {
  const { owner, type, ttl, rdata } = record;
  return `${nameToText(owner)} ${ttl} IN ${typeToText(type)} ${rdataToText(type, rdata)}`;
}
