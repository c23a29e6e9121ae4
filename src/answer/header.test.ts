import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openLab, queryBytes, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const lab = openLab([zone("example.test.", "www A 192.0.2.1\n")]);
const QUESTION = "www.example.test. A";
const RECORD = "answer www.example.test. 300 IN A 192.0.2.1";
const RD = 0x0100;
const RA = 0x0080;
const Z = 0x0040;
const AD = 0x0020;
const CD = 0x0010;
const AA = 0x0400;
const TC = 0x0200;

/** The answer's flag word to a query with this one. */
function flagsOf(flags: number): number | undefined {
  const query = Uint8Array.from(queryBytes(QUESTION, { edns: false }));
  query[2] = flags >> 8;
  query[3] = flags & 0xff;
  const answer = lab.send(query);
  return answer === undefined ? undefined : (answer[2]! << 8) | answer[3]!;
}

/** RFC 8906 section 8.1 and RFC 1035 section 4.1.1: bits of a query, and those of its answer beside QR and AA. */
const BITS = [
  ["none", 0, 0],
  ["RD is copied", RD, RD],
  ["RA means nothing", RA, 0],
  ["Z means nothing (RFC 8906 section 8.1.4)", Z, 0],
  ["AD is not copied (RFC 8906 section 8.1.3.2)", AD, 0],
  ["CD is not copied", CD, 0],
  ["AA means nothing", AA, 0],
  ["TC means nothing", TC, 0],
  ["an RCODE means nothing", 5, 0],
  ["all of them", RD | RA | Z | AD | CD | AA | TC | 15, RD],
] as const;

for (const [why, asked, answered] of BITS) {
  test(`header bits: ${why}`, () => assert.equal(flagsOf(asked), 0x8000 | AA | answered));
}

test("a response is never answered", () => {
  for (const flags of [0x8000, 0x8400, 0x8183, 0xffff]) assert.equal(flagsOf(flags), undefined);
});

test("an unknown opcode with EDNS is NOTIMP with EDNS, and BADVERS where the version is unknown too", () => {
  const known = decode(lab.send(queryBytes(QUESTION, { opcode: 15 })) ?? new Uint8Array(0));
  assert.deepEqual([known.rcode, known.questions.length, known.edns?.version], [4, 0, 0]);
  const packet = queryBytes(QUESTION, { opcode: 15 });
  packet[packet.length - 5] = 1;
  const unknown = decode(lab.send(packet) ?? new Uint8Array(0));
  assert.deepEqual([unknown.rcode, unknown.edns?.version], [16, 0]);
});

for (let opcode = 1; opcode < 16; opcode++) {
  if (opcode === 4 || opcode === 5) continue;
  test(`opcode ${opcode} is NOTIMP, in a header alone (RFC 8906 section 8.1.2)`, () => {
    const bytes = lab.send(queryBytes(QUESTION, { opcode, flags: RD, edns: false }));
    assert.equal(bytes?.length, 12);
    const message = decode(bytes ?? new Uint8Array(0));
    assert.deepEqual([message.opcode, message.rcode, message.flags], [opcode, 4, 0x8000 | RD]);
  });
}

test("UPDATE is refused where it is off, with the zone that it names", () => {
  const message = decode(lab.send(queryBytes(QUESTION, { opcode: 5, edns: false })) ?? new Uint8Array(0));
  assert.deepEqual([message.opcode, message.rcode, message.questions.length], [5, 5, 1]);
});

testAnswers(lab, [["NOTIFY is refused: there are no secondary zones", "example.test. SOA", ["REFUSED"]]], {
  opcode: 4,
});
testAnswers(lab, [["the answer to a plain query", QUESTION, ["NOERROR aa", RECORD]]], { edns: false });

/** RFC 8906 section 8.2: queries of a tester to the SOA of a zone, and the rcode that they must get. */
const EDNS_TESTS = [
  ["8.2.1 EDNS version 0", {}, "NOERROR aa"],
  ["8.2.2 EDNS version 1", { version: 1 }, "BADVERS"],
  ["8.2.3 unknown option", { options: [{ code: 100, data: new Uint8Array(0) }] }, "NOERROR aa"],
  ["8.2.5 unknown option, version 1", { version: 1, options: [{ code: 100, data: new Uint8Array(0) }] }, "BADVERS"],
  ["8.2.6 DO", { wantsDnssec: true }, "NOERROR aa"],
  ["8.2.7 DO, version 1", { version: 1, wantsDnssec: true }, "BADVERS"],
] as const;

for (const [why, edns, status] of EDNS_TESTS) {
  test(`RFC 8906 section ${why}: ${status}`, () => {
    const lines = lab.ask("example.test. SOA", { edns });
    assert.equal(lines[0], status);
    assert.equal(lines.length, status === "BADVERS" ? 1 : 2);
  });
}
