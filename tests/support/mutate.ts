/**
 * DNS packets that no client should send: a corpus of queries of many shapes, and mutations of them. All randomness
 * comes from a Chance, so that a seed gives the same packets again.
 */
import fc from "fast-check";
import type { Chance } from "./chance.ts";
import { type Edns, encodeName, encodeQuery } from "./dns-message.ts";

const PACKET_MAX = 4096;

const TYPES = [0, 1, 2, 5, 6, 12, 15, 16, 28, 33, 39, 41, 43, 46, 65, 249, 250, 251, 252, 253, 255, 257, 65401, 65535];
const CLASSES = [0, 1, 3, 4, 254, 255];
const OPCODES = [0, 1, 2, 3, 4, 5, 6, 15];

const EDNS_SHAPES: readonly (Edns | undefined)[] = [
  undefined,
  {},
  { udpSize: 0 },
  { udpSize: 512, dnssecOk: true },
  { udpSize: 4096 },
  { udpSize: 65535, dnssecOk: true },
  { version: 1 },
  { options: [{ code: 3, data: new Uint8Array(0) }] },
  { options: [{ code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }] },
  { options: [{ code: 10, data: new Uint8Array(24).fill(7) }] },
  { options: [{ code: 10, data: new Uint8Array(5) }] },
  { options: [{ code: 8, data: Uint8Array.of(0, 1, 24, 0, 10, 1, 2) }] },
  {
    options: [
      { code: 11, data: new Uint8Array(0) },
      { code: 12, data: new Uint8Array(64) },
    ],
  },
  {
    options: [
      { code: 3, data: new Uint8Array(0) },
      { code: 10, data: new Uint8Array(8) },
      { code: 65001, data: new Uint8Array(9) },
    ],
  },
];

/** Header counts of a packet whose sections are appended by hand. */
function withCounts(packet: Buffer, counts: readonly [number, number, number, number]): Buffer {
  const copy = Buffer.from(packet);
  for (const [index, count] of counts.entries()) copy.writeUInt16BE(count, 4 + index * 2);
  return copy;
}

function record(owner: Uint8Array, type: number, number: number, rdata: Uint8Array): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(number, 2);
  fixed.writeUInt16BE(rdata.length, 8);
  return Buffer.concat([owner, fixed, rdata]);
}

/** Shapes that the common encoder does not make: several questions, records in every section, TSIG, UPDATE, NOTIFY. */
function oddShapes(name: string): Buffer[] {
  const query = encodeQuery({ name, type: 1 });
  const question = query.subarray(12);
  const pointer = Uint8Array.of(0xc0, 12);
  const soa = record(pointer, 6, 1, Buffer.concat([encodeName(name), encodeName(name), Buffer.alloc(20)]));
  const opt = record(Uint8Array.of(0), 41, 1232, new Uint8Array(0));
  const tsigData = Buffer.concat([
    encodeName("hmac-sha256."),
    Buffer.alloc(8),
    Uint8Array.of(0, 4, 1, 2, 3, 4),
    Buffer.alloc(6),
  ]);
  const tsig = record(encodeName("key."), 250, 255, tsigData);
  const withOpcode = (opcode: number, packet: Buffer): Buffer => {
    const copy = Buffer.from(packet);
    copy[2] = (copy[2]! & 0x87) | (opcode << 3);
    return copy;
  };
  return [
    withCounts(query.subarray(0, 12), [0, 0, 0, 0]),
    withCounts(Buffer.concat([query.subarray(0, 12), opt]), [0, 0, 0, 1]),
    withCounts(Buffer.concat([query, question]), [2, 0, 0, 0]),
    withCounts(Buffer.concat([query, pointer, Uint8Array.of(0, 1, 0, 1)]), [2, 0, 0, 0]),
    withCounts(Buffer.concat([query, opt, opt]), [1, 0, 0, 2]),
    withCounts(Buffer.concat([query, tsig]), [1, 0, 0, 1]),
    withCounts(Buffer.concat([query, opt, tsig]), [1, 0, 0, 2]),
    withCounts(Buffer.concat([query, soa]), [1, 0, 1, 0]),
    withCounts(Buffer.concat([query, soa]), [1, 1, 0, 0]),
    withOpcode(4, withCounts(Buffer.concat([query, soa]), [1, 1, 0, 0])),
    withOpcode(5, withCounts(Buffer.concat([query, soa]), [1, 0, 1, 0])),
    Buffer.concat([query, Buffer.from("trailing")]),
  ];
}

/** Valid and nearly valid packets of every shape for each of the names. */
export function packetCorpus(names: readonly string[]): Buffer[] {
  const corpus: Buffer[] = [];
  for (const [index, name] of names.entries()) {
    for (const edns of EDNS_SHAPES) {
      const type = TYPES[(index + corpus.length) % TYPES.length]!;
      const question = edns === undefined ? { name, type } : { name, type, edns };
      corpus.push(encodeQuery(question), encodeQuery({ ...question, type: 1, flags: 0x0100 }));
    }
    for (const type of TYPES) corpus.push(encodeQuery({ name, type }));
    for (const number of CLASSES) corpus.push(encodeQuery({ name, type: 16, class: number, edns: {} }));
    for (const opcode of OPCODES) corpus.push(encodeQuery({ name, type: 6, flags: opcode << 11 }));
    corpus.push(...oddShapes(name));
  }
  return corpus;
}

/** A packet under mutation, in a buffer of PACKET_MAX bytes that the next one reuses. */
export type Scratch = { readonly bytes: Buffer; length: number };

type Mutator = (scratch: Scratch, chance: Chance, corpus: readonly Buffer[]) => void;

const NUMBERS = [
  0, 1, 2, 7, 8, 11, 12, 16, 24, 63, 64, 127, 128, 191, 192, 254, 255, 256, 511, 512, 4096, 0x7fff, 0x8000, 0xc00c,
  0xffff,
];

function insert({ bytes, length }: Scratch, at: number, count: number): number {
  const room = Math.min(count, PACKET_MAX - length);
  bytes.copyWithin(at + room, at, length);
  return room;
}

/** Some offset that begins a label of the question's name, as far as its lengths can be followed. */
function labelOffset({ bytes, length }: Scratch, chance: Chance): number {
  const offsets = [12];
  for (let at = 12; at < length && bytes[at]! > 0 && bytes[at]! < 64; ) {
    at += bytes[at]! + 1;
    offsets.push(at);
  }
  return chance.pick(offsets);
}

const MUTATORS: readonly Mutator[] = [
  function flipBit({ bytes, length }, { below }) {
    const at = below(length);
    bytes[at] = bytes[at]! ^ (1 << below(8));
  },
  function setByte({ bytes, length }, { below, pick }) {
    bytes[below(length)] = pick(NUMBERS) & 0xff;
  },
  function setWord({ bytes, length }, { below, pick }) {
    if (length >= 2) bytes.writeUInt16BE(pick(NUMBERS), below(length - 1));
  },
  function truncate(scratch, { below }) {
    scratch.length = below(scratch.length + 1);
  },
  function truncateTail(scratch, { below }) {
    scratch.length = Math.max(0, scratch.length - 1 - below(16));
  },
  function extend(scratch, { below }) {
    const count = Math.min(below(below(8) === 0 ? 2000 : 40), PACKET_MAX - scratch.length);
    for (let i = 0; i < count; i += 1) scratch.bytes[scratch.length + i] = below(256);
    scratch.length += count;
  },
  function editCount({ bytes, length }, { below, pick }) {
    if (length >= 12) bytes.writeUInt16BE(pick(NUMBERS), 4 + below(4) * 2);
  },
  function nudgeCount({ bytes, length }, { below }) {
    if (length < 12) return;
    const at = 4 + below(4) * 2;
    bytes.writeUInt16BE((bytes.readUInt16BE(at) + (below(2) === 0 ? 1 : 0xffff)) & 0xffff, at);
  },
  function editFlags({ bytes, length }, { below }) {
    if (length >= 4) bytes.writeUInt16BE(below(0x8000), 2);
  },
  function editLabelLength(scratch, chance) {
    const at = labelOffset(scratch, chance);
    if (at < scratch.length) scratch.bytes[at] = chance.pick(NUMBERS) & 0xff;
  },
  function pointerIntoName(scratch, chance) {
    const at = labelOffset(scratch, chance);
    if (at + 2 <= scratch.length) scratch.bytes.writeUInt16BE(0xc000 | chance.below(scratch.length + 4), at);
  },
  function insertPointer(scratch, { below }) {
    const at = below(scratch.length + 1);
    const room = insert(scratch, at, 2);
    if (room === 2) scratch.bytes.writeUInt16BE(0xc000 | below(scratch.length + 2), at);
    scratch.length += room;
  },
  function duplicateSlice(scratch, { below }) {
    const from = below(scratch.length);
    const count = Math.min(1 + below(64), scratch.length - from);
    const room = insert(scratch, from, count);
    scratch.length += room;
  },
  function deleteSlice(scratch, { below }) {
    const from = below(scratch.length);
    const count = Math.min(1 + below(16), scratch.length - from);
    scratch.bytes.copyWithin(from, from + count, scratch.length);
    scratch.length -= count;
  },
  function spliceAnother(scratch, { below, pick }, corpus) {
    const other = pick(corpus);
    const at = below(Math.min(scratch.length, other.length) + 1);
    scratch.length = at + other.copy(scratch.bytes, at, at);
  },
  function appendOpt(scratch, { below, pick }) {
    const option = Buffer.from([
      0,
      pick([3, 8, 10, 11, 12, 15]),
      0,
      below(30),
      ...Array.from({ length: below(30) }, () => below(256)),
    ]);
    const opt = record(Uint8Array.of(0), 41, pick(NUMBERS), option);
    opt[6] = below(8) === 0 ? below(256) : 0;
    if (scratch.length < 12 || scratch.length + opt.length > PACKET_MAX) return;
    scratch.length += opt.copy(scratch.bytes, scratch.length);
    scratch.bytes[11] = (scratch.bytes[11]! + 1) & 0xff;
  },
  function flipCase({ bytes, length }) {
    for (let at = 12; at < length; at += 1)
      if (/[a-z]/i.test(String.fromCharCode(bytes[at]!))) bytes[at] = bytes[at]! ^ 0x20;
  },
];

export function newScratch(): Scratch {
  return { bytes: Buffer.alloc(PACKET_MAX), length: 0 };
}

/** Puts a mutated packet of the corpus into `scratch`; one in eight is left as it was. */
export function mutateInto(scratch: Scratch, chance: Chance, corpus: readonly Buffer[]): void {
  scratch.length = chance.pick(corpus).copy(scratch.bytes);
  for (let left = chance.below(8) === 0 ? 0 : 1 + chance.below(3); left > 0 && scratch.length > 0; left -= 1) {
    chance.pick(MUTATORS)(scratch, chance, corpus);
  }
}

/** Packets made from nothing: plain bytes, and headers with counts before labels, pointers and record heads. */
export function packetArbitrary(): fc.Arbitrary<Uint8Array> {
  const label = fc.uint8Array({ minLength: 0, maxLength: 66 }).map((bytes) => Uint8Array.of(bytes.length, ...bytes));
  const pointer = fc
    .integer({ min: 0, max: 0x3fff })
    .map((target) => Uint8Array.of(0xc0 | (target >> 8), target & 0xff));
  const word = fc.oneof(fc.constantFrom(...TYPES, ...NUMBERS), fc.integer({ min: 0, max: 0xffff }));
  const words = fc
    .array(word, { maxLength: 6 })
    .map((values) => Uint8Array.from(values.flatMap((value) => [value >> 8, value & 0xff])));
  const root = fc.constant(Uint8Array.of(0));
  const body = fc.array(fc.oneof({ weight: 3, arbitrary: label }, root, pointer, words), { maxLength: 12 });
  const small = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 0, max: 2 }) }, word);
  const counts = fc.tuple(small, small, small, small);
  const structured = fc.tuple(word, word, counts, body).map(([id, flags, fourCounts, parts]) => {
    const head = Buffer.alloc(12);
    head.writeUInt16BE(id, 0);
    head.writeUInt16BE(flags & 0x7fff, 2);
    for (const [index, count] of fourCounts.entries()) head.writeUInt16BE(count, 4 + index * 2);
    return new Uint8Array(Buffer.concat([head, ...parts]).subarray(0, PACKET_MAX));
  });
  return fc.oneof(fc.uint8Array({ maxLength: 600 }), { weight: 3, arbitrary: structured });
}
