import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CLASS, EDE, EDNS_OPTION, FLAG, RCODE, RRTYPE } from "./codes.ts";
import { type Edns, extendedErrorsOf, findOption, optionsFromRdata } from "./edns.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery, type ResourceRecord } from "./message.ts";
import { nameFromText, nameToText } from "./name.ts";
import { rdataFromText, rdataToText } from "./rdata.ts";

const ID_AND_FLAGS = "1234 8180";

function name(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

function record(owner: string, type: number, text: string): ResourceRecord {
  const result = rdataFromText(type, text);
  if (result.kind === "error") return assert.fail(result.detail);
  return { name: name(owner), type, class: CLASS.IN, ttl: 300, rdata: result.rdata };
}

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
}

function decode(bytes: Uint8Array): Message {
  const result = decodeMessage(bytes);
  if (result.kind === "error") return assert.fail(result.reason);
  assert.equal(result.trailingBytes, 0);
  return result.message;
}

function response(parts: Partial<Message>): Message {
  return { ...makeQuery(1, name("www.Example.test."), RRTYPE.A, FLAG.QR | FLAG.AA), ...parts };
}

test("a query is the bytes that RFC 1035 says", () => {
  const bytes = encodeMessage(makeQuery(0x1234, name("a.test."), RRTYPE.AAAA, FLAG.RD)).bytes;
  assert.deepEqual(bytes, hex("1234 0100 0001 0000 0000 0000 01 61 04 74657374 00 001c 0001"));
});

test("names are compressed without regard to case, in the types that allow it", () => {
  const message = response({
    answers: [
      record("WWW.example.TEST.", RRTYPE.CNAME, "web.example.test."),
      record("web.example.test.", RRTYPE.MX, "10 www.example.test."),
      record("web.example.test.", RRTYPE.SRV, "1 2 3 www.example.test."),
    ],
  });
  const { bytes } = encodeMessage(message);
  const expected =
    "0001 8400 0001 0003 0000 0000  03 777777 07 4578616d706c65 04 74657374 00 0001 0001" +
    "c00c 0005 0001 0000012c 0006 03 776562 c010" +
    "c02e 000f 0001 0000012c 0004 000a c00c" +
    "c02e 0021 0001 0000012c 0018 0001 0002 0003 03 777777 07 6578616d706c65 04 74657374 00";
  assert.deepEqual(Buffer.from(bytes).toString("hex"), Buffer.from(hex(expected)).toString("hex"));
  const decoded = decode(bytes);
  assert.equal(nameToText(decoded.questions[0]!.name), "www.Example.test.");
  const texts = decoded.answers.map((each) => rdataToText(each.type, each.rdata));
  assert.deepEqual(texts, ["web.Example.test.", "10 www.Example.test.", "1 2 3 www.example.test."]);
});

test("compressed rdata is read in every type that may have been compressed", () => {
  // SRV by RFC 3597 section 4, NAPTR as one that zones here do not hold.
  const bytes = hex(
    `${ID_AND_FLAGS} 0001 0002 0000 0000  01 61 04 74657374 00 0021 0001` +
      "c00c 0021 0001 00000001 0008 0001 0002 0003 c00e" +
      "c00c 0023 0001 00000001 0009 0001 0002 00 00 00 c00e",
  );
  const { answers } = decode(bytes);
  assert.equal(rdataToText(RRTYPE.SRV, answers[0]!.rdata), "1 2 3 test.");
  assert.deepEqual(answers[1]!.rdata, hex("0001 0002 00 00 00 04 74657374 00"));
});

test("OPT carries size, version, DO, options and the upper bits of the RCODE", () => {
  const edns: Edns = {
    udpSize: 1232,
    version: 0,
    wantsDnssec: true,
    options: [
      { code: 10, data: hex("0102030405060708") },
      { code: EDNS_OPTION.EDE, data: Uint8Array.from([0, EDE.NOT_AUTHORITATIVE, ...Buffer.from("no such zone")]) },
    ],
  };
  const message = response({ rcode: RCODE.BADVERS, edns });
  const decoded = decode(encodeMessage(message).bytes);
  assert.deepEqual(decoded, message);
  assert.deepEqual(findOption(decoded.edns, 10), hex("0102030405060708"));
  assert.deepEqual(extendedErrorsOf(decoded.edns), [{ code: 20, text: "no such zone" }]);
  assert.equal(optionsFromRdata(hex("000a 0008 01")), undefined);
  assert.equal(optionsFromRdata(hex("000a")), undefined);
});

test("what does not fit is left off, with TC where an answer is missing", () => {
  const answers = Array.from({ length: 40 }, (_, index) => record("www.example.test.", RRTYPE.A, `10.0.0.${index}`));
  const edns: Edns = { udpSize: 512, version: 0, wantsDnssec: false, options: [] };
  const cut = encodeMessage(response({ answers, edns }), 512);
  const decoded = decode(cut.bytes);
  assert.ok(cut.isTruncated && cut.bytes.length <= 512 && cut.bytes.length > 512 - 16);
  assert.equal(decoded.flags & FLAG.TC, FLAG.TC);
  assert.ok(decoded.answers.length > 20 && decoded.edns !== undefined);
  const shortened = encodeMessage(response({ answers: answers.slice(0, 1), additionals: answers, edns }), 512);
  assert.ok(!shortened.isTruncated);
  assert.equal(decode(shortened.bytes).flags & FLAG.TC, 0);
});

test("messages that are none", () => {
  const question = "01 61 00 0001 0001";
  const opt = "00 0029 04d0 00000000 0000";
  const table: readonly (readonly [string, RegExp])[] = [
    ["1234 8180 0000 0000 0000", /shorter than a header/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000`, /outside of the message/],
    [`${ID_AND_FLAGS} 0002 0000 0000 0000 ${question}`, /outside of the message/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 c00c 0001 0001`, /does not lead back/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 01 61 c00c 0001 0001`, /does not lead back/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 c012 0001 0001 00`, /does not lead back/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 c000 0001 0001`, /does not lead back/],
    [`${ID_AND_FLAGS} 0002 0000 0000 0000 00 0001 0001 41 00 0001 0001`, /reserved label/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 80 00 0001 0001`, /reserved label/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0000 ${`3f${"61".repeat(63)}`.repeat(4)} 00 0001 0001`, /name longer/],
    [`${ID_AND_FLAGS} 0001 0001 0000 0000 ${question} c00c 0001 0001 00000000 0005 01020304`, /rdata ends outside/],
    [`${ID_AND_FLAGS} 0001 0001 0000 0000 ${question} c00c 0001 0001 00000000 0003 010203`, /not a valid address/],
    [`${ID_AND_FLAGS} 0001 0001 0000 0000 ${question} c00c 0005 0001 00000000 0001 c00c`, /past its end/],
    [`${ID_AND_FLAGS} 0001 0001 0000 0000 ${question} c00c 0005 0001 00000000 0003 c00c 00`, /behind the end/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0002 ${question} ${opt} ${opt}`, /several OPT/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0001 ${question} 0161${opt}`, /OPT with an owner/],
    [`${ID_AND_FLAGS} 0001 0001 0000 0000 ${question} ${opt}`, /OPT in the answer/],
    [`${ID_AND_FLAGS} 0001 0000 0000 0001 ${question} 00 0029 04d0 00000000 0003 000a00`, /options do not fill/],
  ];
  for (const [text, reason] of table) {
    const result = decodeMessage(hex(text));
    assert.match(result.kind === "error" ? result.reason : "a message", reason, text);
  }
  const trailing = decodeMessage(hex(`${ID_AND_FLAGS} 0001 0000 0000 0000 ${question} 0102`));
  assert.equal(trailing.kind === "message" ? trailing.trailingBytes : -1, 2);
});

test("records of an UPDATE may have no rdata", () => {
  const empty = new Uint8Array(0);
  const update = response({
    opcode: 5,
    flags: 0,
    answers: [{ name: name("a.test."), type: RRTYPE.A, class: CLASS.ANY, ttl: 0, rdata: empty }],
    authorities: [
      { name: name("a.test."), type: RRTYPE.MX, class: CLASS.NONE, ttl: 0, rdata: hex("000a 0162 00") },
      { name: name("a.test."), type: RRTYPE.CNAME, class: CLASS.ANY, ttl: 0, rdata: empty },
    ],
  });
  assert.deepEqual(decode(encodeMessage(update).bytes), update);
});

test("chains of pointers are followed backwards, and not for ever", () => {
  // Opaque rdata from byte 25 on holds a root name and pointers, each to the one before; the next owner is the last.
  const chain = (pointers: number): Uint8Array => {
    const first = 12 + 11;
    const steps = Array.from({ length: pointers }, (_, index) => [
      0xc0,
      index === 0 ? first : first + 1 + (index - 1) * 2,
    ]);
    const body = steps.flatMap(([upper, lower]) => [upper! | (lower! >> 8), lower! & 0xff]);
    const length = 1 + body.length - 2;
    const last = body.slice(-2);
    const opaque = [0, 0xff, 0, 0, 1, 0, 0, 0, 0, length >> 8, length & 0xff, 0, ...body.slice(0, -2)];
    const next = [...last, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    return Uint8Array.from([0, 1, 0x84, 0, 0, 0, 0, 2, 0, 0, 0, 0, ...opaque, ...next]);
  };
  assert.equal(decodeMessage(chain(127)).kind, "message");
  const endless = decodeMessage(chain(128));
  assert.deepEqual(endless, { kind: "error", reason: "too many compression pointers" });
});

test("what is encoded decodes to the same, and any bytes decode or have a reason", () => {
  const label = fc.stringMatching(/^[a-z]{1,10}$/);
  const owner = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => name(`${labels.join(".")}.`));
  const opaque = fc.uint8Array({ maxLength: 40 });
  const anyRecord: fc.Arbitrary<ResourceRecord> = fc.oneof(
    fc.tuple(owner, owner).map(([from, to]) => ({ name: from, type: RRTYPE.NS, class: 1, ttl: 5, rdata: to })),
    fc.tuple(owner, opaque).map(([from, rdata]) => ({ name: from, type: 65_280, class: 1, ttl: 6, rdata })),
  );
  const records = fc.array(anyRecord, { maxLength: 6 });
  fc.assert(
    fc.property(records, records, records, (answers, authorities, additionals) => {
      const message = response({ questions: [], answers, authorities, additionals });
      const { bytes } = encodeMessage(message);
      assert.deepEqual(lowered(decode(bytes)), lowered(message));
      for (let cut = 0; cut < bytes.length; cut += 7) {
        assert.equal(decodeMessage(bytes.subarray(0, cut)).kind, "error");
      }
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ minLength: 4, maxLength: 4 }), (body, counts) => {
      const head = [0, 1, 0x84, 0, ...[...counts].flatMap((count) => [0, count & 3])];
      const result = decodeMessage(Uint8Array.from([...head, ...body]));
      if (result.kind === "message") assert.equal(encodeMessage(result.message).isTruncated, false);
      else assert.ok(result.reason.length > 0);
    }),
    { numRuns: 2000 },
  );
});

function lowered(message: Message): string {
  return JSON.stringify(message, (_key, value) => (value instanceof Uint8Array ? [...value] : value));
}
