/**
 * What the membership protocol needs of MessagePack (github.com/msgpack/msgpack, spec.md): maps from names to scalars. Written
 * is the old specification, in which text and bytes are alike "raw"; read is every spelling of both.
 */
import { FIELD_NAME_BYTES_MAX, VALUE_DEPTH_MAX } from "./wire-limits.ts";

/** What stands where a number with a fraction, an array, a map or an extension was: nothing that a field of ours may be. */
export const UNSUPPORTED = Symbol("unsupported");

/** nil is undefined: a field that says nothing is as one that is not there. */
export type Scalar = number | boolean | Uint8Array | undefined | typeof UNSUPPORTED;

/** A place in bytes that moves on as they are read. */
export type Reader = { readonly bytes: Uint8Array; readonly view: DataView; at: number };

export function createReader(bytes: Uint8Array): Reader {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), at: 0 };
}

export function remaining({ bytes, at }: Reader): number {
  return bytes.length - at;
}

/** A length or an integer of 1, 2, 4 or 8 bytes, most significant first; -1 where fewer are left. Above 2^53 it is not exact. */
function readUnsigned(reader: Reader, width: number): number {
  const { view, at } = reader;
  if (remaining(reader) < width) return -1;
  reader.at += width;
  if (width === 1) return view.getUint8(at);
  if (width === 2) return view.getUint16(at);
  if (width === 4) return view.getUint32(at);
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

function readSigned(reader: Reader, width: number): number | undefined {
  const { view, at } = reader;
  if (remaining(reader) < width) return undefined;
  reader.at += width;
  if (width === 1) return view.getInt8(at);
  if (width === 2) return view.getInt16(at);
  if (width === 4) return view.getInt32(at);
  return view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4);
}

type Token =
  | { readonly kind: "scalar"; readonly value: Scalar }
  | { readonly kind: "array" | "map"; readonly count: number };

/** Not well formed: what follows cannot be told. */
const BROKEN = undefined;

function takeBytes(reader: Reader, length: number): Token | undefined {
  if (length < 0 || length > remaining(reader)) return BROKEN;
  const value = reader.bytes.subarray(reader.at, reader.at + length);
  reader.at += length;
  return { kind: "scalar", value };
}

function skipBytes(reader: Reader, length: number): Token | undefined {
  if (length < 0 || length > remaining(reader)) return BROKEN;
  reader.at += length;
  return { kind: "scalar", value: UNSUPPORTED };
}

/** Every element takes a byte or more, so that no count promises more than there is. */
function container(reader: Reader, kind: "array" | "map", count: number): Token | undefined {
  const least = kind === "map" ? count * 2 : count;
  return count < 0 || least > remaining(reader) ? BROKEN : { kind, count };
}

function unsigned(reader: Reader, width: number): Token | undefined {
  const value = readUnsigned(reader, width);
  if (value < 0) return BROKEN;
  return { kind: "scalar", value: Number.isSafeInteger(value) ? value : UNSUPPORTED };
}

function signed(reader: Reader, width: number): Token | undefined {
  const value = readSigned(reader, width);
  if (value === undefined) return BROKEN;
  return { kind: "scalar", value: Number.isSafeInteger(value) ? value : UNSUPPORTED };
}

function extension(reader: Reader, width: number): Token | undefined {
  const length = readUnsigned(reader, width);
  return length < 0 ? BROKEN : skipBytes(reader, length + 1);
}

/** What the bytes 0xc0 to 0xdf begin. */
function readTagged(reader: Reader, tag: number): Token | undefined {
  switch (tag) {
    case 0xc0:
      return { kind: "scalar", value: undefined };
    case 0xc2:
    case 0xc3:
      return { kind: "scalar", value: tag === 0xc3 };
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return takeBytes(reader, readUnsigned(reader, 1 << (tag - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return extension(reader, 1 << (tag - 0xc7));
    case 0xca:
    case 0xcb:
      return skipBytes(reader, tag === 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return unsigned(reader, 1 << (tag - 0xcc));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return signed(reader, 1 << (tag - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return skipBytes(reader, 1 + (1 << (tag - 0xd4)));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return takeBytes(reader, readUnsigned(reader, 1 << (tag - 0xd9)));
    case 0xdc:
    case 0xdd:
      return container(reader, "array", readUnsigned(reader, tag === 0xdc ? 2 : 4));
    case 0xde:
    case 0xdf:
      return container(reader, "map", readUnsigned(reader, tag === 0xde ? 2 : 4));
    default:
      return BROKEN;
  }
}

function readToken(reader: Reader): Token | undefined {
  const tag = readUnsigned(reader, 1);
  if (tag < 0) return BROKEN;
  if (tag < 0x80) return { kind: "scalar", value: tag };
  if (tag < 0x90) return container(reader, "map", tag & 0x0f);
  if (tag < 0xa0) return container(reader, "array", tag & 0x0f);
  if (tag < 0xc0) return takeBytes(reader, tag & 0x1f);
  if (tag >= 0xe0) return { kind: "scalar", value: tag - 0x100 };
  return readTagged(reader, tag);
}

/** Passes over what a container holds. False where it is not well formed or too deep. */
function skipElements(reader: Reader, elements: number, depth: number): boolean {
  if (depth > VALUE_DEPTH_MAX) return false;
  for (let index = 0; index < elements; index++) {
    const token = readToken(reader);
    if (token === undefined) return false;
    if (token.kind !== "scalar" && !skipElements(reader, elementsOf(token), depth + 1)) return false;
  }
  return true;
}

function elementsOf({ kind, count }: { readonly kind: "array" | "map"; readonly count: number }): number {
  return kind === "map" ? count * 2 : count;
}

/** The scalar ahead; a container is passed over and is UNSUPPORTED. */
function readScalar(reader: Reader): { readonly value: Scalar } | undefined {
  const token = readToken(reader);
  if (token === undefined) return undefined;
  if (token.kind === "scalar") return token;
  return skipElements(reader, elementsOf(token), 1) ? { value: UNSUPPORTED } : undefined;
}

export type Fields = ReadonlyMap<string, Scalar>;

/**
 * The map ahead, with those of its values whose names are in `names`; of a name that comes twice the last counts. Undefined
 * where no map is ahead or it is not well formed. Byte strings are parts of the reader's bytes, not copies.
 */
export function readFields(reader: Reader, names: ReadonlySet<string>): Fields | undefined {
  const token = readToken(reader);
  if (token?.kind !== "map") return undefined;
  const fields = new Map<string, Scalar>();
  for (let index = 0; index < token.count; index++) {
    const key = readScalar(reader);
    const field = readScalar(reader);
    if (key === undefined || field === undefined) return undefined;
    const name = fieldName(key.value);
    if (name !== undefined && names.has(name)) fields.set(name, field.value);
  }
  return fields;
}

function fieldName(key: Scalar): string | undefined {
  if (!(key instanceof Uint8Array) || key.length > FIELD_NAME_BYTES_MAX) return undefined;
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
}

/** Bytes that grow as they are written. */
export type Writer = { bytes: Uint8Array; at: number };

const FIRST_BYTES = 256;

export function createWriter(): Writer {
  return { bytes: new Uint8Array(FIRST_BYTES), at: 0 };
}

/** What has been written; it shares the writer's memory. */
export function written({ bytes, at }: Writer): Uint8Array {
  return bytes.subarray(0, at);
}

function reserve(writer: Writer, length: number): void {
  if (writer.at + length <= writer.bytes.length) return;
  const grown = new Uint8Array(Math.max(writer.bytes.length * 2, writer.at + length));
  grown.set(written(writer));
  writer.bytes = grown;
}

/** `value` in the `width` (1, 2 or 4) bytes ahead, most significant first. */
export function putUnsigned(writer: Writer, value: number, width: number): void {
  reserve(writer, width);
  for (let shift = (width - 1) * 8; shift >= 0; shift -= 8) writer.bytes[writer.at++] = value >>> shift;
}

export function putBytes(writer: Writer, bytes: Uint8Array): void {
  reserve(writer, bytes.length);
  writer.bytes.set(bytes, writer.at);
  writer.at += bytes.length;
}

/** A whole number from 0 to 2^32 - 1 in as few bytes as it takes. */
function putInteger(writer: Writer, value: number): void {
  if (value < 0x80) putUnsigned(writer, value, 1);
  else if (value < 0x100) putTagged(writer, 0xcc, value, 1);
  else if (value < 0x1_0000) putTagged(writer, 0xcd, value, 2);
  else putTagged(writer, 0xce, value, 4);
}

function putTagged(writer: Writer, tag: number, value: number, width: number): void {
  putUnsigned(writer, tag, 1);
  putUnsigned(writer, value, width);
}

/** The old specification has no length of one byte: members that know only it would not read one. */
function putRaw(writer: Writer, bytes: Uint8Array): void {
  if (bytes.length < 32) putUnsigned(writer, 0xa0 | bytes.length, 1);
  else if (bytes.length < 0x1_0000) putTagged(writer, 0xda, bytes.length, 2);
  else putTagged(writer, 0xdb, bytes.length, 4);
  putBytes(writer, bytes);
}

export type FieldValue = number | boolean | string | Uint8Array;

/** A map of at most 15 fields. Numbers are whole, from 0 to 2^32 - 1; text is written as UTF-8. */
export function putFields(writer: Writer, fields: Readonly<Record<string, FieldValue>>): void {
  const entries = Object.entries(fields);
  if (entries.length > 15) throw new RangeError(`${entries.length} fields are more than a message has`);
  putUnsigned(writer, 0x80 | entries.length, 1);
  for (const [name, value] of entries) {
    putRaw(writer, Buffer.from(name, "latin1"));
    if (typeof value === "number") putInteger(writer, value);
    else if (typeof value === "boolean") putUnsigned(writer, value ? 0xc3 : 0xc2, 1);
    else putRaw(writer, typeof value === "string" ? Buffer.from(value, "utf8") : value);
  }
}
