import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compareNames, isSubdomain, labelCount, nameFromText, nameLengthAt, namesEqual, nameToText } from "./name.ts";

const ORIGIN = wire("example.test.");

function wire(text: string, origin?: Uint8Array): Uint8Array {
  const result = nameFromText(text, origin);
  assert.equal(result.kind, "name", text);
  return (result as { readonly name: Uint8Array }).name;
}

test("text becomes wire bytes, relative names are completed", () => {
  const table: readonly (readonly [string, string])[] = [
    ["www", "www.example.test."],
    ["www.", "www."],
    ["@", "example.test."],
    [".", "."],
    ["\\@", "\\@.example.test."],
    ["a\\.b.c.", "a\\.b.c."],
    ["\\097\\032.", "a\\032."],
    ["\\000.", "\\000."],
    ["*.x", "*.x.example.test."],
    ["_tcp", "_tcp.example.test."],
    ["a\\\\.", "a\\\\."],
    ['\\"\\(\\)\\;\\$.', '\\"\\(\\)\\;\\$.'],
    ["\u00e9.", "\\195\\169."],
  ];
  for (const [text, printed] of table) assert.equal(nameToText(wire(text, ORIGIN)), printed, text);
});

test("what is not a name is refused with its reason", () => {
  const label63 = "a".repeat(63);
  const table: readonly (readonly [string, RegExp])[] = [
    ["", /empty name/],
    ["..", /empty label/],
    [".a.", /empty label/],
    ["a..b.", /empty label/],
    [`${"a".repeat(64)}.`, /label longer/],
    [`${`${label63}.`.repeat(4)}`, /name longer/],
    ["a\\", /escape/],
    ["a\\25", /escape/],
    ["a\\256.", /escape/],
    ["a\\2x5.", /escape/],
  ];
  for (const [text, reason] of table) {
    const result = nameFromText(text, ORIGIN);
    assert.equal(result.kind, "error", text);
    assert.match(result.kind === "error" ? result.reason : "", reason);
  }
  const relative = nameFromText("www");
  assert.deepEqual(relative, { kind: "error", reason: "relative name without an origin" });
});

test("a name of 255 bytes is the longest", () => {
  const label63 = "a".repeat(63);
  const longest = `${label63}.${label63}.${label63}.${"b".repeat(61)}`;
  assert.equal(wire(`${longest}.`).length, 255);
  assert.equal(nameFromText(`${longest}b.`).kind, "error");
  assert.equal(nameFromText("b.".repeat(127)).kind, "name");
  assert.equal(nameFromText("b.".repeat(128)).kind, "error");
  const completed = nameFromText(longest.slice(0, -13), ORIGIN);
  assert.equal(completed.kind === "name" ? completed.name.length : 0, 255);
  assert.equal(nameFromText(longest.slice(0, -12), ORIGIN).kind, "error");
});

test("canonical order is that of RFC 4034 section 6.1", () => {
  const ordered = ["example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example."];
  const more = ["\\001.z.example.", "*.z.example.", "\\200.z.example."];
  const names = [...ordered, ...more].map((text) => wire(text));
  const shuffled = names.toReversed().toSorted(compareNames);
  assert.deepEqual(
    shuffled.map((name) => nameToText(name)),
    names.map((name) => nameToText(name)),
  );
});

test("subdomains end at label borders and have no case", () => {
  assert.ok(isSubdomain(wire("a.b.example.test."), wire("Example.TEST.")));
  assert.ok(isSubdomain(wire("example.test."), wire("example.test.")));
  assert.ok(isSubdomain(wire("example.test."), wire(".")));
  assert.ok(!isSubdomain(wire("badexample.test."), wire("example.test.")));
  assert.ok(!isSubdomain(wire("test."), wire("example.test.")));
  assert.ok(!isSubdomain(wire("x\\007example.test."), wire("example.test.")));
  assert.equal(labelCount(wire("*.a.test.")), 3);
});

test("any label bytes survive printing and reading", () => {
  const label = fc.uint8Array({ minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(label, { maxLength: 8 }), (labels) => {
      const name = Uint8Array.from([...labels.flatMap((bytes) => [bytes.length, ...bytes]), 0]);
      assert.deepEqual(wire(nameToText(name)), name);
      assert.equal(nameLengthAt(name, 0, name.length), name.length);
      assert.equal(nameLengthAt(name, 0, name.length - 1), -1);
      assert.ok(namesEqual(name, wire(nameToText(name).toUpperCase())));
    }),
  );
});

test("any text gives a name or a reason", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      const result = nameFromText(text, ORIGIN);
      if (result.kind === "name") assert.equal(nameLengthAt(result.name, 0, 256), result.name.length);
      else assert.ok(result.reason.length > 0);
    }),
  );
});
