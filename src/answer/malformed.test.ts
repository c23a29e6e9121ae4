import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openLab, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { RCODE } from "../dns/codes.ts";

const lab = openLab([zone("example.test.", "www A 192.0.2.1\n")]);
const PLAIN = queryBytes("www.example.test. A", { edns: false });
const WITH_COOKIE = queryBytes("www.example.test. A", { edns: { options: [{ code: 10, data: new Uint8Array(8) }] } });
const HEADER_BYTES = 12;

function assertFormerr(packet: Uint8Array): void {
  const answer = lab.send(packet);
  assert(answer !== undefined, "silence");
  const { rcode, answers, authorities, additionals, edns } = decode(answer);
  assert.equal(rcode, RCODE.FORMERR);
  assert.deepEqual([answers, authorities, additionals, edns], [[], [], [], undefined]);
}

function edited(packet: Uint8Array, ...edits: readonly (readonly [at: number, byte: number])[]): Uint8Array {
  const copy = Uint8Array.from(packet);
  for (const [at, byte] of edits) copy[at] = byte;
  return copy;
}

function query(...name: readonly number[]): Uint8Array {
  return Uint8Array.of(...PLAIN.subarray(0, HEADER_BYTES), ...name, 0, 1, 0, 1);
}

test("what is shorter than a header gets silence", () => {
  for (let length = 0; length < HEADER_BYTES; length++) assert.equal(lab.send(PLAIN.subarray(0, length)), undefined);
});

test("a query that is cut off anywhere behind its header is FORMERR", () => {
  for (const packet of [PLAIN, WITH_COOKIE]) {
    for (let length = HEADER_BYTES; length < packet.length; length++) assertFormerr(packet.subarray(0, length));
  }
});

test("a header alone that announces nothing is FORMERR", () => {
  assertFormerr(edited(PLAIN, [5, 0]).subarray(0, HEADER_BYTES));
});

test("a question's name has no pointers", () => {
  assertFormerr(query(0xc0, 12));
  assertFormerr(query(0xc0, 0));
  assertFormerr(query(1, 97, 0xc0, 12));
  assertFormerr(query(0xc0, 14, 0));
});

test("labels of reserved types (RFC 6891 section 5) are FORMERR", () => {
  assertFormerr(query(0x40, 0));
  assertFormerr(query(0x41, 1, 0));
  assertFormerr(query(0x80, 0));
});

test("a name over 255 bytes is FORMERR, one of 255 is not", () => {
  const label = [63, ...new Array<number>(63).fill(97)];
  const bytes = (last: number) => [...label, ...label, ...label, last, ...new Array<number>(last).fill(97), 0];
  assert.equal(bytes(61).length, 255);
  assert.equal(decode(lab.send(query(...bytes(61))) ?? PLAIN).rcode, RCODE.REFUSED);
  assertFormerr(query(...bytes(62)));
  assertFormerr(query(...label, ...label, ...label, ...label, 0));
});

test("QDCOUNT other than 1 is FORMERR (RFC 9619)", () => {
  const question = PLAIN.subarray(HEADER_BYTES);
  assertFormerr(edited(Uint8Array.of(...PLAIN, ...question), [5, 2]));
  assertFormerr(edited(PLAIN, [5, 0]));
  assertFormerr(edited(PLAIN, [4, 255], [5, 255]));
});

test("bytes behind the message are FORMERR", () => {
  assertFormerr(Uint8Array.of(...PLAIN, 0));
  assertFormerr(Uint8Array.of(...PLAIN, ...PLAIN));
  const withOpt = decode(lab.send(Uint8Array.of(...WITH_COOKIE, 1, 2, 3)) ?? PLAIN);
  assert.deepEqual([withOpt.rcode, withOpt.edns?.options], [RCODE.FORMERR, []]);
});

test("counts of records that are not there are FORMERR", () => {
  for (const countAt of [7, 9, 11]) assertFormerr(edited(PLAIN, [countAt, 1]));
  for (const countAt of [6, 8, 10]) assertFormerr(edited(PLAIN, [countAt, 255], [countAt + 1, 255]));
});

test("an additional record's pointers lead backwards", () => {
  const record = (...owner: readonly number[]) =>
    edited(Uint8Array.of(...PLAIN, ...owner, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0), [11, 1]);
  assert.equal(decode(lab.send(record(0xc0, 12)) ?? PLAIN).rcode, RCODE.NOERROR);
  assertFormerr(record(0xc0, PLAIN.length));
  assertFormerr(record(0xc0, PLAIN.length + 2));
  assertFormerr(record(0xff, 0xff));
});

test("a message that cannot be read keeps its question where that is whole", () => {
  const answer = decode(lab.send(Uint8Array.of(...PLAIN, 0)) ?? PLAIN);
  assert(answer.questions.length <= 1);
  assert.equal(answer.id, (PLAIN[0]! << 8) | PLAIN[1]!);
});

/** A SOA record of `example.test.`, as NOTIFY has it in its answer section and IXFR in its authority section. */
const SOA = Uint8Array.of(0xc0, 16, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0, ...new Uint8Array(20));

function withRecord(question: string, opcode: number, countAt: number): Uint8Array {
  return edited(Uint8Array.of(...queryBytes(question, { edns: false, opcode }), ...SOA), [countAt, 1]);
}

test("records where a query has none are FORMERR", () => {
  assertFormerr(withRecord("www.example.test. SOA", 0, 7));
  assertFormerr(withRecord("www.example.test. SOA", 0, 9));
});

test("the records of NOTIFY (RFC 1996 section 3.7) and IXFR (RFC 1995 section 3) are read over", () => {
  const notify = withRecord("www.example.test. SOA", 4, 7);
  assert.equal(decode(lab.send(notify) ?? PLAIN).rcode, RCODE.REFUSED);
  const transfer = withRecord("www.example.test. IXFR", 0, 9);
  assert.equal(decode(lab.send(transfer) ?? PLAIN).rcode, RCODE.NOTIMP);
  for (const packet of [notify, transfer]) {
    for (let length = packet.length - SOA.length; length < packet.length; length++) {
      assertFormerr(packet.subarray(0, length));
    }
  }
});
