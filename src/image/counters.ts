/**
 * What the answer threads count. Each thread adds to its own block of Float64 places and nobody else writes there, so
 * no count needs an atomic operation; a reader may be a batch behind. A place holds whole numbers up to 2^53.
 */
import { RCODE, RRTYPE } from "../dns/codes.ts";
import { COUNTERS_STRIDE, MAX_THREADS, type SharedImage } from "./shared.ts";

/** Label values of `transport`, in the order of their numbers. */
export const TRANSPORTS = ["udp", "tcp", "dot", "doh"] as const;
export const TRANSPORT = { UDP: 0, TCP: 1, DOT: 2, DOH: 3 } as const;
export type Transport = (typeof TRANSPORT)[keyof typeof TRANSPORT];

/** Label values of `type`: the types that clients ask for every day, and `other`, so that the label stays bounded. */
export const TYPE_CLASSES = [
  "none",
  "other",
  "A",
  "AAAA",
  "CNAME",
  "MX",
  "NS",
  "PTR",
  "SRV",
  "TXT",
  "CAA",
  "SOA",
  "ANY",
  "HTTPS",
] as const;
const TYPE_CLASS_STRIDE = 16;

/** Label values of `rcode`. */
export const RCODE_CLASSES = [
  "NOERROR",
  "FORMERR",
  "SERVFAIL",
  "NXDOMAIN",
  "NOTIMP",
  "REFUSED",
  "BADVERS",
  "other",
] as const;
const RCODE_CLASS_STRIDE = 8;

/** Single places behind the query table. */
export const COUNTER = {
  /** Datagrams or messages that got silence: too short, or not a query. */
  SILENT: 512,
  /** Answers sent with TC set. */
  TRUNCATED: 513,
  /** Answers the socket did not take. */
  DROPPED: 514,
  /** Queries dropped because answering them threw. */
  FAILED: 515,
  /** Answers made again because their zone changed under them. */
  REPEATED: 516,
  BATCHES: 517,
  CONNECTIONS_ACCEPTED: 518,
  CONNECTIONS_OPEN: 519,
  CONNECTIONS_CUT: 520,
  CONNECTIONS_REFUSED: 521,
  RECEIVE_ERRORS: 522,
  /** Questions of the forwarding path that the cache answered; of these with an answer whose time was over. */
  CACHE_HITS: 523,
  CACHE_STALE: 524,
  /** Those that had to be resolved, in the thread that took them. */
  CACHE_MISSES: 525,
  /** Answers that the blocklist gave. */
  BLOCKED: 526,
  /** Queries given SERVFAIL because the way to `resolve` was full. */
  HANDOVER_FULL: 527,
  /** Popular answers that `resolve` was asked to refresh. */
  REFRESHES: 528,
  /** Events that the query log or debug capture wanted and had no room for. */
  EVENTS_DROPPED: 529,
  /** Of DNS over TLS, and a place further on each of DNS over HTTPS. */
  SECURE_LISTENING: 530,
  SECURE_OPEN: 532,
  SECURE_ACCEPTED: 534,
  SECURE_REFUSED: 536,
  HANDSHAKES_FAILED: 538,
  /** Requests over HTTP/2 and HTTP/1.1, those answered by a status that is no answer of DNS, connections cut for a limit. */
  HTTP2_REQUESTS: 540,
  HTTP1_REQUESTS: 541,
  HTTPS_REFUSED: 542,
  HTTPS_CUT: 543,
  /** Answers to queries with RD without recursion, since it is not offered to the sender. */
  RECURSION_REFUSED: 544,
  LATENCY_SUM_SECONDS: 767,
  LATENCY_BUCKETS: 768,
} as const;

/** Upper bounds of the latency histogram in microseconds, from taking a query off the socket to handing over its answer. */
export const LATENCY_BOUNDS_US = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 100000] as const;

/** The class of a query type as an index of TYPE_CLASSES. */
export function typeClass(type: number): number {
  switch (type) {
    case RRTYPE.A:
      return 2;
    case RRTYPE.AAAA:
      return 3;
    case RRTYPE.CNAME:
      return 4;
    case RRTYPE.MX:
      return 5;
    case RRTYPE.NS:
      return 6;
    case RRTYPE.PTR:
      return 7;
    case RRTYPE.SRV:
      return 8;
    case RRTYPE.TXT:
      return 9;
    case RRTYPE.CAA:
      return 10;
    case RRTYPE.SOA:
      return 11;
    case RRTYPE.ANY:
      return 12;
    case 65:
      return 13;
    default:
      return 1;
  }
}

/** The class of a response code as an index of RCODE_CLASSES. */
export function rcodeClass(rcode: number): number {
  if (rcode <= RCODE.REFUSED) return rcode;
  return rcode === RCODE.BADVERS ? 6 : 7;
}

/** Place of the count of answers for a transport, type class and response code. */
export function queryPlace(transport: number, typeClassIndex: number, rcode: number): number {
  return (transport * TYPE_CLASS_STRIDE + typeClassIndex) * RCODE_CLASS_STRIDE + rcodeClass(rcode);
}

/** One thread's counters. */
export function threadCounters(shared: SharedImage, thread: number): Float64Array {
  return new Float64Array(shared.counters, thread * COUNTERS_STRIDE * 8, COUNTERS_STRIDE);
}

/** The sum over all threads of the counter at one place. */
export function sumCounter(shared: SharedImage, place: number): number {
  const all = new Float64Array(shared.counters);
  let sum = 0;
  for (let thread = 0; thread < MAX_THREADS; thread++) sum += all[thread * COUNTERS_STRIDE + place] ?? 0;
  return sum;
}

/**
 * Adds `count` queries that took `micros` microseconds each to a thread's latency histogram. A whole number below 2^31:
 * any other would be a new object on the heap for every batch.
 */
export function observeLatency(counters: Float64Array, micros: number, count: number): void {
  let bucket = 0;
  while (bucket < LATENCY_BOUNDS_US.length && micros > LATENCY_BOUNDS_US[bucket]!) bucket++;
  counters[COUNTER.LATENCY_BUCKETS + bucket]! += count;
  counters[COUNTER.LATENCY_SUM_SECONDS]! += (micros * count) / 1e6;
}
