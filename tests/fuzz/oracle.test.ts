import assert from "node:assert/strict";
import test from "node:test";
import { encodeQuery } from "../support/dns-message.ts";
import { classify } from "./classify.ts";
import { faultOf } from "./oracle.ts";

const query = encodeQuery({ name: "host.corp.test.", type: 1 });
const questionEnd = query.length;

/** A response to `query` that the oracle passes: NOERROR without data. */
function goodResponse(packet: Buffer = query): Buffer {
  const response = Buffer.from(packet);
  response[2] = response[2]! | 0x84;
  return response;
}

function changed(packet: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(packet);
  copy[at] = value;
  return copy;
}

test("the oracle passes a right answer", () => {
  assert.equal(faultOf(query, goodResponse(), "udp"), undefined);
});

const wrong: readonly (readonly [string, Buffer | undefined, RegExp])[] = [
  ["silence", undefined, /^silence/],
  ["another id", changed(goodResponse(), 0, 9), /id/],
  ["a query", Buffer.from(query), /QR/],
  ["another opcode", changed(goodResponse(), 2, 0x94), /opcode/],
  ["RD that was not sent", changed(goodResponse(), 2, 0x85), /RD/],
  ["RA", changed(goodResponse(), 3, 0x80), /RA/],
  ["SERVFAIL", changed(goodResponse(), 3, 2), /rcode 2/],
  ["FORMERR to a query that can be read", changed(goodResponse(), 3, 1), /rcode 1/],
  ["NXDOMAIN without SOA", changed(goodResponse(), 3, 3), /SOA/],
  ["another case of the name", changed(goodResponse(), 13, 0x48), /question/],
  ["no question", Buffer.concat([changed(goodResponse(), 5, 0).subarray(0, 12)]), /question/],
  ["bytes left over", Buffer.concat([goodResponse(), Buffer.of(0)]), /left over/],
  ["records that are not there", changed(goodResponse(), 7, 1), /read/],
  [
    "OPT where none was sent",
    Buffer.concat([changed(goodResponse(), 11, 1), Buffer.of(0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)]),
    /OPT/,
  ],
];

for (const [what, response, fault] of wrong) {
  test(`the oracle refuses ${what}`, () => assert.match(faultOf(query, response, "udp") ?? "", fault));
}

test("the oracle refuses over 512 bytes without EDNS over UDP, not over TCP", () => {
  const answers = Array.from({ length: 40 }, () => Buffer.from("c00c000100010000003c00040a000001", "hex"));
  const response = Buffer.concat([changed(goodResponse(), 7, 40), ...answers]);
  assert.match(faultOf(query, response, "udp") ?? "", /over the limit/);
  assert.equal(faultOf(query, response, "tcp"), undefined);
});

test("the oracle refuses an answer to a response", () => {
  const response = changed(query, 2, 0x80);
  assert.match(faultOf(response, goodResponse(), "udp") ?? "", /not a query/);
  assert.equal(faultOf(response, undefined, "udp"), undefined);
});

const kinds: readonly (readonly [string, Buffer, string])[] = [
  ["eleven bytes", query.subarray(0, 11), "silence"],
  ["a response", changed(query, 2, 0x80), "silence"],
  ["STATUS", changed(query, 2, 0x10), "opcode"],
  ["a header alone", changed(query, 5, 0).subarray(0, 12), "unsure"],
  ["a question that is cut off", query.subarray(0, questionEnd - 1), "malformed"],
  ["two questions", changed(query, 5, 2), "malformed"],
  ["a pointer in the question", changed(query, 12, 0xc0), "malformed"],
  ["a reserved label type", changed(query, 12, 0x40), "malformed"],
  ["a record that is not there", changed(query, 11, 1), "malformed"],
  ["trailing bytes", Buffer.concat([query, Buffer.of(1)]), "unsure"],
  ["a query", query, "query"],
  ["EDNS of another version", encodeQuery({ name: ".", type: 1, edns: { version: 3 } }), "query"],
  [
    "a cookie of five bytes",
    encodeQuery({ name: ".", type: 1, edns: { options: [{ code: 10, data: new Uint8Array(5) }] } }),
    "malformed",
  ],
  [
    "an unknown option",
    encodeQuery({ name: ".", type: 1, edns: { options: [{ code: 65001, data: new Uint8Array(5) }] } }),
    "query",
  ],
];

for (const [what, packet, kind] of kinds) {
  test(`${what} is ${kind}`, () => assert.equal(classify(packet).kind, kind));
}
