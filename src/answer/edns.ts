/** The OPT RR of an answer (RFC 6891): how much room it takes, and its bytes. */
import { EDNS_OPTION, RRTYPE } from "../dns/codes.ts";
import { TRANSPORT } from "../image/counters.ts";
import { COOKIE_LENGTH } from "./cookie.ts";
import type { Query } from "./query.ts";

export type EdnsOptions = {
  /** What NSID answers (RFC 5001); empty for nothing. */
  readonly nodeId: Uint8Array;
  /** The UDP size that we announce: 512 to 4096. */
  readonly maxUdpSize: number;
  /** Idle time of a connection in seconds (RFC 7828). */
  readonly tcpIdleSeconds: number;
};

const OPT_LENGTH = 11;
const OPTION_HEADER = 4;

/** Bytes that the OPT RR of this query's answer takes, an extended error aside, which is told where there is room left. */
export function optLength(query: Query, options: EdnsOptions): number {
  if (!query.hasEdns) return 0;
  let length = OPT_LENGTH;
  if (query.cookieLength > 0) length += OPTION_HEADER + COOKIE_LENGTH;
  if (query.wantsNsid && options.nodeId.length > 0) length += OPTION_HEADER + options.nodeId.length;
  if (query.wantsKeepalive && query.transport !== TRANSPORT.UDP) length += OPTION_HEADER + 2;
  return length;
}

/** Appends the OPT RR. `query.cookie` holds the cookie to answer with. */
export function putOpt(query: Query, options: EdnsOptions): void {
  if (!query.hasEdns) return;
  const { bytes } = query;
  const start = query.at;
  bytes[start] = 0;
  bytes[start + 1] = 0;
  bytes[start + 2] = RRTYPE.OPT;
  bytes[start + 3] = options.maxUdpSize >>> 8;
  bytes[start + 4] = options.maxUdpSize & 0xff;
  bytes[start + 5] = query.rcode >>> 4;
  bytes[start + 6] = 0;
  // DO is copied (RFC 3225 section 3), the other flags are zero.
  bytes[start + 7] = query.dnssecOk ? 0x80 : 0;
  bytes[start + 8] = 0;
  let at = start + OPT_LENGTH;
  if (query.cookieLength > 0) at = putOption(bytes, at, EDNS_OPTION.COOKIE, query.cookie, COOKIE_LENGTH);
  if (query.wantsNsid && options.nodeId.length > 0) {
    at = putOption(bytes, at, EDNS_OPTION.NSID, options.nodeId, options.nodeId.length);
  }
  if (query.wantsKeepalive && query.transport !== TRANSPORT.UDP) {
    at = putNumber(bytes, at, EDNS_OPTION.TCP_KEEPALIVE, options.tcpIdleSeconds * 10);
  }
  const end = query.limit + optLength(query, options);
  if (query.extendedError >= 0 && at + OPTION_HEADER + 2 <= end) {
    at = putNumber(bytes, at, EDNS_OPTION.EDE, query.extendedError);
  }
  const length = at - start - OPT_LENGTH;
  bytes[start + 9] = length >>> 8;
  bytes[start + 10] = length & 0xff;
  query.at = at;
  query.additionals++;
}

function putOption(bytes: Uint8Array, at: number, code: number, value: Uint8Array, length: number): number {
  bytes[at] = 0;
  bytes[at + 1] = code;
  bytes[at + 2] = 0;
  bytes[at + 3] = length;
  for (let index = 0; index < length; index++) bytes[at + 4 + index] = value[index]!;
  return at + OPTION_HEADER + length;
}

/** An option whose value is one 16-bit number. */
function putNumber(bytes: Uint8Array, at: number, code: number, value: number): number {
  bytes[at] = 0;
  bytes[at + 1] = code;
  bytes[at + 2] = 0;
  bytes[at + 3] = 2;
  bytes[at + 4] = value >>> 8;
  bytes[at + 5] = value & 0xff;
  return at + OPTION_HEADER + 2;
}
