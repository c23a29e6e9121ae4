/**
 * What a packet is, read apart from the server's own parsing: the oracle's half of the fuzz test. Where RFCs leave a
 * choice the packet is "unsure", and the server may refuse it or look past the fault.
 */

export type Packet =
  /** Not a query: no answer (RFC 8906 section 3.1.1 speaks of queries only; answering a response makes loops). */
  | { readonly kind: "silence" }
  /** An opcode that is not QUERY. */
  | { readonly kind: "opcode"; readonly opcode: number }
  /** A query that cannot be read: FORMERR. */
  | { readonly kind: "malformed" }
  | { readonly kind: "unsure" }
  | {
      readonly kind: "query";
      readonly type: number;
      readonly class: number;
      /** End of the question section. */
      readonly questionEnd: number;
      readonly edns: { readonly version: number; readonly udpSize: number } | undefined;
    };

const TYPE_OPT = 41;
const OPTION_CLIENT_SUBNET = 8;
const OPTION_COOKIE = 10;

/** The offset behind an uncompressed name, or undefined. */
function nameEnd(bytes: Buffer, start: number): number | undefined {
  for (let at = start; at < bytes.length && at - start < 255; at += bytes[at]! + 1) {
    if (bytes[at] === 0) return at + 1;
    if (bytes[at]! > 63) return undefined;
  }
  return undefined;
}

type RecordHead = { readonly start: number; readonly type: number; readonly rdata: number; readonly end: number };

/** The head of a record, whose owner may end in a pointer; undefined where it goes past the end or is no name. */
function recordAt(bytes: Buffer, start: number): RecordHead | undefined {
  let at = start;
  while (at < bytes.length && bytes[at]! > 0 && bytes[at]! < 64) at += bytes[at]! + 1;
  if (at >= bytes.length) return undefined;
  if (bytes[at] === 0) at += 1;
  else if (bytes[at]! >= 0xc0) at += 2;
  else return undefined;
  if (at + 10 > bytes.length) return undefined;
  const end = at + 10 + bytes.readUInt16BE(at + 8);
  return end > bytes.length ? undefined : { start, type: bytes.readUInt16BE(at), rdata: at + 10, end };
}

/** Whether the options of an OPT record are as RFC 6891 and 7873 have them. */
function checkOptions(bytes: Buffer, from: number, end: number): "good" | "bad" | "unsure" {
  let result: "good" | "unsure" = "good";
  let cookies = 0;
  for (let at = from; at < end; ) {
    if (at + 4 > end) return "bad";
    const code = bytes.readUInt16BE(at);
    const length = bytes.readUInt16BE(at + 2);
    at += 4 + length;
    if (at > end) return "bad";
    if (code === OPTION_CLIENT_SUBNET) result = "unsure";
    if (code === OPTION_COOKIE) {
      cookies += 1;
      if (length !== 8 && (length < 16 || length > 40)) return cookies > 1 ? "unsure" : "bad";
    }
  }
  return cookies > 1 ? "unsure" : result;
}

function classifyOpt(bytes: Buffer, opt: RecordHead, query: Packet & { kind: "query" }): Packet {
  const fixed = opt.rdata - 10;
  if (bytes[opt.start] !== 0) return { kind: "unsure" };
  const version = bytes[fixed + 5]!;
  const options = checkOptions(bytes, opt.rdata, opt.end);
  // The options of a version that we do not know may be of any form (RFC 6891 section 6.1.3).
  if (version !== 0 && options !== "good") return { kind: "unsure" };
  if (options === "bad") return { kind: "malformed" };
  if (options === "unsure") return { kind: "unsure" };
  return { ...query, edns: { version, udpSize: bytes.readUInt16BE(fixed + 2) } };
}

/** Follows the records that the counts promise; only a lone OPT in the additional section makes a plain query. */
function classifyRecords(bytes: Buffer, query: Packet & { kind: "query" }): Packet {
  const [answers, authorities, additionals] = [6, 8, 10].map((at) => bytes.readUInt16BE(at));
  const records: RecordHead[] = [];
  let at = query.questionEnd;
  for (let left = answers! + authorities! + additionals!; left > 0; left -= 1) {
    const head = recordAt(bytes, at);
    // Where the counts promise more than there is, the part that cannot be read may hide behind one that may be refused.
    if (head === undefined) return answers === 0 && authorities === 0 ? { kind: "malformed" } : { kind: "unsure" };
    records.push(head);
    at = head.end;
  }
  const opts = records.filter(({ type }) => type === TYPE_OPT);
  if (answers !== 0 || authorities !== 0 || at !== bytes.length) return { kind: "unsure" };
  if (opts.length > 1) return { kind: records.length === opts.length ? "malformed" : "unsure" };
  if (records.length !== opts.length) return { kind: "unsure" };
  return opts.length === 0 ? query : classifyOpt(bytes, opts[0]!, query);
}

/** Says what a packet is and so what may answer it. */
export function classify(bytes: Buffer): Packet {
  if (bytes.length < 12 || (bytes[2]! & 0x80) !== 0) return { kind: "silence" };
  const opcode = (bytes[2]! >> 3) & 15;
  if (opcode !== 0) return { kind: "opcode", opcode };
  const questions = bytes.readUInt16BE(4);
  // A query without question is how a client asks for a cookie (RFC 7873 section 5.4).
  if (questions === 0) return { kind: "unsure" };
  // An OPT RR behind them may be of another version, and the version goes first (RFC 6891 section 6.1.3).
  if (questions > 1) return { kind: bytes.readUInt16BE(10) > 0 ? "unsure" : "malformed" };
  const end = nameEnd(bytes, 12);
  if (end === undefined || end + 4 > bytes.length) return { kind: "malformed" };
  const [type, number] = [bytes.readUInt16BE(end), bytes.readUInt16BE(end + 2)];
  return classifyRecords(bytes, { kind: "query", type, class: number, questionEnd: end + 4, edns: undefined });
}
