/** Responses of upstreams as text, what the resolver reads in them as text, and its entries put together as messages again. */
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
