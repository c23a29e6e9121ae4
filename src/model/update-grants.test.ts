import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { matchesName, mayUpdate, mayUpdateZone } from "./update-grants.ts";

const MATCHES: readonly (readonly [pattern: string, name: string, matches: boolean])[] = [
  ["_acme-challenge", "_acme-challenge", true],
  ["_acme-challenge", "_acme-challenge.www", false],
  ["_acme-challenge", "www", false],
  ["_acme-challenge.*", "_acme-challenge.www", true],
  ["_acme-challenge.*", "_acme-challenge.a.b", true],
  ["_acme-challenge.*", "_acme-challenge", false],
  ["_acme-challenge.*", "x._acme-challenge.www", false],
  ["*.dev", "a.dev", true],
  ["*.dev", "a.b.dev", true],
  ["*.dev", "*.dev", true],
  ["*.dev", "dev", false],
  ["*.dev", "a.xdev", false],
  ["*.b.*.d", "a.b.b.c.b.x.d", true],
  ["*.b.*.d", "a.b.d", false],
  ["*", "www", true],
  ["*", "a.b", true],
  ["*", "@", false],
  ["@", "@", true],
  ["@", "www", false],
  ["a*", "ab", false],
  ["*.b", "a\\.b", false],
  ["*.b", "a\\\\.b", true],
];

for (const [pattern, name, matches] of MATCHES) {
  test(`the pattern ${pattern} ${matches ? "stands" : "does not stand"} for ${name}`, () => {
    assert.equal(matchesName(pattern, name), matches);
  });
}

test("patterns match as a regular expression over labels does", () => {
  const label = fc.constantFrom("a", "b", "*");
  const labels = fc.array(label, { minLength: 1, maxLength: 7 });
  fc.assert(
    fc.property(labels, labels, (pattern, name) => {
      const expression = pattern.map((each) => (each === "*" ? "[^.]+(\\.[^.]+)*" : each)).join("\\.");
      const expected = new RegExp(`^${expression}$`).test(name.join("."));
      assert.equal(matchesName(pattern.join("."), name.join(".")), expected);
    }),
    { numRuns: 5_000 },
  );
});

test("a long name of labels that nearly match is decided at once", () => {
  const name = Array.from({ length: 126 }, () => "a").join(".");
  const pattern = `${Array.from({ length: 40 }, () => "*.a").join(".")}.b`;
  const start = performance.now();
  assert.equal(matchesName(pattern, name), false);
  assert.ok(performance.now() - start < 1_000);
});

test("grants name zones, names and types, and only those with update count", () => {
  const grants = [
    { zone: "corp.", names: ["_acme-challenge"], types: ["TXT"] as const, update: true },
    { zone: "other.", transfer: true },
    { zone: "free.", update: true },
  ];
  assert.equal(mayUpdate({ grants }, "corp.", "_acme-challenge", "TXT"), true);
  assert.equal(mayUpdate({ grants }, "corp.", "_acme-challenge", "A"), false);
  assert.equal(mayUpdate({ grants }, "corp.", "www", "TXT"), false);
  assert.equal(mayUpdate({ grants }, "free.", "@", "SOA"), true);
  assert.equal(mayUpdateZone({ grants }, "corp."), true);
  assert.equal(mayUpdateZone({ grants }, "other."), false);
  assert.equal(mayUpdate({ grants }, "other.", "www", "A"), false);
  assert.equal(mayUpdateZone({ grants }, "sub.free."), false);
});

test("a key without grants may change everything, one with none of them nothing", () => {
  assert.equal(mayUpdate({}, "corp.", "www", "A"), true);
  assert.equal(mayUpdateZone({}, "corp."), true);
  assert.equal(mayUpdate({ grants: [] }, "corp.", "www", "A"), false);
  assert.equal(mayUpdateZone({ grants: [] }, "corp."), false);
});
