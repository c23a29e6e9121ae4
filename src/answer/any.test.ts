import assert from "node:assert/strict";
import { test } from "node:test";
import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";
import { CLASS } from "../dns/codes.ts";

/** RFC 8482 section 4.1: one RRset of the name. */
const lab = openLab([
  zone(
    "example.test.",
    'many A 192.0.2.1\nmany A 192.0.2.2\nmany TXT "t"\nmany MX 10 x.\nc CNAME many\n*.w TXT "w"\nx.ent A 192.0.2.3\n',
  ),
]);

test("ANY: all records of one type of the name", () => {
  const { answers } = lab.message("many.example.test. ANY");
  const types = new Set(answers.map(({ type }) => type));
  assert.equal(types.size, 1);
  const [type] = types;
  const direct = lab.message(`many.example.test. TYPE${type}`);
  assert.deepEqual(answers, direct.answers);
});

testAnswers(lab, [
  [
    "a CNAME is not followed",
    "c.example.test. ANY",
    ["NOERROR aa", "answer c.example.test. 300 IN CNAME many.example.test."],
  ],
  ["from a wildcard", "x.w.example.test. ANY", ["NOERROR aa", 'answer x.w.example.test. 300 IN TXT "w"']],
  ["an empty non-terminal", "ent.example.test. ANY", ["NOERROR aa", negative("example.test.")]],
  ["no such name", "nope.example.test. ANY", ["NXDOMAIN aa", negative("example.test.")]],
]);

testAnswers(
  lab,
  [
    [
      "class ANY is answered as IN, without authority (RFC 1034 section 6.2.2)",
      "x.w.example.test. TXT",
      ["NOERROR", 'answer x.w.example.test. 300 IN TXT "w"'],
    ],
  ],
  { class: CLASS.ANY },
);
