/**
 * A writer of one DNS message with name compression (RFC 1035 section 4.1.4). A name is compressed against names
 * written before it that are equal without regard to case; the bytes that are written keep their case.
 * Writing past the limit sets `isFull` and leaves the bytes behind the limit unwritten.
 */

import { LOWER } from "./name.ts";

export type Writer = {
  readonly bytes: Uint8Array;
  at: number;
  isFull: boolean;
  /** Where each name written so far starts, with those of its suffixes, by its lower-case bytes. */
  readonly names: Map<string, number>;
};

const POINTER = 0xc000;
const POINTER_OFFSET_MAX = 0x3fff;

/** A writer of at most `limitBytes`. */
export function openWriter(limitBytes: number): Writer {
  return { bytes: new Uint8Array(limitBytes), at: 0, isFull: false, names: new Map() };
}

export function writeUint8(writer: Writer, value: number): void {
  if (!hasRoom(writer, 1)) return;
  writer.bytes[writer.at] = value;
  writer.at++;
}

export function writeUint16(writer: Writer, value: number): void {
  if (!hasRoom(writer, 2)) return;
  writer.bytes[writer.at] = value >> 8;
  writer.bytes[writer.at + 1] = value & 0xff;
  writer.at += 2;
}

export function writeUint32(writer: Writer, value: number): void {
  writeUint16(writer, value >>> 16);
  writeUint16(writer, value & 0xffff);
}

export function writeBytes(writer: Writer, bytes: Uint8Array): void {
  if (!hasRoom(writer, bytes.length)) return;
  writer.bytes.set(bytes, writer.at);
  writer.at += bytes.length;
}

/** Writes a wire name, ended by a pointer where the rest of it was written before. */
export function writeCompressedName(writer: Writer, name: Uint8Array): void {
  const key = foldedKey(name);
  let at = 0;
  while (name[at]! !== 0) {
    const suffix = key.slice(at);
    const offset = writer.names.get(suffix);
    if (offset !== undefined) {
      writeUint16(writer, POINTER | offset);
      return;
    }
    const length = name[at]! + 1;
    if (!hasRoom(writer, length)) return;
    if (writer.at <= POINTER_OFFSET_MAX) writer.names.set(suffix, writer.at);
    writeBytes(writer, name.subarray(at, at + length));
    at += length;
  }
  writeUint8(writer, 0);
}

/** Takes back all that was written from `at` on. */
export function rewindWriter(writer: Writer, at: number): void {
  writer.at = at;
  writer.isFull = false;
  for (const [suffix, offset] of writer.names) if (offset >= at) writer.names.delete(suffix);
}

/** A copy of what was written. */
export function finishWriter(writer: Writer): Uint8Array {
  return writer.bytes.slice(0, writer.at);
}

function hasRoom(writer: Writer, length: number): boolean {
  if (writer.at + length > writer.bytes.length) writer.isFull = true;
  return !writer.isFull;
}

function foldedKey(name: Uint8Array): string {
  let key = "";
  for (const byte of name) key += String.fromCharCode(LOWER[byte]!);
  return key;
}
