/**
 * Messages for tests, written apart from `src/dns` so that a fault there cannot hide itself: queries as bytes, and
 * responses as records in one canonical text form.
 */

export type EdnsOption = { readonly code: number; readonly data: Uint8Array };

export type Edns = {
  readonly version?: number;
  readonly udpSize?: number;
  readonly dnssecOk?: boolean;
  readonly options?: readonly EdnsOption[];
};

export type Question = {
  /** In zone-file form, with or without the last dot. */
  readonly name: string;
  readonly type: number;
  readonly class?: number;
  /** The header's flag word without QR: opcode and RD, AD, CD. */
  readonly flags?: number;
  readonly edns?: Edns;
};

export type DecodedRecord = {
  /** In zone-file form with the last dot, case as sent. */
  readonly owner: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  /** Hexadecimal; names in it are written out and in lower case. */
  readonly rdata: string;
};

export type DecodedMessage = {
  readonly id: number;
  readonly flags: number;
  /** With the upper bits that EDNS adds (RFC 6891 section 6.1.3). */
  readonly rcode: number;
  readonly questions: readonly { readonly name: string; readonly type: number; readonly class: number }[];
  readonly answer: readonly DecodedRecord[];
  readonly authority: readonly DecodedRecord[];
  /** Without the OPT record. */
  readonly additional: readonly DecodedRecord[];
  readonly edns: Required<Edns> | undefined;
  readonly length: number;
};

const TYPE_OPT = 41;

/** Where the names lie in the rdata of the types whose names may be compressed (RFC 3597 section 4), and SRV. */
const NAMES_IN_RDATA: ReadonlyMap<number, { readonly before: number; readonly names: number }> = new Map([
  [2, { before: 0, names: 1 }],
  [5, { before: 0, names: 1 }],
  [6, { before: 0, names: 2 }],
  [12, { before: 0, names: 1 }],
  [15, { before: 2, names: 1 }],
  [33, { before: 6, names: 1 }],
  [39, { before: 0, names: 1 }],
]);

/** Wire form of a name in zone-file form, taken as absolute. Throws on a label over 63 bytes. */
export function encodeName(name: string): Uint8Array {
  const bytes: number[] = [];
  let label: number[] = [];
  const endLabel = () => {
    if (label.length > 63) throw new Error(`label too long: ${name}`);
    if (label.length > 0) bytes.push(label.length, ...label);
    label = [];
  };
  const text = Buffer.from(name, "latin1");
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i]!;
    if (byte === 0x2e) {
      endLabel();
    } else if (byte === 0x5c) {
      const digits = /^[0-9]{3}/.exec(text.toString("latin1", i + 1, i + 4));
      label.push(digits === null ? text[i + 1]! : Number(digits[0]));
      i += digits === null ? 1 : 3;
    } else {
      label.push(byte);
    }
  }
  endLabel();
  bytes.push(0);
  return Uint8Array.from(bytes);
}

function encodeOpt(edns: Edns): Buffer {
  const options = (edns.options ?? []).map(({ code, data }) => {
    const head = Buffer.alloc(4);
    head.writeUInt16BE(code, 0);
    head.writeUInt16BE(data.length, 2);
    return Buffer.concat([head, data]);
  });
  const rdata = Buffer.concat(options);
  const head = Buffer.alloc(11);
  head.writeUInt16BE(TYPE_OPT, 1);
  head.writeUInt16BE(edns.udpSize ?? 1232, 3);
  head[6] = edns.version ?? 0;
  head.writeUInt16BE(edns.dnssecOk === true ? 0x8000 : 0, 7);
  head.writeUInt16BE(rdata.length, 9);
  return Buffer.concat([head, rdata]);
}

/** A query of one question. The id is 0 until a client sets it. */
export function encodeQuery(question: Question): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(question.flags ?? 0, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(question.edns === undefined ? 0 : 1, 10);
  const tail = Buffer.alloc(4);
  tail.writeUInt16BE(question.type, 0);
  tail.writeUInt16BE(question.class ?? 1, 2);
  const parts = [head, encodeName(question.name), tail];
  if (question.edns !== undefined) parts.push(encodeOpt(question.edns));
  return Buffer.concat(parts);
}

function labelText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    if (byte <= 0x20 || byte >= 0x7f) text += `\\${String(byte).padStart(3, "0")}`;
    else text += ('.;\\"()@$'.includes(String.fromCharCode(byte)) ? "\\" : "") + String.fromCharCode(byte);
  }
  return text;
}

type Cursor = { readonly bytes: Buffer; offset: number };

/** Reads a name with its compression pointers. Throws on a pointer that does not go back. */
function readName(cursor: Cursor): string {
  const { bytes } = cursor;
  let text = "";
  let offset = cursor.offset;
  let end: number | undefined;
  let lowest = offset;
  for (;;) {
    const length = bytes.readUInt8(offset);
    if (length >= 0xc0) {
      const target = bytes.readUInt16BE(offset) & 0x3fff;
      if (target >= lowest) throw new Error(`pointer at ${offset} goes to ${target}`);
      end ??= offset + 2;
      lowest = target;
      offset = target;
    } else if (length > 63) {
      throw new Error(`label type ${length >> 6} at ${offset}`);
    } else {
      offset += 1;
      if (offset + length > bytes.length) throw new Error("name goes past the end");
      if (length === 0) break;
      text += `${labelText(bytes.subarray(offset, offset + length))}.`;
      offset += length;
    }
  }
  cursor.offset = end ?? offset;
  return text === "" ? "." : text;
}

function readRdata(cursor: Cursor, type: number, length: number): string {
  const end = cursor.offset + length;
  if (end > cursor.bytes.length) throw new Error("rdata goes past the end");
  const layout = NAMES_IN_RDATA.get(type);
  const parts: string[] = [];
  if (layout !== undefined && length > layout.before) {
    parts.push(cursor.bytes.toString("hex", cursor.offset, cursor.offset + layout.before));
    cursor.offset += layout.before;
    for (let i = 0; i < layout.names; i += 1) {
      parts.push(Buffer.from(encodeName(readName(cursor).toLowerCase())).toString("hex"));
    }
    if (cursor.offset > end) throw new Error("a name goes past its rdata");
  }
  parts.push(cursor.bytes.toString("hex", cursor.offset, end));
  cursor.offset = end;
  return parts.join("");
}

function readOptions(rdata: Buffer): EdnsOption[] {
  const options: EdnsOption[] = [];
  for (let offset = 0; offset < rdata.length; ) {
    const end = offset + 4 + rdata.readUInt16BE(offset + 2);
    if (end > rdata.length) throw new Error("EDNS option goes past its record");
    options.push({ code: rdata.readUInt16BE(offset), data: rdata.subarray(offset + 4, end) });
    offset = end;
  }
  return options;
}

/** Decodes a response. Throws on anything malformed: bytes left over, a bad pointer, several OPT records. */
export function decodeMessage(message: Uint8Array): DecodedMessage {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const cursor: Cursor = { bytes, offset: 12 };
  const flags = bytes.readUInt16BE(2);
  let rcode = flags & 0x0f;
  let edns: Required<Edns> | undefined;
  const questions = Array.from({ length: bytes.readUInt16BE(4) }, () => {
    const name = readName(cursor);
    cursor.offset += 4;
    return { name, type: bytes.readUInt16BE(cursor.offset - 4), class: bytes.readUInt16BE(cursor.offset - 2) };
  });
  const readSection = (count: number): DecodedRecord[] => {
    const records: DecodedRecord[] = [];
    for (let i = 0; i < count; i += 1) {
      const owner = readName(cursor);
      const at = cursor.offset;
      const type = bytes.readUInt16BE(at);
      const [classNumber, ttl, length] = [
        bytes.readUInt16BE(at + 2),
        bytes.readUInt32BE(at + 4),
        bytes.readUInt16BE(at + 8),
      ];
      cursor.offset = at + 10;
      if (type !== TYPE_OPT) {
        records.push({ owner, type, class: classNumber, ttl, rdata: readRdata(cursor, type, length) });
        continue;
      }
      if (edns !== undefined || owner !== ".") throw new Error("a second OPT record, or one not at the root");
      const options = readOptions(bytes.subarray(cursor.offset, cursor.offset + length));
      cursor.offset += length;
      edns = { version: (ttl >>> 16) & 0xff, udpSize: classNumber, dnssecOk: (ttl & 0x8000) !== 0, options };
      rcode |= (ttl >>> 24) << 4;
    }
    return records;
  };
  const answer = readSection(bytes.readUInt16BE(6));
  const authority = readSection(bytes.readUInt16BE(8));
  const additional = readSection(bytes.readUInt16BE(10));
  if (cursor.offset !== bytes.length) throw new Error(`${bytes.length - cursor.offset} bytes left over`);
  return {
    id: bytes.readUInt16BE(0),
    flags,
    rcode,
    questions,
    answer,
    authority,
    additional,
    edns,
    length: bytes.length,
  };
}
