/**
 * Numbers of the protocol, under the names the registries give them.
 * Sources: the IANA DNS parameters registry, RFC 1035, RFC 6895, RFC 6891, RFC 8914.
 */

/** RR TYPEs. ALIAS is a private number (RFC 6895 section 3.1): it never leaves the server. */
export const RRTYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  CAA: 257,
  ALIAS: 65401,
} as const;

export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const;

export const OPCODE = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const;

/** RCODEs; those above 15 need EDNS for their upper eight bits (RFC 6891 section 6.1.3). */
export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADKEY: 17,
  BADTIME: 18,
  BADCOOKIE: 23,
} as const;

/** EDNS option codes. */
export const EDNS_OPTION = { NSID: 3, CLIENT_SUBNET: 8, COOKIE: 10, TCP_KEEPALIVE: 11, PADDING: 12, EDE: 15 } as const;

/** Extended DNS Error codes (RFC 8914 section 5.2). */
export const EDE = {
  OTHER: 0,
  STALE_ANSWER: 3,
  BLOCKED: 15,
  CENSORED: 16,
  PROHIBITED: 18,
  STALE_NXDOMAIN_ANSWER: 19,
  NOT_AUTHORITATIVE: 20,
  NOT_SUPPORTED: 21,
  NO_REACHABLE_AUTHORITY: 22,
  NETWORK_ERROR: 23,
} as const;

/** Bits of the two header flag bytes (RFC 1035 section 4.1.1), as one 16-bit word. */
export const FLAG = { QR: 0x8000, AA: 0x0400, TC: 0x0200, RD: 0x0100, RA: 0x0080, AD: 0x0020, CD: 0x0010 } as const;
