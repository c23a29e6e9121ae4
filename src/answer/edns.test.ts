import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openLab, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { FLAG, RCODE } from "../dns/codes.ts";

const lab = openLab([zone("example.test.", "www A 192.0.2.1\n")]);
const QUESTION = "www.example.test. A";
const ANSWER = ["NOERROR aa", "answer www.example.test. 300 IN A 192.0.2.1"];
/** OPT RR: root, type, class = size, TTL = rcode, version and flags, no options. */
const OPT = Uint8Array.of(0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0);

/** A query with these records in its additional section. */
function withAdditionals(...records: readonly Uint8Array[]): Uint8Array {
  const plain = queryBytes(QUESTION, { edns: false });
  const packet = Uint8Array.of(...plain, ...records.flatMap((record) => [...record]));
  packet[11] = records.length;
  return packet;
}

function rcodeOf(packet: Uint8Array): number {
  const answer = lab.send(packet);
  assert(answer !== undefined);
  return decode(answer).rcode;
}

test("a query without EDNS is answered without it", () => {
  assert.equal(lab.message(QUESTION, { edns: false }).edns, undefined);
});

test("OPT in the query, OPT in the answer: our size, version 0", () => {
  const { edns } = lab.message(QUESTION, { edns: { udpSize: 4000 } });
  assert.deepEqual(edns, { udpSize: 1232, version: 0, wantsDnssec: false, options: [] });
});

test("negative and refused answers have it too", () => {
  assert.notEqual(lab.message("nope.example.test. A").edns, undefined);
  assert.notEqual(lab.message("www.elsewhere.test. A").edns, undefined);
});

test("DO is copied (RFC 3225 section 3)", () => {
  assert.equal(lab.message(QUESTION, { edns: { wantsDnssec: true } }).edns?.wantsDnssec, true);
});

test("unknown flags are ignored and not copied", () => {
  const opt = Uint8Array.from(OPT);
  opt[7] = 0x7f;
  opt[8] = 0xff;
  const answer = lab.send(withAdditionals(opt));
  assert.deepEqual([...(answer ?? []).slice(-11)], [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
});

test("a version that nobody knows is BADVERS, with version 0 in the answer (RFC 6891 section 6.1.3)", () => {
  for (const version of [1, 2, 100, 255]) {
    const message = lab.message(QUESTION, { edns: { version } });
    assert.equal(message.rcode, RCODE.BADVERS);
    assert.equal(message.edns?.version, 0);
    assert.deepEqual([message.answers, message.authorities, message.additionals], [[], [], []]);
    assert.equal(message.flags & FLAG.AA, 0);
  }
});

test("what the options of such a version say is not looked at", () => {
  const opt = Uint8Array.of(0, 0, 41, 4, 208, 0, 1, 0, 0, 0, 3, 255, 255, 255);
  assert.equal(rcodeOf(withAdditionals(opt)), RCODE.BADVERS);
});

test("unknown options are ignored", () => {
  const options = [
    { code: 65_001, data: Uint8Array.of(1, 2, 3) },
    { code: 8, data: Uint8Array.of(0, 1, 24, 0, 192, 0, 2) },
    { code: 12, data: new Uint8Array(100) },
    { code: 0, data: new Uint8Array(0) },
  ];
  const message = lab.message(QUESTION, { edns: { options } });
  assert.equal(message.rcode, RCODE.NOERROR);
  assert.deepEqual(message.edns?.options, []);
});

test("several OPT records are FORMERR (RFC 6891 section 6.1.1)", () => {
  assert.equal(rcodeOf(withAdditionals(OPT)), RCODE.NOERROR);
  assert.equal(rcodeOf(withAdditionals(OPT, OPT)), RCODE.FORMERR);
});

test("an OPT record that the root does not own is FORMERR", () => {
  assert.equal(rcodeOf(withAdditionals(Uint8Array.of(1, 97, ...OPT))), RCODE.FORMERR);
  assert.equal(rcodeOf(withAdditionals(Uint8Array.of(0xc0, 12, ...OPT.subarray(1)))), RCODE.FORMERR);
});

test("OPT may stand beside other additional records", () => {
  const other = Uint8Array.of(0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1);
  const answer = lab.send(withAdditionals(other, OPT));
  assert.notEqual(decode(answer ?? new Uint8Array(0)).edns, undefined);
});

test("OPT in the answer or authority section is none", () => {
  for (const countAt of [7, 9]) {
    const packet = withAdditionals(OPT);
    packet[11] = 0;
    packet[countAt] = 1;
    const answer = decode(lab.send(packet) ?? new Uint8Array(0));
    assert.equal(answer.edns, undefined);
    assert.equal(answer.rcode, RCODE.FORMERR);
  }
});

test("options that overrun their record are FORMERR", () => {
  const overruns = [[0], [0, 10, 0], [0, 10, 0, 8, 1, 2, 3], [0, 3, 0, 1], [0, 3, 0, 0, 0, 0, 255, 255]];
  for (const options of overruns) {
    const opt = Uint8Array.of(...OPT, ...options);
    opt[10] = options.length;
    assert.equal(rcodeOf(withAdditionals(opt)), RCODE.FORMERR, options.join());
  }
});

test("an OPT record that overruns the message is FORMERR", () => {
  const opt = Uint8Array.from(OPT);
  opt[10] = 1;
  assert.equal(rcodeOf(withAdditionals(opt)), RCODE.FORMERR);
});

test("a UDP size below 512 counts as 512 (RFC 6891 section 6.2.5)", () => {
  for (const udpSize of [0, 1, 511]) assert.deepEqual(lab.ask(QUESTION, { edns: { udpSize } }), ANSWER);
});
