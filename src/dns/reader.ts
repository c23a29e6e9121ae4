/**
 * A reader over the bytes of one DNS message that never reads outside of them. The first thing that is wrong sets
 * `fault`, and every read after it gives zero or nothing, so a caller checks once behind a group of reads.
 */

import { LABEL_BYTES_MAX, NAME_BYTES_MAX, ROOT_NAME } from "./name.ts";

export type Reader = {
  readonly bytes: Uint8Array;
  /** Where the message ends in `bytes`. Compression offsets count from the start of `bytes`. */
  readonly end: number;
  at: number;
  /** Empty while all is well. */
  fault: string;
};

const HEADER_BYTES = 12;
const POINTER_BITS = 0xc0;
/** A name has at most this many labels, and no more pointers than labels can help it. */
const POINTERS_MAX = 127;
const EMPTY = new Uint8Array(0);
/** For `readName`, which copies its result out. */
const nameBytes = new Uint8Array(NAME_BYTES_MAX);

export function openReader(bytes: Uint8Array): Reader {
  return { bytes, end: bytes.length, at: 0, fault: "" };
}

export function readUint8(reader: Reader): number {
  const at = take(reader, 1);
  return at < 0 ? 0 : reader.bytes[at]!;
}

export function readUint16(reader: Reader): number {
  const at = take(reader, 2);
  return at < 0 ? 0 : (reader.bytes[at]! << 8) | reader.bytes[at + 1]!;
}

export function readUint32(reader: Reader): number {
  const upper = readUint16(reader);
  return upper * 65_536 + readUint16(reader);
}

/** A copy of the next `length` bytes, or an empty array after a fault. */
export function readBytes(reader: Reader, length: number): Uint8Array {
  const at = take(reader, length);
  // Not `slice`: a Buffer would share its memory.
  return at < 0 ? EMPTY : new Uint8Array(reader.bytes.subarray(at, at + length));
}

/**
 * The name at the reader, uncompressed (RFC 1035 section 4.1.4), or the root after a fault. A pointer must lead to
 * before the labels that it ends, which every honest one does and no loop can.
 */
export function readName(reader: Reader): Uint8Array {
  if (reader.fault !== "") return ROOT_NAME;
  const { bytes, end } = reader;
  const name = nameBytes;
  let length = 0;
  let at = reader.at;
  let behind = -1;
  let labelsStart = at;
  let pointers = 0;
  for (;;) {
    if (at >= end) return failName(reader, "name ends outside of the message");
    const octet = bytes[at]!;
    if ((octet & POINTER_BITS) === POINTER_BITS) {
      if (at + 2 > end) return failName(reader, "name ends outside of the message");
      const target = ((octet & ~POINTER_BITS) << 8) | bytes[at + 1]!;
      pointers++;
      if (behind < 0) behind = at + 2;
      if (target < HEADER_BYTES || target >= labelsStart) {
        return failName(reader, "compression pointer does not lead back");
      }
      if (pointers > POINTERS_MAX) return failName(reader, "too many compression pointers");
      at = target;
      labelsStart = target;
      continue;
    }
    if (octet > LABEL_BYTES_MAX) return failName(reader, "reserved label type");
    if (at + 1 + octet > end) return failName(reader, "name ends outside of the message");
    if (length + 1 + octet > NAME_BYTES_MAX) return failName(reader, `name longer than ${NAME_BYTES_MAX} bytes`);
    for (let index = 0; index <= octet; index++) name[length + index] = bytes[at + index]!;
    length += octet + 1;
    at += octet + 1;
    if (octet === 0) break;
  }
  reader.at = behind < 0 ? at : behind;
  return name.slice(0, length);
}

/** Marks the message as bad; the first reason stays. */
export function failReader(reader: Reader, fault: string): void {
  if (reader.fault === "") reader.fault = fault;
}

function failName(reader: Reader, fault: string): Uint8Array {
  failReader(reader, fault);
  return ROOT_NAME;
}

/** Moves over `length` bytes and gives where they start, or -1. */
function take(reader: Reader, length: number): number {
  if (reader.fault !== "") return -1;
  const at = reader.at;
  if (at + length > reader.end) {
    failReader(reader, "message ends early");
    return -1;
  }
  reader.at = at + length;
  return at;
}
