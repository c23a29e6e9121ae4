/** The header of an answer, and the answers that have next to nothing else. */
import { FLAG, OPCODE, RCODE } from "../dns/codes.ts";
import { type Query, READ } from "./query.ts";

/** Flags of the query's header that the answer repeats: opcode and RD. */
const REPEATED_FLAGS = 0x7900;

/** The rcode for what was read and is no query. */
export function unreadRcode({ read, opcode }: Query): number {
  if (read === READ.MALFORMED) return RCODE.FORMERR;
  // It is known, and off (RFC 2136 section 3.1).
  return opcode === OPCODE.UPDATE ? RCODE.REFUSED : RCODE.NOTIMP;
}

/**
 * The message is no query that could be answered: only its header, question and OPT RR mean something, and of the options
 * padding alone, which hides what was sent.
 */
export function refuseUnread(query: Query, rcode: number): void {
  query.at = query.questionEnd;
  query.cookieLength = 0;
  query.subnetLength = 0;
  query.wantsNsid = false;
  query.wantsKeepalive = false;
  query.rcode = rcode;
}

export function putHeader(query: Query, routedFlags: number): void {
  const { data, start } = query;
  let flags = FLAG.QR | (query.flags & REPEATED_FLAGS) | routedFlags | (query.rcode & 15);
  if (query.authoritative) flags |= FLAG.AA;
  if (query.truncated) flags |= FLAG.TC;
  data.setUint16(start + 2, flags);
  data.setInt32(start + 4, (query.hasQuestion ? 0x10000 : 0) | query.answers);
  data.setInt32(start + 8, (query.authorities << 16) | query.additionals);
}
