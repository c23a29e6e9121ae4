/** The OPT RR of an answer (RFC 6891): how much room it takes, and its bytes. */
import { EDNS_OPTION, RRTYPE } from "../dns/codes.ts";
import { TRANSPORT } from "../image/counters.ts";
import { COOKIE_WORDS } from "./cookie.ts";
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
const SUBNET_HEADER = 4;
/** Answers are padded to a multiple of it (RFC 8467 section 4.1). */
const PADDING_BLOCK = 468;

/** Bytes that the OPT RR of this query's answer takes, an extended error aside, which is told where there is room left. */
export function optLength(query: Query, options: EdnsOptions): number {
  if (!query.hasEdns) return 0;
  let length = OPT_LENGTH;
  if (query.cookieLength > 0) length += OPTION_HEADER + COOKIE_WORDS * 4;
  if (query.wantsNsid && options.nodeId.length > 0) length += OPTION_HEADER + options.nodeId.length;
  if (tellsIdleTime(query)) length += OPTION_HEADER + 2;
  if (query.subnetLength > 0) length += OPTION_HEADER + query.subnetLength;
  if (isPadded(query)) length += OPTION_HEADER;
  return length;
}

/** Appends the OPT RR. `query.cookie` holds the cookie to answer with; a signature of so many bytes will follow. */
export function putOpt(query: Query, options: EdnsOptions, signatureBytes: number): void {
  if (!query.hasEdns) return;
  const { data } = query;
  const start = query.at;
  const padding = isPadded(query);
  const end = padding || query.extendedError >= 0 ? query.limit + optLength(query, options) : 0;
  data.setUint8(start, 0);
  data.setUint16(start + 1, RRTYPE.OPT);
  data.setUint16(start + 3, options.maxUdpSize);
  // DO is copied (RFC 3225 section 3), the other flags and the version are zero.
  data.setInt32(start + 5, ((query.rcode >>> 4) << 24) | (query.dnssecOk ? 0x8000 : 0));
  let at = start + OPT_LENGTH;
  if (query.cookieLength > 0) at = putCookie(data, at, query.cookie);
  if (query.wantsNsid && options.nodeId.length > 0) {
    at = putBytes(data, at, EDNS_OPTION.NSID, options.nodeId);
  }
  if (tellsIdleTime(query)) {
    at = putNumber(data, at, EDNS_OPTION.TCP_KEEPALIVE, options.tcpIdleSeconds * 10);
  }
  if (query.subnetLength > 0) at = putSubnet(data, at, query);
  const errorEnd = at + OPTION_HEADER + 2 + (padding ? OPTION_HEADER : 0);
  if (query.extendedError >= 0 && errorEnd <= end) at = putNumber(data, at, EDNS_OPTION.EDE, query.extendedError);
  if (padding) at = putPadding(query, at, end, signatureBytes);
  data.setUint16(start + 9, at - start - OPT_LENGTH);
  query.at = at;
  query.additionals++;
}

/** Over UDP there is no connection (RFC 7828 section 3.2.1), and over HTTPS it is HTTP's to keep. */
function tellsIdleTime({ wantsKeepalive, transport }: Query): boolean {
  return wantsKeepalive && (transport === TRANSPORT.TCP || transport === TRANSPORT.DOT);
}

/** Over UDP and TCP whoever listens reads the answer itself, and padding would hide nothing (RFC 7830 section 6). */
function isPadded(query: Query): boolean {
  return query.wantsPadding && (query.transport === TRANSPORT.DOT || query.transport === TRANSPORT.DOH);
}

/** The last option: it fills the message, signature included, to a whole number of blocks, or to its end. */
function putPadding({ bytes, data, start }: Query, at: number, end: number, signatureBytes: number): number {
  const blocks = Math.ceil((at + OPTION_HEADER - start + signatureBytes) / PADDING_BLOCK);
  const paddedEnd = Math.min(start + blocks * PADDING_BLOCK - signatureBytes, end);
  const from = putOption(data, at, EDNS_OPTION.PADDING, paddedEnd - at - OPTION_HEADER);
  bytes.fill(0, from, paddedEnd);
  return paddedEnd;
}

function putOption(data: DataView, at: number, code: number, length: number): number {
  data.setInt32(at, (code << 16) | length);
  return at + OPTION_HEADER;
}

function putCookie(data: DataView, at: number, cookie: Int32Array): number {
  const from = putOption(data, at, EDNS_OPTION.COOKIE, COOKIE_WORDS * 4);
  for (let word = 0; word < COOKIE_WORDS; word++) data.setInt32(from + word * 4, cookie[word]!, true);
  return from + COOKIE_WORDS * 4;
}

/** Family, source prefix and address come back as they were; the scope is the answer's (RFC 7871 section 7.2.1). */
function putSubnet(data: DataView, at: number, query: Query): number {
  const from = putOption(data, at, EDNS_OPTION.CLIENT_SUBNET, query.subnetLength);
  data.setUint16(from, query.subnetFamily);
  data.setUint8(from + 2, query.subnetSource);
  data.setUint8(from + 3, query.subnetScope);
  const end = from + query.subnetLength;
  for (let to = from + SUBNET_HEADER; to < end; to++) data.setUint8(to, query.subnet[to - from - SUBNET_HEADER]!);
  return end;
}

function putBytes(data: DataView, at: number, code: number, value: Uint8Array): number {
  const from = putOption(data, at, code, value.length);
  for (let index = 0; index < value.length; index++) data.setUint8(from + index, value[index]!);
  return from + value.length;
}

/** An option whose value is one 16-bit number. */
function putNumber(data: DataView, at: number, code: number, value: number): number {
  const from = putOption(data, at, code, 2);
  data.setUint16(from, value);
  return from + 2;
}
