/**
 * Whole DNS messages as objects (RFC 1035 section 4, RFC 6891): for clients, transfers, updates and tests. The answer
 * path of the server reads and writes its bytes in place and does not come here.
 */

import { CLASS, FLAG, RRTYPE } from "./codes.ts";
import { type Edns, ednsBytes, ednsFromRecord, optionsFromRdata, rcodeUpperBits, writeEdns } from "./edns.ts";
import { readWireRdata, writeWireRdata } from "./rdata-wire.ts";
import { failReader, openReader, type Reader, readName, readUint16, readUint32 } from "./reader.ts";
import {
  finishWriter,
  openWriter,
  rewindWriter,
  type Writer,
  writeCompressedName,
  writeUint16,
  writeUint32,
} from "./writer.ts";

/** Names are uncompressed wire names. */
export type Question = { readonly name: Uint8Array; readonly type: number; readonly class: number };

export type ResourceRecord = {
  readonly name: Uint8Array;
  readonly type: number;
  readonly class: number;
  /** Seconds. */
  readonly ttl: number;
  /** Uncompressed. */
  readonly rdata: Uint8Array;
};

export type Message = {
  readonly id: number;
  /** The bits of FLAG. */
  readonly flags: number;
  readonly opcode: number;
  /** With the upper bits of EDNS. */
  readonly rcode: number;
  readonly questions: readonly Question[];
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  /** Without OPT. */
  readonly additionals: readonly ResourceRecord[];
  readonly edns: Edns | undefined;
};

export type DecodeResult =
  | { readonly kind: "message"; readonly message: Message; readonly trailingBytes: number }
  | { readonly kind: "error"; readonly reason: string };

export type EncodeResult = { readonly bytes: Uint8Array; readonly isTruncated: boolean };

export const HEADER_BYTES = 12;
export const MESSAGE_BYTES_MAX = 65_535;

const FLAGS_MASK = 0x87b0;
const TTL_SIGN_BIT = 0x8000_0000;

/**
 * The message in `bytes`, or why it is none. Bytes behind its last record are counted in `trailingBytes`. Anything may
 * be passed; nothing is thrown.
 */
export function decodeMessage(bytes: Uint8Array): DecodeResult {
  if (bytes.length < HEADER_BYTES) return { kind: "error", reason: "shorter than a header" };
  const reader = openReader(bytes);
  const id = readUint16(reader);
  const word = readUint16(reader);
  const counts = [readUint16(reader), readUint16(reader), readUint16(reader), readUint16(reader)] as const;
  const questions: Question[] = [];
  for (let index = 0; index < counts[0] && reader.fault === ""; index++) {
    questions.push({ name: readName(reader), type: readUint16(reader), class: readUint16(reader) });
  }
  const answers = readRecords(reader, counts[1], "answer");
  const authorities = readRecords(reader, counts[2], "authority");
  const all = readRecords(reader, counts[3], "additional");
  const options = all.filter((record) => record.type === RRTYPE.OPT);
  const opt = options[0];
  if (options.length > 1) failReader(reader, "several OPT records");
  if (opt !== undefined && opt.name.length !== 1) failReader(reader, "OPT with an owner other than the root");
  const ednsOptions = opt === undefined ? [] : optionsFromRdata(opt.rdata);
  if (ednsOptions === undefined) failReader(reader, "EDNS options do not fill their record");
  if (reader.fault !== "") return { kind: "error", reason: reader.fault };
  const message: Message = {
    id,
    flags: word & FLAGS_MASK,
    opcode: (word >> 11) & 0xf,
    rcode: (word & 0xf) | (opt === undefined ? 0 : rcodeUpperBits(opt.ttl)),
    questions,
    answers,
    authorities,
    additionals: all.filter((record) => record.type !== RRTYPE.OPT),
    edns: opt === undefined ? undefined : ednsFromRecord(opt.class, opt.ttl, ednsOptions ?? []),
  };
  return { kind: "message", message, trailingBytes: reader.end - reader.at };
}

/**
 * The bytes of a message, at most `limitBytes`. What does not fit is left off from the end: TC is set where a question,
 * an answer or an authority record is missing (RFC 2181 section 9). OPT always goes with it; the limit has room for
 * the header and OPT at least.
 */
export function encodeMessage(message: Message, limitBytes = MESSAGE_BYTES_MAX): EncodeResult {
  const { edns, questions, answers, authorities, additionals } = message;
  const writer = openWriter(limitBytes);
  const optBytes = edns === undefined ? 0 : ednsBytes(edns);
  writer.at = HEADER_BYTES;
  const fits = (write: () => void): boolean => {
    const start = writer.at;
    write();
    if (!writer.isFull && writer.at + optBytes <= limitBytes) return true;
    rewindWriter(writer, start);
    return false;
  };
  const questionCount = countWhile(questions, (question) => fits(() => writeQuestion(writer, question)));
  const hasQuestions = questionCount === questions.length;
  const answerCount = hasQuestions ? countWhile(answers, (record) => fits(() => writeRecord(writer, record))) : 0;
  const hasAnswers = hasQuestions && answerCount === answers.length;
  const authorityCount = hasAnswers ? countWhile(authorities, (record) => fits(() => writeRecord(writer, record))) : 0;
  const isTruncated = !hasAnswers || authorityCount < authorities.length;
  const additionalCount = isTruncated
    ? 0
    : countWhile(additionals, (record) => fits(() => writeRecord(writer, record)));
  if (edns !== undefined) writeEdns(writer, edns, message.rcode);
  const end = writer.at;
  writer.at = 0;
  writeUint16(writer, message.id);
  const flags = (message.flags & FLAGS_MASK) | (isTruncated ? FLAG.TC : 0);
  writeUint16(writer, flags | (message.opcode << 11) | (message.rcode & 0xf));
  for (const count of [questionCount, answerCount, authorityCount]) writeUint16(writer, count);
  writeUint16(writer, additionalCount + (edns === undefined ? 0 : 1));
  writer.at = end;
  return { bytes: finishWriter(writer), isTruncated };
}

/** A query for one name, with recursion desired or not. */
export function makeQuery(id: number, name: Uint8Array, type: number, flags = 0, edns?: Edns): Message {
  const question: Question = { name, type, class: CLASS.IN };
  return {
    id,
    flags,
    opcode: 0,
    rcode: 0,
    questions: [question],
    answers: [],
    authorities: [],
    additionals: [],
    edns,
  };
}

function readRecords(reader: Reader, count: number, section: string): readonly ResourceRecord[] {
  const records: ResourceRecord[] = [];
  for (let index = 0; index < count && reader.fault === ""; index++) {
    const name = readName(reader);
    const type = readUint16(reader);
    const recordClass = readUint16(reader);
    const ttlWord = readUint32(reader);
    const length = readUint16(reader);
    if (type === RRTYPE.OPT && section !== "additional") failReader(reader, `OPT in the ${section} section`);
    const rdata = readWireRdata(reader, type, recordClass, length);
    // RFC 2181 section 8: a TTL with its first bit set counts as zero. OPT has other things in its place.
    const ttl = ttlWord >= TTL_SIGN_BIT && type !== RRTYPE.OPT ? 0 : ttlWord;
    records.push({ name, type, class: recordClass, ttl, rdata });
  }
  return records;
}

function writeQuestion(writer: Writer, question: Question): void {
  writeCompressedName(writer, question.name);
  writeUint16(writer, question.type);
  writeUint16(writer, question.class);
}

function writeRecord(writer: Writer, record: ResourceRecord): void {
  writeCompressedName(writer, record.name);
  writeUint16(writer, record.type);
  writeUint16(writer, record.class);
  writeUint32(writer, record.ttl);
  const lengthAt = writer.at;
  writeUint16(writer, 0);
  writeWireRdata(writer, record.type, record.rdata);
  if (writer.isFull) return;
  const length = writer.at - lengthAt - 2;
  writer.bytes[lengthAt] = length >> 8;
  writer.bytes[lengthAt + 1] = length & 0xff;
}

function countWhile<Item>(items: readonly Item[], accept: (item: Item) => boolean): number {
  const refused = items.findIndex((item) => !accept(item));
  return refused < 0 ? items.length : refused;
}
