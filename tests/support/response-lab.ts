/** Responses of upstreams as text, what the resolver reads in them as text, and its entries put together as messages again. */
import fc from "fast-check";
import { CLASS, FLAG, RRTYPE } from "../../src/dns/codes.ts";
import {
  type DecodeResult,
  decodeMessage,
  type Message,
  makeQuery,
  type ResourceRecord,
} from "../../src/dns/message.ts";
import { nameToText } from "../../src/dns/name.ts";
import { rdataToText } from "../../src/dns/rdata.ts";
import { typeFromText, typeToText } from "../../src/dns/type-names.ts";
import type { CachedAnswer } from "../../src/image/cache.ts";
import type { ReadRules } from "../../src/resolve/response.ts";
import { recordFromLine, wireName } from "./scripted-replies.ts";

export type ResponseText = {
  readonly rcode?: number;
  readonly isAuthoritative?: boolean;
  /** Lines of a zone file; DNAME and RRSIG as `dnameLine` and `signatureLine` make them. */
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly additional?: readonly string[];
};

/** The response to a question; the default is NOERROR without AA. */
export function responseTo(name: string, type: string, text: ResponseText): Message {
  const query = makeQuery(1, wireName(name), typeNumber(type));
  return {
    ...query,
    flags: FLAG.QR | FLAG.RA | (text.isAuthoritative === true ? FLAG.AA : 0),
    rcode: text.rcode ?? 0,
    answers: (text.answer ?? []).map(recordFromLine),
    authorities: (text.authority ?? []).map(recordFromLine),
    additionals: (text.additional ?? []).map(recordFromLine),
  };
}

/** Rules for a recursive server that is believed about everything, with wide limits, unless told otherwise. */
export function rulesFor(name: string, type: string, change: Partial<ReadRules> = {}): ReadRules {
  return {
    name: wireName(name.toLowerCase()),
    type: typeNumber(type),
    flags: 0,
    domain: Uint8Array.of(0),
    isRecursive: true,
    isElsewhere: () => false,
    isScrubbing: true,
    rebindingExceptions: undefined,
    minTtl: 0,
    maxTtl: 86_400,
    maxNegativeTtl: 3_600,
    ...change,
  };
}

export function typeNumber(type: string): number {
  const number = typeFromText(type);
  if (number === undefined) throw new Error(`no type: ${type}`);
  return number;
}

export function dnameLine(owner: string, ttl: number, target: string): string {
  return genericLine(owner, ttl, "DNAME", wireName(target));
}

/** A signature of `covered` by `signer`, with so many labels; the rest of it is of no account here. */
export function signatureLine(owner: string, ttl: number, covered: string, labels: number, signer: string): string {
  const number = typeNumber(covered);
  const fixed = Buffer.alloc(18);
  fixed.writeUInt16BE(number, 0);
  fixed[3] = labels;
  return genericLine(owner, ttl, "RRSIG", Buffer.concat([fixed, wireName(signer), Buffer.from("signature")]));
}

export function nsecLine(owner: string, ttl: number, next: string): string {
  return genericLine(owner, ttl, "NSEC", Buffer.concat([wireName(next), Buffer.of(0, 1, 0x40)]));
}

function genericLine(owner: string, ttl: number, type: string, rdata: Uint8Array): string {
  return `${owner} ${ttl} ${type} \\# ${rdata.length} ${Buffer.from(rdata).toString("hex")}`;
}

/** `owner TTL TYPE rdata`, of a signature `owner TTL RRSIG covered`, of a DNAME its target. */
export function recordText({ name, ttl, type, rdata }: ResourceRecord): string {
  const head = `${nameToText(name)} ${ttl} ${typeToText(type)}`;
  if (type === RRTYPE.DNAME) return `${head} ${nameToText(rdata)}`;
  if (typeToText(type) === "RRSIG") return `${head} ${typeToText((rdata[0]! << 8) | rdata[1]!)}`;
  if (typeToText(type) === "NSEC") return `${head} ${nameToText(rdata)}`;
  return `${head} ${rdataToText(type, rdata)}`;
}

/** The message that an entry makes behind its question. */
export function entryMessage(entry: CachedAnswer): DecodeResult {
  const question = Buffer.concat([entry.name, Buffer.of(0, entry.type >> 8, entry.type & 0xff, 0, CLASS.IN)]);
  const header = Buffer.alloc(12);
  header.writeUInt16BE(FLAG.QR | entry.rcode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(entry.answers, 6);
  header.writeUInt16BE(entry.authorities, 8);
  return decodeMessage(Buffer.concat([header, question, entry.bytes]));
}

const RESPONSE_NAMES = ["a.test.", "B.test.", "c.b.test.", "d.c.b.test.", "test.", ".", "x.other.", "a.x.other."];
const arbitraryLine: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(...RESPONSE_NAMES),
    fc.integer({ min: 0, max: 1_000 }),
    fc.constantFrom("A", "AAAA", "CNAME", "CNAME", "CNAME", "DNAME", "MX", "NS", "SOA", "RRSIG", "NSEC", "TXT"),
    fc.constantFrom(...RESPONSE_NAMES),
    fc.integer({ min: 1, max: 3 }),
  )
  .map(([owner, ttl, type, target, number]) => {
    switch (type) {
      case "A":
        return `${owner} ${ttl} A ${number === 1 ? "10.0.0" : "192.0.2"}.${number}`;
      case "AAAA":
        return `${owner} ${ttl} AAAA ${number === 1 ? "fd00" : "2001:db8"}::${number}`;
      case "DNAME":
        return dnameLine(owner, ttl, target);
      case "MX":
        return `${owner} ${ttl} MX ${number} ${target}`;
      case "SOA":
        return `${owner} ${ttl} SOA ${target} ${target} 1 2 3 4 ${number * 100}`;
      case "RRSIG":
        return signatureLine(owner, ttl, number === 1 ? "A" : "CNAME", number, target);
      case "NSEC":
        return nsecLine(owner, ttl, target);
      case "TXT":
        return `${owner} ${ttl} TXT "${number}"`;
      default:
        return `${owner} ${ttl} ${type} ${target}`;
    }
  });

/** Responses of a few names that hang together in all ways. */
export const arbitraryResponse = fc.record({
  name: fc.constantFrom("a.test.", "b.test.", "d.c.b.test.", "."),
  type: fc.constantFrom("A", "AAAA", "CNAME", "MX", "ANY", "RRSIG", "NS"),
  rcode: fc.constantFrom(0, 0, 0, 3, 2),
  isAuthoritative: fc.boolean(),
  answer: fc.array(arbitraryLine, { maxLength: 12 }),
  authority: fc.array(arbitraryLine, { maxLength: 5 }),
});
