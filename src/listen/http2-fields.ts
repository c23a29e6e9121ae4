/** Fields of HTTP/2 requests: decoding of HPACK (RFC 7541). Answers are encoded without a table of their own. */
import { decodeHuffman } from "./http2-huffman.ts";

/** Of the dynamic table, which we never change (section 4.2). */
const TABLE_BYTES_MAX = 4_096;
/** Of each field besides its texts (section 4.1). */
const FIELD_OVERHEAD_BYTES = 32;
/** A number that needs more is no length and no index of anything. */
const NUMBER_MAX = 2 ** 24;

type Field = { readonly name: string; readonly value: string };

/** RFC 7541 appendix A. */
const STATIC_TABLE: readonly Field[] = [
  [":authority"],
  [":method", "GET", "POST"],
  [":path", "/", "/index.html"],
  [":scheme", "http", "https"],
  [":status", "200", "204", "206", "304", "400", "404", "500"],
  ["accept-charset"],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language"],
  ["accept-ranges"],
  ["accept"],
  ["access-control-allow-origin"],
  ["age"],
  ["allow"],
  ["authorization"],
  ["cache-control"],
  ["content-disposition"],
  ["content-encoding"],
  ["content-language"],
  ["content-length"],
  ["content-location"],
  ["content-range"],
  ["content-type"],
  ["cookie"],
  ["date"],
  ["etag"],
  ["expect"],
  ["expires"],
  ["from"],
  ["host"],
  ["if-match"],
  ["if-modified-since"],
  ["if-none-match"],
  ["if-range"],
  ["if-unmodified-since"],
  ["last-modified"],
  ["link"],
  ["location"],
  ["max-forwards"],
  ["proxy-authenticate"],
  ["proxy-authorization"],
  ["range"],
  ["referer"],
  ["refresh"],
  ["retry-after"],
  ["server"],
  ["set-cookie"],
  ["strict-transport-security"],
  ["transfer-encoding"],
  ["user-agent"],
  ["vary"],
  ["via"],
  ["www-authenticate"],
].flatMap(([name = "", ...values]) => (values.length === 0 ? [""] : values).map((value) => ({ name, value })));

/** Of a request, as far as anybody asks. */
export type RequestFields = {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly contentType: string | undefined;
  readonly contentLength: string | undefined;
};

export type FieldDecoder = {
  /**
   * The fields of one whole block. "broken": it is none, and no later block of the connection can be understood; "large": its
   * fields are longer than `listBytesMax`.
   */
  readonly decode: (block: Buffer) => RequestFields | "broken" | "large";
};

export function createFieldDecoder(listBytesMax: number): FieldDecoder {
  const table = createTable();
  return { decode: (block) => decodeBlock(block, table, listBytesMax) };
}

type Table = {
  /** From 1 on: the static table, then the dynamic one, the latest first. */
  readonly at: (index: number) => Field | undefined;
  readonly add: (field: Field) => void;
  readonly resize: (bytes: number) => void;
};

function createTable(): Table {
  const fields: Field[] = [];
  let bytes = 0;
  let bytesMax = TABLE_BYTES_MAX;
  const evict = () => {
    while (bytes > bytesMax) {
      const oldest = fields.pop();
      if (oldest === undefined) return;
      bytes -= sizeOf(oldest);
    }
  };
  return {
    at: (index) => (index <= STATIC_TABLE.length ? STATIC_TABLE[index - 1] : fields[index - 1 - STATIC_TABLE.length]),
    add: (field) => {
      fields.unshift(field);
      bytes += sizeOf(field);
      evict();
    },
    resize: (next) => {
      bytesMax = next;
      evict();
    },
  };
}

function sizeOf({ name, value }: Field): number {
  return name.length + value.length + FIELD_OVERHEAD_BYTES;
}

/** Where the block is read. */
type Cursor = { readonly bytes: Buffer; at: number };

function decodeBlock(bytes: Buffer, table: Table, listBytesMax: number): RequestFields | "broken" | "large" {
  const cursor: Cursor = { bytes, at: 0 };
  const request = {
    method: undefined as string | undefined,
    target: undefined as string | undefined,
    contentType: undefined as string | undefined,
    contentLength: undefined as string | undefined,
  };
  let listBytes = 0;
  let fieldCount = 0;
  while (cursor.at < bytes.length) {
    const first = bytes[cursor.at]!;
    if ((first & 0xe0) === 0x20) {
      // Sizes stand at the front only, two at most (section 4.2).
      const size = readNumber(cursor, 5);
      if (size < 0 || size > TABLE_BYTES_MAX || fieldCount > 0) return "broken";
      table.resize(size);
      continue;
    }
    const field = readField(cursor, table, first);
    if (field === undefined) return "broken";
    fieldCount += 1;
    listBytes += sizeOf(field);
    if (listBytes > listBytesMax) continue;
    if (field.name === ":method") request.method = field.value;
    else if (field.name === ":path") request.target = field.value;
    else if (field.name === "content-type") request.contentType = field.value;
    else if (field.name === "content-length") request.contentLength = field.value;
  }
  return listBytes > listBytesMax ? "large" : request;
}

/** Section 6.1 and 6.2. */
function readField(cursor: Cursor, table: Table, first: number): Field | undefined {
  if (first >= 0x80) return table.at(readNumber(cursor, 7));
  const isIndexed = first >= 0x40;
  const index = readNumber(cursor, isIndexed ? 6 : 4);
  const name = index === 0 ? readText(cursor) : table.at(index)?.name;
  const value = name === undefined ? undefined : readText(cursor);
  if (name === undefined || value === undefined) return undefined;
  const field = { name, value };
  if (isIndexed) table.add(field);
  return field;
}

/** A number that begins in the lower `prefix` bits of the next byte (section 5.1); -1 where there is none. */
function readNumber(cursor: Cursor, prefix: number): number {
  const mask = (1 << prefix) - 1;
  const first = cursor.bytes[cursor.at++];
  if (first === undefined) return -1;
  let number = first & mask;
  if (number < mask) return number;
  for (let factor = 1; ; factor *= 128) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) return -1;
    number += (byte & 0x7f) * factor;
    if (number > NUMBER_MAX || factor > NUMBER_MAX) return -1;
    if (byte < 0x80) return number;
  }
}

/** Section 5.2. */
function readText(cursor: Cursor): string | undefined {
  const isHuffman = (cursor.bytes[cursor.at] ?? 0) >= 0x80;
  const length = readNumber(cursor, 7);
  const from = cursor.at;
  const end = from + length;
  if (length < 0 || end > cursor.bytes.length) return undefined;
  cursor.at = end;
  return isHuffman ? decodeHuffman(cursor.bytes, from, end) : cursor.bytes.toString("latin1", from, end);
}

const STATUS_INDEX: ReadonlyMap<number, number> = new Map([
  [200, 8],
  [400, 12],
  [404, 13],
]);

/** Indexes of names in the static table. */
const NAME_INDEX = { ":status": 8, allow: 22, "cache-control": 24, "content-length": 28, "content-type": 31, date: 33 };
export type AnswerFieldName = Exclude<keyof typeof NAME_INDEX, ":status">;

/** The block of an answer's fields, none of them in a table (sections 6.1 and 6.2.2). Texts are ASCII, of at most 126 bytes. */
export function encodeFields(status: number, fields: Readonly<Partial<Record<AnswerFieldName, string>>>): Buffer {
  const index = STATUS_INDEX.get(status);
  const parts: Buffer[] = [index === undefined ? encodeField(":status", String(status)) : Buffer.of(0x80 | index)];
  for (const name of ANSWER_NAMES) {
    const value = fields[name];
    if (value !== undefined) parts.push(encodeField(name, value));
  }
  return Buffer.concat(parts);
}

const ANSWER_NAMES = ["content-type", "content-length", "cache-control", "allow", "date"] as const;

function encodeField(name: keyof typeof NAME_INDEX, value: string): Buffer {
  const index = NAME_INDEX[name];
  const head = index < 15 ? [index] : [15, index - 15];
  return Buffer.from([...head, value.length, ...Buffer.from(value, "latin1")]);
}
