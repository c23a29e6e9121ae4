import { type DecodedMessage, decodeMessage } from "../support/dns-message.ts";
import { classify, type Packet } from "./classify.ts";

export type Transport = "udp" | "tcp";

const RCODE = { NOERROR: 0, FORMERR: 1, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, NOTAUTH: 9, BADVERS: 16 } as const;
const TYPE_SOA = 6;
const TYPE_ANY = 255;
const CLASS_CHAOS = 3;
const CLASS_ANY = 255;

/** What the server sends over UDP at most, whatever a client offers (dns.max_udp_size). */
const UDP_SIZE_MAX = 1232;
const UDP_SIZE_WITHOUT_EDNS = 512;

/** Types that are no data (RFC 6895 section 3.1): 0, OPT, and the QTYPEs and meta types from 128 to 255. */
function isMetaType(type: number): boolean {
  return type === 0 || type === 41 || (type >= 128 && type <= 255);
}

function allowedForQuery({ type, class: number, edns }: Packet & { kind: "query" }): readonly number[] {
  if (edns !== undefined && edns.version !== 0) return [RCODE.BADVERS];
  const refusals = [RCODE.FORMERR, RCODE.NOTIMP, RCODE.REFUSED];
  if (number !== 1 && number !== CLASS_CHAOS && number !== CLASS_ANY) return refusals;
  if (isMetaType(type) && type !== TYPE_ANY) return [RCODE.NOERROR, RCODE.NXDOMAIN, ...refusals];
  if (number === CLASS_CHAOS) return [RCODE.NOERROR, RCODE.REFUSED];
  return [RCODE.NOERROR, RCODE.NXDOMAIN, RCODE.REFUSED];
}

/** Rcodes that may answer a packet; SERVFAIL is never among them, since nothing a client sends can make us fail. */
function allowedRcodes(packet: Packet): readonly number[] {
  switch (packet.kind) {
    case "silence":
      return [];
    case "malformed":
      return [RCODE.FORMERR];
    case "opcode":
      return [RCODE.FORMERR, RCODE.NOTIMP, RCODE.REFUSED, RCODE.NOTAUTH, RCODE.BADVERS];
    case "unsure":
      return [RCODE.NOERROR, RCODE.FORMERR, RCODE.NXDOMAIN, RCODE.NOTIMP, RCODE.REFUSED, RCODE.NOTAUTH, RCODE.BADVERS];
    case "query":
      return allowedForQuery(packet);
  }
}

function sizeLimit(packet: Packet, transport: Transport): number {
  if (transport === "tcp") return 65_535;
  if (packet.kind !== "query") return UDP_SIZE_MAX;
  const offered = packet.edns?.udpSize ?? UDP_SIZE_WITHOUT_EDNS;
  return Math.min(UDP_SIZE_MAX, Math.max(UDP_SIZE_WITHOUT_EDNS, offered));
}

/** What of a response's header is wrong for any packet that gets one. */
function headerFault(query: Buffer, response: Buffer, message: DecodedMessage): string | undefined {
  if (message.id !== query.readUInt16BE(0)) return "another id";
  if ((message.flags & 0x8000) === 0) return "QR is not set";
  if (((message.flags ^ query.readUInt16BE(2)) & 0x7800) !== 0) return "another opcode";
  if (((message.flags ^ query.readUInt16BE(2)) & 0x0100) !== 0) return "RD is not copied";
  if ((message.flags & 0x00e0) !== 0) return "RA, Z or AD is set";
  const [asked, told] = [query.readUInt16BE(4), response.readUInt16BE(4)];
  return told > 1 || told > asked ? "more questions than were asked" : undefined;
}

/** What is wrong with the answer to a query that can be read. */
function queryFault(
  packet: Packet & { kind: "query" },
  query: Buffer,
  message: DecodedMessage,
  response: Buffer,
): string | undefined {
  const { questionEnd } = packet;
  if (!query.subarray(12, questionEnd).equals(response.subarray(12, questionEnd)))
    return "the question is not the one asked";
  if ((packet.edns === undefined) !== (message.edns === undefined))
    return "OPT where none was sent, or none where one was";
  const authoritative = (message.flags & 0x0400) !== 0;
  const truncated = (message.flags & 0x0200) !== 0;
  if (message.rcode === RCODE.NXDOMAIN && !truncated) {
    // Class ANY is answered as IN, but nobody has authority over it (RFC 1035 section 6.2 has it that way).
    if (!authoritative && packet.class !== CLASS_ANY && message.answer.length === 0) return "NXDOMAIN without AA";
    if (!message.authority.some(({ type }) => type === TYPE_SOA)) return "NXDOMAIN without SOA";
  }
  return undefined;
}

/**
 * What is wrong with `response` (undefined: silence) as the answer to `packet`, as one sentence; undefined when nothing
 * is. Takes any bytes, and judges by the RFCs alone: it knows nothing of the zones.
 */
export function faultOf(query: Buffer, response: Buffer | undefined, transport: Transport): string | undefined {
  const packet = classify(query);
  if (packet.kind === "silence") return response === undefined ? undefined : "an answer to what is not a query";
  if (response === undefined) return `silence to a packet that is ${packet.kind}`;
  let message: DecodedMessage;
  try {
    message = decodeMessage(response);
  } catch (error) {
    return `a response that cannot be read: ${String(error)}`;
  }
  const rcodes = allowedRcodes(packet);
  if (!rcodes.includes(message.rcode))
    return `rcode ${message.rcode} to a packet that is ${packet.kind}, not ${rcodes}`;
  if (response.length > sizeLimit(packet, transport)) return `${response.length} bytes, over the limit`;
  const fault = headerFault(query, response, message);
  if (fault !== undefined || packet.kind !== "query") return fault;
  return queryFault(packet, query, message, response);
}
