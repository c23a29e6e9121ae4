import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openLab, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { EDNS_OPTION, OPCODE } from "../dns/codes.ts";
import type { EdnsOption } from "../dns/edns.ts";
import { TRANSPORT, type Transport } from "../image/counters.ts";

/** TXT RRsets of many sizes. */
const sizes = [0, 1, 100, 380, 395, 396, 397, 398, 399, 400, 401, 402, 403, 404, 405, 430, 2_000, 64_000, 64_500];
const texts = sizes.map((size) => {
  const strings = Array.from({ length: Math.ceil(size / 200) || 1 }, (_, index) =>
    "x".repeat(Math.min(200, Math.max(size - index * 200, 0))),
  );
  return `t${size} TXT ${strings.map((text) => `"${text}"`).join(" ")}\n`;
});
const lab = openLab([zone("example.test.", `www A 192.0.2.1\n${texts.join("")}`)]);
const PADDING: EdnsOption = { code: EDNS_OPTION.PADDING, data: new Uint8Array(28) };
const COOKIE: EdnsOption = { code: EDNS_OPTION.COOKIE, data: new Uint8Array(8) };

function ask(question: string, transport: Transport, options = [PADDING]): Uint8Array {
  const answer = lab.send(queryBytes(question, { edns: { options } }), { transport });
  assert.ok(answer);
  return answer;
}

function paddingOf(answer: Uint8Array): readonly (Uint8Array | undefined)[] {
  return (decode(answer).edns?.options ?? [])
    .filter(({ code }) => code === EDNS_OPTION.PADDING)
    .map(({ data }) => data);
}

test("over encrypted transports a padded query has an answer padded to blocks of 468 (RFC 8467 section 4.1)", () => {
  for (const transport of [TRANSPORT.DOT, TRANSPORT.DOH]) {
    for (const size of sizes) {
      for (const options of [[PADDING], [PADDING, COOKIE], [COOKIE, PADDING]]) {
        const answer = ask(`t${size}.example.test. TXT`, transport, options);
        const [padding, ...more] = paddingOf(answer);
        assert.deepEqual(more, []);
        assert.ok(padding?.every((byte) => byte === 0));
        assert.ok(answer.length % 468 === 0, `${size}: ${answer.length}`);
        assert.ok((padding?.length ?? 468) < 468);
      }
    }
  }
});

test("where the answer is signed, its signature is part of the blocks", () => {
  const signatureBytes = 88;
  lab.answerer.setView(signatureBytes, false);
  for (const size of sizes) {
    const { length } = ask(`t${size}.example.test. TXT`, TRANSPORT.DOT);
    assert.equal((length + signatureBytes) % 468, 0, `${size}: ${length}`);
  }
  lab.answerer.setView(0, false);
});

test("so are negative answers and refusals, with their extended errors", () => {
  for (const question of ["nope.example.test. A", "www.elsewhere.test. A", "example.test. AXFR"]) {
    assert.equal(ask(question, TRANSPORT.DOT).length, 468);
  }
});

test("so are answers to what is no query, and those that are made of an RCODE alone", () => {
  const update = { opcode: OPCODE.UPDATE, edns: { options: [COOKIE, PADDING] } } as const;
  const messages = [
    queryBytes("example.test. SOA", update),
    queryBytes("example.test. SOA", { ...update, opcode: 15 }),
    Buffer.concat([queryBytes("example.test. SOA", { ...update, opcode: OPCODE.QUERY }), Buffer.alloc(3)]),
  ];
  for (const message of messages) {
    for (const [transport, length] of [
      [TRANSPORT.DOT, 468],
      [TRANSPORT.DOH, 468],
      [TRANSPORT.TCP, undefined],
    ] as const) {
      assert.equal(paddingOf(lab.send(message, { transport }) ?? assert.fail()).length, length === undefined ? 0 : 1);
      const signatureBytes = 88;
      const bytes = new Uint8Array(4_096);
      bytes.set(message, 7);
      lab.answerer.enter();
      lab.answerer.setView(signatureBytes, false);
      const made = lab.answerer.answerWith(bytes, 7, message.length, Uint8Array.of(127, 0, 0, 1), 0, 4, transport, 5);
      lab.answerer.setView(0, false);
      lab.answerer.leave();
      if (length !== undefined) assert.equal(made + signatureBytes, length);
      assert.equal(paddingOf(bytes.subarray(7, 7 + made)).length, length === undefined ? 0 : 1);
    }
  }
});

test("padding is the last option and in nothing else changes the answer", () => {
  const padded = decode(ask("www.example.test. A", TRANSPORT.DOT, [PADDING, COOKIE]));
  const plain = decode(ask("www.example.test. A", TRANSPORT.DOT, [COOKIE]));
  assert.equal(padded.edns?.options.at(-1)?.code, EDNS_OPTION.PADDING);
  assert.deepEqual(padded.answers, plain.answers);
  assert.deepEqual(
    padded.edns?.options.map(({ code }) => code),
    [...(plain.edns?.options.map(({ code }) => code) ?? []), EDNS_OPTION.PADDING],
  );
});

test("none over UDP and TCP, and none for a query without", () => {
  for (const transport of [TRANSPORT.UDP, TRANSPORT.TCP]) {
    assert.deepEqual(paddingOf(ask("www.example.test. A", transport)), []);
  }
  assert.deepEqual(paddingOf(ask("www.example.test. A", TRANSPORT.DOT, [])), []);
});
