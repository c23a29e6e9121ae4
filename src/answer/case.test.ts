import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const lab = openLab([
  zone("Example.TEST.", 'WwW A 192.0.2.1\nmx MX 10 WWW\nalias CNAME OTHER.Elsewhere.Net.\nt TXT "MiXed"\n'),
]);

testAnswers(lab, [
  [
    "the owner is spelled as in the question",
    "wWw.exAMPle.tEst. A",
    ["NOERROR aa", "answer wWw.exAMPle.tEst. 300 IN A 192.0.2.1"],
  ],
  ["data keeps its case", "t.example.test. TXT", ["NOERROR aa", 'answer t.example.test. 300 IN TXT "MiXed"']],
  [
    "a name out of the zone keeps its case",
    "alias.example.test. A",
    ["NOERROR aa", "answer alias.example.test. 300 IN CNAME OTHER.Elsewhere.Net."],
  ],
]);

test("letters, and nothing else, have case (RFC 4343)", () => {
  const { ask } = openLab([
    zone("example.test.", "a\\091b A 192.0.2.1\na{b A 192.0.2.2\n\\200 A 192.0.2.3\n\\232 A 192.0.2.4\n"),
  ]);
  assert.match(ask("A\\091B.example.test. A")[1] ?? "", /192\.0\.2\.1$/);
  assert.match(ask("A{B.example.test. A")[1] ?? "", /192\.0\.2\.2$/);
  assert.match(ask("\\200.example.test. A")[1] ?? "", /192\.0\.2\.3$/);
  assert.match(ask("\\232.example.test. A")[1] ?? "", /192\.0\.2\.4$/);
});

test("any case of the question finds the name and comes back as it was", () => {
  const letters = [..."www.example.test."];
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: letters.length, maxLength: letters.length }), (upper) => {
      const name = letters.map((letter, index) => (upper[index] ? letter.toUpperCase() : letter)).join("");
      assert.deepEqual(lab.ask(`${name} A`), ["NOERROR aa", `answer ${name} 300 IN A 192.0.2.1`]);
    }),
  );
});
