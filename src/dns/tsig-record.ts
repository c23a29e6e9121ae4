/** The TSIG record (RFC 8945 section 4.2) in the bytes of a message: found, taken out, put in. */
import { CLASS, RRTYPE } from "./codes.ts";
import { HEADER_BYTES } from "./message.ts";
import { LABEL_BYTES_MAX, LOWER, nameLengthAt } from "./name.ts";
import { openReader, type Reader, readBytes, readName, readUint16, readUint32 } from "./reader.ts";
import { finishWriter, openWriter, type Writer, writeBytes, writeUint16, writeUint32 } from "./writer.ts";

export type TsigRecord = {
  /** The key's, lower-case. */
  readonly name: Uint8Array;
  /** The algorithm's wire name, lower-case. */
  readonly algorithm: Uint8Array;
  /** Since 1970, 48 bits. */
  readonly timeSeconds: number;
  readonly fudgeSeconds: number;
  readonly mac: Uint8Array;
  readonly originalId: number;
  readonly error: number;
  readonly otherData: Uint8Array;
};

/** What an answer needs to know of a message beside its header. */
export type Outline = {
  /** Where the only question ends; 0: there is none, or not just one. */
  readonly questionEnd: number;
  /** The TTL word of the first OPT; undefined: no OPT. */
  readonly optFlags: number | undefined;
};

export type TsigPlace =
  | { readonly kind: "none" }
  | { readonly kind: "malformed"; readonly outline: Outline }
  /** `at` is where the record begins, and all of the message lies before it. */
  | { readonly kind: "record"; readonly at: number; readonly record: TsigRecord; readonly outline: Outline };

const POINTER_BITS = 0xc0;
/** Type, class, TTL and length of the rdata. */
const FIXED_BYTES = 10;
/** Time, fudge, length of the MAC, original id, error, length of the other data. */
const RDATA_FIXED_BYTES = 16;
/** Bytes of a record beside its two names, its MAC and its other data. */
export const TSIG_FIXED_BYTES = FIXED_BYTES + RDATA_FIXED_BYTES;
const UINT32_VALUES = 0x1_0000_0000;
const NO_OUTLINE: Outline = { questionEnd: 0, optFlags: undefined };

/**
 * Finds the TSIG record of a message. Malformed is a message that has it elsewhere than at its end, more than once, or in
 * a wrong form (RFC 8945 section 5.2), and one whose records cannot be told apart.
 */
export function findTsig(bytes: Uint8Array): TsigPlace {
  if (bytes.length < HEADER_BYTES) return { kind: "none" };
  const reader = openReader(bytes);
  reader.at = 4;
  const questionCount = readUint16(reader);
  const recordCount = readUint16(reader) + readUint16(reader);
  const additionalCount = readUint16(reader);
  for (let index = 0; index < questionCount && reader.fault === ""; index++) {
    readName(reader);
    readUint32(reader);
  }
  if (reader.fault !== "") return { kind: "malformed", outline: NO_OUTLINE };
  let outline: Outline = { questionEnd: questionCount === 1 ? reader.at : 0, optFlags: undefined };
  const count = recordCount + additionalCount;
  let at = reader.at;
  for (let index = 0; index < count; index++) {
    const nameEnd = skipName(bytes, at);
    const rdataAt = nameEnd + FIXED_BYTES;
    if (nameEnd < 0 || rdataAt > bytes.length) return { kind: "malformed", outline };
    const end = rdataAt + uint16At(bytes, rdataAt - 2);
    if (end > bytes.length) return { kind: "malformed", outline };
    const type = uint16At(bytes, nameEnd);
    if (type === RRTYPE.TSIG) {
      // What lies behind the record is covered by no MAC.
      const isLast = index === count - 1 && additionalCount > 0 && end === bytes.length;
      const record = isLast ? readTsigRecord(reader, at) : undefined;
      return record === undefined ? { kind: "malformed", outline } : { kind: "record", at, record, outline };
    }
    if (type === RRTYPE.OPT && outline.optFlags === undefined) {
      outline = { ...outline, optFlags: uint16At(bytes, nameEnd + 6) };
    }
    at = end;
  }
  return { kind: "none" };
}

/** Reads the record at `at`, which fills the rest of the message; undefined: its form is wrong. */
function readTsigRecord(reader: Reader, at: number): TsigRecord | undefined {
  reader.at = at;
  const name = lowerName(readName(reader));
  readUint16(reader);
  const recordClass = readUint16(reader);
  const ttl = readUint32(reader);
  readUint16(reader);
  // The algorithm's name is not compressed (RFC 3597 section 4).
  const algorithmBytes = nameLengthAt(reader.bytes, reader.at, reader.end);
  if (reader.fault !== "" || recordClass !== CLASS.ANY || ttl !== 0 || algorithmBytes < 0) return undefined;
  const algorithm = lowerName(readBytes(reader, algorithmBytes));
  const timeSeconds = readUint16(reader) * UINT32_VALUES + readUint32(reader);
  const fudgeSeconds = readUint16(reader);
  const mac = readBytes(reader, readUint16(reader));
  const originalId = readUint16(reader);
  const error = readUint16(reader);
  const otherData = readBytes(reader, readUint16(reader));
  if (reader.fault !== "" || reader.at !== reader.end) return undefined;
  return { name, algorithm, timeSeconds, fudgeSeconds, mac, originalId, error, otherData };
}

/** Where the name at `at` ends in the message, or -1. What a pointer leads to is not looked at. */
function skipName(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length) {
    const octet = bytes[at]!;
    if (octet === 0) return at + 1;
    if ((octet & POINTER_BITS) === POINTER_BITS) return at + 2;
    if (octet > LABEL_BYTES_MAX) return -1;
    at += octet + 1;
  }
  return -1;
}

/** The message before the record at `at`, as it was before that was added, with this id. */
export function withoutTsig(bytes: Uint8Array, at: number, id: number): Uint8Array {
  // Not `slice`: a Buffer would share its memory.
  const message = new Uint8Array(bytes.subarray(0, at));
  putUint16(message, 0, id);
  putUint16(message, 10, uint16At(message, 10) - 1);
  return message;
}

/** The message with the record behind it. */
export function appendTsig(message: Uint8Array, record: TsigRecord): Uint8Array {
  const { name, algorithm, mac, otherData } = record;
  const rdataBytes = algorithm.length + RDATA_FIXED_BYTES + mac.length + otherData.length;
  const writer = openWriter(message.length + name.length + FIXED_BYTES + rdataBytes);
  writeBytes(writer, message);
  writeBytes(writer, name);
  writeUint16(writer, RRTYPE.TSIG);
  writeUint16(writer, CLASS.ANY);
  writeUint32(writer, 0);
  writeUint16(writer, rdataBytes);
  writeBytes(writer, algorithm);
  writeTimers(writer, record);
  writeUint16(writer, mac.length);
  writeBytes(writer, mac);
  writeUint16(writer, record.originalId);
  writeUint16(writer, record.error);
  writeUint16(writer, otherData.length);
  writeBytes(writer, otherData);
  putUint16(writer.bytes, 10, uint16At(message, 10) + 1);
  return writer.bytes;
}

/** The TSIG variables of a MAC (RFC 8945 section 4.3.3). */
export function tsigVariables(record: TsigRecord): Uint8Array {
  const { name, algorithm, otherData } = record;
  const writer = openWriter(name.length + algorithm.length + otherData.length + 18);
  writeBytes(writer, name);
  writeUint16(writer, CLASS.ANY);
  writeUint32(writer, 0);
  writeBytes(writer, algorithm);
  writeTimers(writer, record);
  writeUint16(writer, record.error);
  writeUint16(writer, otherData.length);
  writeBytes(writer, otherData);
  return writer.bytes;
}

/** The TSIG timers, which stand for the variables from the second message of an answer on (RFC 8945 section 5.3.1). */
export function tsigTimers(record: TsigRecord): Uint8Array {
  const writer = openWriter(8);
  writeTimers(writer, record);
  return finishWriter(writer);
}

/** Seconds as the 48 bits of other data (RFC 8945 section 5.2.3). */
export function uint48Bytes(seconds: number): Uint8Array {
  const writer = openWriter(6);
  writeUint16(writer, Math.floor(seconds / UINT32_VALUES));
  writeUint32(writer, seconds % UINT32_VALUES);
  return writer.bytes;
}

function writeTimers(writer: Writer, record: Pick<TsigRecord, "timeSeconds" | "fudgeSeconds">): void {
  writeUint16(writer, Math.floor(record.timeSeconds / UINT32_VALUES));
  writeUint32(writer, record.timeSeconds % UINT32_VALUES);
  writeUint16(writer, record.fudgeSeconds);
}

function lowerName(name: Uint8Array): Uint8Array {
  return name.map((byte) => LOWER[byte]!);
}

export function uint16At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

export function putUint16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value & 0xff;
}
