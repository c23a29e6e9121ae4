/** From what a response says to the form in which the cache has it. Pure. */
import { RRTYPE } from "../dns/codes.ts";
import type { ResourceRecord } from "../dns/message.ts";
import { foldedEqual, nameLengthAt } from "../dns/name.ts";
import { CACHED_BYTES_MAX, type CachedAnswer } from "../image/cache.ts";
import { nameText } from "./resolver-names.ts";
import type { Asked } from "./resolver-types.ts";

/** What of an answer its records do not tell. */
export type EntryTerms = {
  readonly routing: number;
  readonly storedSeconds: number;
  readonly expiresSeconds: number;
  readonly keptUntilSeconds: number;
};

export type EntryContent = {
  readonly rcode: number;
  /** -1 for none. */
  readonly extendedError: number;
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  /** Those CNAMEs among `answers` that were followed. */
  readonly followed: readonly ResourceRecord[];
  readonly isOpen: boolean;
};

const QUESTION_AT = 12;
/** Type and class behind the question's name. */
const QUESTION_TAIL_BYTES = 4;
const POINTER = 0xc000;
/** Pointers reach 0x3fff; an answer that is put behind a chain of ours lies some way further on. */
const POINTER_OFFSET_MAX = 0x2fff;
/** Type, class, TTL and length behind an RR's owner. */
const TTL_OFFSET = 4;

/** Where the names stand in rdata that may be compressed (RFC 3597 section 4): bytes before the first, and how many there are. */
const COMPRESSIBLE: ReadonlyMap<number, { readonly before: number; readonly names: number }> = new Map([
  [RRTYPE.NS, { before: 0, names: 1 }],
  [RRTYPE.PTR, { before: 0, names: 1 }],
  [RRTYPE.MX, { before: 2, names: 1 }],
  [RRTYPE.SOA, { before: 0, names: 2 }],
]);

type Encoder = {
  readonly bytes: Uint8Array;
  at: number;
  isFull: boolean;
  /** The place in the message of the first byte of `bytes`. */
  readonly base: number;
  readonly question: Uint8Array;
  readonly pointers: number[];
  readonly ttls: number[];
  /** Where each name written so far begins in the message, with its suffixes; filled when it is first needed. */
  readonly spelled: Map<string, number>;
  /** Names below this one of `written` are in `spelled`. */
  known: number;
  readonly written: { readonly name: Uint8Array; readonly at: number }[];
};

const scratch = new Uint8Array(CACHED_BYTES_MAX);

/** The entry of a question, or undefined where its records take more than CACHED_BYTES_MAX. */
export function encodeEntry(asked: Asked, content: EntryContent, terms: EntryTerms): CachedAnswer | undefined {
  const encoder: Encoder = {
    bytes: scratch,
    at: 0,
    isFull: false,
    base: QUESTION_AT + asked.name.length + QUESTION_TAIL_BYTES,
    question: asked.name,
    pointers: [],
    ttls: [],
    spelled: new Map(),
    known: 0,
    written: [],
  };
  const targets: number[] = [];
  for (const record of content.answers) {
    if (encoder.isFull) return undefined;
    const rdataAt = putRecord(encoder, record);
    if (content.followed.includes(record)) targets.push(rdataAt);
  }
  for (const record of content.authorities) putRecord(encoder, record);
  if (encoder.isFull) return undefined;
  return {
    name: asked.name.subarray(0, asked.name.length - 1),
    type: asked.type,
    flags: asked.flags,
    route: asked.route,
    ...terms,
    rcode: content.rcode,
    extendedError: content.extendedError,
    answers: content.answers.length,
    authorities: content.authorities.length,
    bytes: scratch.slice(0, encoder.at),
    pointers: encoder.pointers,
    ttls: encoder.ttls,
    targets,
    isOpen: content.isOpen,
  };
}

/** Returns where its rdata begins. */
function putRecord(encoder: Encoder, { name, type, class: recordClass, ttl, rdata }: ResourceRecord): number {
  putName(encoder, name);
  encoder.ttls.push(encoder.at + TTL_OFFSET);
  putUint16(encoder, type);
  putUint16(encoder, recordClass);
  putUint16(encoder, ttl >>> 16);
  putUint16(encoder, ttl & 0xffff);
  const lengthAt = encoder.at;
  putUint16(encoder, 0);
  const rdataAt = encoder.at;
  putRdata(encoder, type, rdata);
  if (!encoder.isFull) {
    const length = encoder.at - rdataAt;
    encoder.bytes[lengthAt] = length >> 8;
    encoder.bytes[lengthAt + 1] = length & 0xff;
  }
  return rdataAt;
}

function putRdata(encoder: Encoder, type: number, rdata: Uint8Array): void {
  if (type === RRTYPE.CNAME) {
    encoder.written.push({ name: rdata, at: encoder.base + encoder.at });
    putBytes(encoder, withQuestionsCase(rdata, encoder.question));
    return;
  }
  const layout = COMPRESSIBLE.get(type);
  let from = 0;
  if (layout !== undefined) {
    putBytes(encoder, rdata.subarray(0, layout.before));
    from = layout.before;
    for (let index = 0; index < layout.names; index++) {
      const length = nameLengthAt(rdata, from, rdata.length);
      if (length < 0) break;
      putName(encoder, rdata.subarray(from, from + length));
      from += length;
    }
  }
  putBytes(encoder, rdata.subarray(from));
}

/**
 * What a target has in common with the question, in the question's lower case: an upstream that compresses it repeats the
 * letters as they were asked, in whatever case that was (draft-vixie-dnsext-dns0x20).
 */
function withQuestionsCase(target: Uint8Array, question: Uint8Array): Uint8Array {
  for (let at = 0; at < target.length - 1; at += target[at]! + 1) {
    const rest = target.length - at;
    if (rest > question.length || !foldedEqual(target, at, question, question.length - rest, rest)) continue;
    const cased = target.slice();
    cased.set(question.subarray(question.length - rest), at);
    return cased;
  }
  return target;
}

/** Writes a name, ended by a pointer where the rest of it stands already. */
function putName(encoder: Encoder, name: Uint8Array): void {
  const { question } = encoder;
  if (name.length === 1) {
    putUint8(encoder, 0);
    return;
  }
  if (name.length === question.length && foldedEqual(name, 0, question, 0, name.length)) {
    putPointer(encoder, QUESTION_AT);
    return;
  }
  learnNames(encoder);
  encoder.written.push({ name, at: encoder.base + encoder.at });
  let at = 0;
  while (name[at] !== 0) {
    const place = encoder.spelled.get(nameText(name, at));
    if (place !== undefined) {
      putPointer(encoder, place);
      return;
    }
    const end = at + name[at]! + 1;
    putBytes(encoder, name.subarray(at, end));
    at = end;
  }
  putUint8(encoder, 0);
}

/**
 * Notes where the names written since the last time begin, and their suffixes. One that ends in a pointer has the rest noted
 * already, and what is noted stays, so that no place is noted that is none.
 */
function learnNames(encoder: Encoder): void {
  if (encoder.known === 0 && encoder.spelled.size === 0) learnName(encoder, encoder.question, QUESTION_AT);
  for (; encoder.known < encoder.written.length; encoder.known++) {
    const { name, at } = encoder.written[encoder.known]!;
    learnName(encoder, name, at);
  }
}

function learnName(encoder: Encoder, name: Uint8Array, place: number): void {
  for (let at = 0; name[at] !== 0 && place + at <= POINTER_OFFSET_MAX; at += name[at]! + 1) {
    const text = nameText(name, at);
    if (encoder.spelled.has(text)) return;
    encoder.spelled.set(text, place + at);
  }
}

function putPointer(encoder: Encoder, place: number): void {
  encoder.pointers.push(encoder.at);
  putUint16(encoder, POINTER | place);
}

function putUint8(encoder: Encoder, value: number): void {
  if (!hasRoom(encoder, 1)) return;
  encoder.bytes[encoder.at++] = value;
}

function putUint16(encoder: Encoder, value: number): void {
  if (!hasRoom(encoder, 2)) return;
  encoder.bytes[encoder.at++] = value >> 8;
  encoder.bytes[encoder.at++] = value & 0xff;
}

function putBytes(encoder: Encoder, bytes: Uint8Array): void {
  if (!hasRoom(encoder, bytes.length)) return;
  encoder.bytes.set(bytes, encoder.at);
  encoder.at += bytes.length;
}

function hasRoom(encoder: Encoder, length: number): boolean {
  if (encoder.at + length > encoder.bytes.length) encoder.isFull = true;
  return !encoder.isFull;
}
