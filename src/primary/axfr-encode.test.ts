import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { FLAG, RRTYPE } from "../dns/codes.ts";
import { decodeMessage, type Message, type ResourceRecord } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { rdataFromText, rdataToText } from "../dns/rdata.ts";
import { createTransferEncoder, encodeRest, type TransferHead, type TransferRecord } from "./axfr-encode.ts";
import { TRANSFER_MESSAGE_BYTES } from "./limits.ts";

const APEX = "corp.test.";

function rdata(type: number, text: string): Uint8Array {
  const result = rdataFromText(type, text);
  assert.equal(result.kind, "rdata", text);
  return result.kind === "rdata" ? result.rdata : new Uint8Array(0);
}

const HEAD: TransferHead = {
  apex: nameOf(APEX),
  ttl: 3600,
  soa: rdata(RRTYPE.SOA, "ns1.corp.test. hostmaster.corp.test. 7 7200 900 1209600 300"),
};
const SOA = `${APEX} 3600 6 ns1.corp.test. hostmaster.corp.test. 7 7200 900 1209600 300`;

function encode(records: readonly TransferRecord[], isWhole = true): readonly Uint8Array[] {
  const encoder = createTransferEncoder(HEAD);
  for (const { owner, type, ttl, rdata: wire } of records) encoder.add(owner, owner.length, type, ttl, wire);
  return encoder.finish(isWhole);
}

function decoded(bytes: Uint8Array): Message {
  const result = decodeMessage(bytes);
  assert.ok(result.kind === "message", result.kind === "error" ? result.reason : "");
  assert.equal(result.trailingBytes, 0);
  return result.message;
}

function lineOf({ name, type, ttl, rdata: wire }: Omit<ResourceRecord, "class">): string {
  return `${nameToText(name)} ${ttl} ${type} ${rdataToText(type, wire)}`;
}

function linesOf(messages: readonly Uint8Array[]): readonly string[] {
  return messages.flatMap((bytes) => decoded(bytes).answers.map(lineOf));
}

function a(owner: string, address: string): TransferRecord {
  return { owner: nameOf(owner), type: RRTYPE.A, ttl: 60, rdata: rdata(RRTYPE.A, address) };
}

test("a transfer begins and ends with the SOA, and its first message has the question", () => {
  const messages = encode([a("www.corp.test.", "10.0.0.1")]);
  assert.deepEqual(linesOf(messages), [SOA, "www.corp.test. 60 1 10.0.0.1", SOA]);
  const [first] = messages.map(decoded);
  assert.equal(first?.flags, FLAG.QR | FLAG.AA);
  assert.deepEqual(
    first?.questions.map(({ name, type }) => [nameToText(name), type]),
    [[APEX, RRTYPE.AXFR]],
  );
});

test("a zone without records is its SOA twice", () => {
  assert.deepEqual(linesOf(encode([])), [SOA, SOA]);
});

test("many small records share a message, and only the first has a question", () => {
  const records = Array.from({ length: 10_000 }, (_, index) => a(`host${index}.corp.test.`, "10.0.0.1"));
  const messages = encode(records);
  assert.deepEqual(
    messages.map((message) => decoded(message).questions.length),
    messages.map((_, index) => (index === 0 ? 1 : 0)),
  );
  assert.equal(linesOf(messages).length, records.length + 2);
  const bytes = messages.reduce((sum, message) => sum + message.length, 0);
  // A label, a pointer, ten bytes up to the address, and the address.
  assert.ok(bytes < records.length * (9 + 2 + 10 + 4), `${bytes} bytes`);
  assert.ok(messages.every((message) => message.length <= TRANSFER_MESSAGE_BYTES));
});

test("an RR of nearly a message takes one for itself, and one that fits into none is a fault", () => {
  const long = (bytes: number): TransferRecord => {
    const wire = new Uint8Array(bytes);
    for (let at = 0; at < bytes; at += 256) wire[at] = Math.min(255, bytes - at - 1);
    return { owner: nameOf("long.corp.test."), type: RRTYPE.TXT, ttl: 60, rdata: wire };
  };
  const room = TRANSFER_MESSAGE_BYTES - 12 - nameOf("long.corp.test.").length - 10;
  const messages = encode([long(room), long(room)]);
  assert.deepEqual(
    messages.map((message) => decoded(message).answers.length),
    [1, 1, 1, 1],
  );
  assert.throws(() => encode([long(room + 1)]), RangeError);
});

test("names of rdata are compressed where RFC 1035 lets them, and nowhere else", () => {
  const owner = nameOf("x.corp.test.");
  const of = (type: number, text: string): TransferRecord => ({ owner, type, ttl: 60, rdata: rdata(type, text) });
  const far = "a-long-name-of-somebody-else.example.";
  const [once = new Uint8Array(0)] = encode([of(RRTYPE.MX, `10 ${far}`)]);
  const [twice = new Uint8Array(0)] = encode([of(RRTYPE.MX, `10 ${far}`), of(RRTYPE.MX, `20 ${far}`)]);
  assert.equal(twice.length - once.length, 2 + 10 + 4);
  const [srv = new Uint8Array(0)] = encode([of(RRTYPE.SRV, `1 2 3 ${far}`)]);
  const [srvTwice = new Uint8Array(0)] = encode([of(RRTYPE.SRV, `1 2 3 ${far}`), of(RRTYPE.SRV, `1 2 4 ${far}`)]);
  assert.equal(srvTwice.length - srv.length, 2 + 10 + 6 + nameOf(far).length);
});

test("what was left open ends with the addresses of the aliases and the SOA, in a message without a question", () => {
  const open = encode([a("www.corp.test.", "10.0.0.1")], false);
  const rest = encodeRest(HEAD, [a("alias.corp.test.", "10.0.0.2")]);
  const lines = [SOA, "www.corp.test. 60 1 10.0.0.1", "alias.corp.test. 60 1 10.0.0.2", SOA];
  assert.deepEqual(linesOf([...open, ...rest]), lines);
  assert.deepEqual(
    rest.map((bytes) => decoded(bytes).questions),
    [[]],
  );
});

const label = fc.oneof(
  fc.constantFrom("a", "b", "A", "*", "mail", "x".repeat(63)),
  fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/),
);
const name = fc
  .tuple(fc.array(label, { maxLength: 3 }), fc.constantFrom("corp.test.", "CORP.test.", "example.", "test.", "."))
  .map(([labels, suffix]) => (labels.length === 0 ? suffix : `${labels.join(".")}.${suffix === "." ? "" : suffix}`));
const content = fc.oneof(
  fc.constant([RRTYPE.A, "10.0.0.1"] as const),
  fc.constant([RRTYPE.AAAA, "fd00::1"] as const),
  name.map((host) => [RRTYPE.CNAME, host] as const),
  name.map((host) => [RRTYPE.NS, host] as const),
  name.map((host) => [RRTYPE.PTR, host] as const),
  name.map((host) => [RRTYPE.MX, `10 ${host}`] as const),
  name.map((host) => [RRTYPE.SRV, `1 2 3 ${host}`] as const),
  fc.nat(6).map((strings) => [RRTYPE.TXT, `"${"t".repeat(200)}" `.repeat(strings + 1)] as const),
  fc.constant([RRTYPE.CAA, '0 issue "ca.example"'] as const),
);

test("whatever a zone has comes out again, message by message, without regard to case", () => {
  const record = fc.tuple(name, content, fc.nat(2_147_483_647)).map(([owner, [type, text], ttl]): TransferRecord => {
    return { owner: nameOf(owner), type, ttl, rdata: rdata(type, text) };
  });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 60 }), fc.integer({ min: 1, max: 30 }), (records, times) => {
      const all = Array.from({ length: times }, () => records).flat();
      const messages = encode(all);
      assert.ok(messages.every((message) => message.length <= TRANSFER_MESSAGE_BYTES));
      const expected = [SOA, ...all.map(({ owner, ...rest }) => lineOf({ name: owner, ...rest })), SOA];
      assert.deepEqual(
        linesOf(messages).map((line) => line.toLowerCase()),
        expected.map((line) => line.toLowerCase()),
      );
    }),
    { numRuns: 200 },
  );
});
