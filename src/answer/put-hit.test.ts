import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cachedAnswer } from "../../tests/support/cached-answers.ts";
import { answerLines, decode, nameOf, openLab, queryBytes, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { FLAG } from "../dns/codes.ts";
import type { CachedAnswer } from "../image/cache.ts";
import { TRANSPORT } from "../image/counters.ts";
import { CONTROL } from "../image/shared.ts";
import { expandHit } from "./expand-hit.ts";
import { findHit } from "./find-hit.ts";
import { PUT_HIT } from "./hit.ts";
import { putHit } from "./put-hit.ts";
import { readQuery } from "./query.ts";
import { createAnswerState } from "./state.ts";

const ROUTE = 99;
const TCP = { flags: FLAG.RD, transport: TRANSPORT.TCP } as const;
const LINKS_MAX = 14;
const SOA = "far. 60 SOA ns.q.far. host.far. 1 2 3 4 60";

/** Names of ours that lead to `q.far.` by so many CNAMEs. */
const LINKS = Array.from({ length: LINKS_MAX }, (_, index) => {
  const target = index === 0 ? "q.far." : `${"long".repeat(index)}-${index - 1}`;
  return `${"long".repeat(index + 1)}-${index} CNAME ${target}`;
});

function labWith(answers: string, authorities: string): ZoneLab {
  const lab = openLab([zone("example.test.", LINKS.join("\n"))], { answerer: { forwards: true } });
  lab.route(".", ROUTE);
  lab.cached("q.far. TXT", { route: ROUTE, answers, authorities });
  return lab;
}

const label = fc.constantFrom("a", "b", "cc", "deep.er", "x.q", "q");
const name = fc.oneof(
  label.map((text) => `${text}.far.`),
  fc.constant("q.far."),
  label.map((text) => `${text}.other.`),
);
const record = fc.oneof(
  fc.tuple(name, name).map(([owner, target]) => `${owner} 300 MX 10 ${target}`),
  fc.tuple(name, name).map(([owner, target]) => `${owner} 300 NS ${target}`),
  fc.tuple(name, name).map(([owner, target]) => `${owner} 300 SRV 1 2 3 ${target}`),
  fc.tuple(name, fc.nat(250)).map(([owner, size]) => `${owner} 300 TXT "${"x".repeat(size)}"`),
);

test("records are the same behind CNAMEs of ours, wherever they land, and with their names written out", () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 200 }), fc.nat(LINKS_MAX - 1), fc.boolean(), (answers, link, hasSoa) => {
      const lab = labWith(answers.join("\n"), hasSoa ? SOA : "");
      const [status, ...plain] = lab.ask("q.far. TXT", TCP);
      assert.equal(status, "NOERROR rd ra");
      assert.equal(plain.length, answers.length + (hasSoa ? 1 : 0));
      const behind = lab.ask(`${"long".repeat(link + 1)}-${link}.example.test. TXT`, TCP);
      assert.deepEqual(behind.slice(link + 2), plain);
      assert.deepEqual(expanded(lab), plain);
    }),
    { numRuns: 150 },
  );
});

/** The same answer with no name to point to. */
function expanded(lab: ZoneLab): readonly string[] {
  const { state, bytes } = stateOf(lab);
  const put = expandHit(state, { ...state.query.question, at: -1 });
  assert.equal(put, PUT_HIT.DONE);
  const { query, hit } = state;
  query.data.setUint16(2, FLAG.QR);
  query.data.setUint16(6, hit.answers);
  query.data.setUint16(8, hit.authorities);
  query.data.setUint16(10, 0);
  return answerLines(decode(bytes.subarray(0, query.at))).slice(1);
}

function stateOf(lab: ZoneLab) {
  const state = createAnswerState(lab.writer.view, { forwards: true });
  const bytes = new Uint8Array(65_535);
  const question = queryBytes("q.far. TXT", { edns: false });
  bytes.set(question);
  readQuery(state.query, bytes, 0, question.length, lab.writer.view.control[CONTROL.HASH_SEED]!);
  state.query.at = state.query.questionEnd;
  state.query.limit = bytes.length;
  assert(findHit(state, state.query.name, 16, ROUTE, true));
  return { state, bytes };
}

test("large answers reach over what pointers reach", () => {
  const answers = Array.from({ length: 900 }, (_, index) => `q.far. 300 MX ${index} mail-${index}.q.far.`);
  const lab = labWith(answers.join("\n"), SOA);
  const [, ...plain] = lab.ask("q.far. TXT", TCP);
  assert.equal(plain.length, 901);
  for (const link of [0, 5, LINKS_MAX - 1]) {
    const behind = lab.ask(`${"long".repeat(link + 1)}-${link}.example.test. TXT`, TCP);
    assert.deepEqual(behind.slice(link + 2), plain);
  }
});

test("an entry of any content never throws, writes nowhere else, and is answered or lacking", () => {
  const u16 = fc.oneof(fc.nat(80), fc.nat(0xffff));
  const garbage = fc.record({
    bytes: fc.uint8Array({ maxLength: 120 }),
    pointers: fc.array(u16, { maxLength: 6 }),
    ttls: fc.array(u16, { maxLength: 6 }),
    targets: fc.array(u16, { maxLength: 4 }),
    answers: fc.nat(5),
    authorities: fc.nat(3),
    isOpen: fc.boolean(),
    age: fc.nat(20),
  });
  const lab = openLab([zone("example.test.", `${LINKS.join("\n")}\nalias ALIAS q.far.\n`)], {
    answerer: { forwards: true },
    nowSeconds: 1000,
  });
  lab.route(".", ROUTE);
  fc.assert(
    fc.property(garbage, fc.boolean(), fc.constantFrom("q.far.", "long-0.example.test."), (parts, isTcp, owner) => {
      const { age, ...entry } = parts;
      for (const type of [1, 16]) lab.cache.put(garbageAnswer(type, entry));
      lab.clock(1000 + age);
      const options = { flags: FLAG.RD, transport: isTcp ? TRANSPORT.TCP : TRANSPORT.UDP };
      // The lab sees to it that nothing is written beside the room, and that what is lacking leaves the query as it was.
      for (const question of [`${owner} TXT`, "alias.example.test. A"]) lab.sendOrLack(queryBytes(question), options);
    }),
    { numRuns: 5000 },
  );
});

function garbageAnswer(type: number, entry: Partial<CachedAnswer>): CachedAnswer {
  const wire = nameOf("q.far.");
  return cachedAnswer("q.far.", { ...entry, name: wire.subarray(0, wire.length - 1), type, route: ROUTE });
}

test("an entry that is overwritten while it is read is none", () => {
  const lab = labWith("q.far. 300 TXT x", "");
  const { state } = stateOf(lab);
  const { at } = state.query;
  for (let index = 0; index < 50_000; index++) {
    const other = nameOf(`other-${index % 1000}.far.`);
    lab.cache.put(cachedAnswer("q.far.", { name: other.subarray(0, other.length - 1), route: ROUTE }));
  }
  for (const exact of [true, false]) {
    assert.equal(putHit(state, state.query.question, exact), PUT_HIT.GONE);
    assert.equal(state.query.at, at);
  }
  assert.equal(lab.lack("q.far. TXT", TCP), `${ROUTE} q.far. TXT 0`);
});
