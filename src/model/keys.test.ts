import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { compareNames, nameFromText } from "../dns/name.ts";
import { KEY_BYTES_MAX, KeyError, KIND_BYTES, keyBytes, keyText, kindOfByte } from "./keys.ts";
import { NATURAL_KEYS } from "./objects.ts";

function wire(text: string): Uint8Array {
  const result = nameFromText(text);
  assert.equal(result.kind, "name", text);
  return result.kind === "name" ? result.name : new Uint8Array();
}

function isPrefix(prefix: Uint8Array, whole: Uint8Array): boolean {
  return Buffer.compare(prefix, whole.subarray(0, prefix.length)) === 0;
}

/** Labels with what usual names lack: escapes, capitals, bytes 0 and 1, dots. */
const arbitraryLabel = fc
  .array(fc.oneof(fc.constantFrom("a", "b", "Z", "-", "0", "*", "\\000", "\\001", "\\002", "\\255", "\\.")), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.join(""));
const arbitraryName = fc.array(arbitraryLabel, { minLength: 0, maxLength: 5 }).map((labels) => `${labels.join(".")}.`);

test("the order of a name's bytes is the canonical order of names (RFC 4034 section 6.1)", () => {
  fc.assert(
    fc.property(arbitraryName, arbitraryName, (left, right) => {
      const byBytes = Math.sign(Buffer.compare(keyBytes("zone", [left]), keyBytes("zone", [right])));
      assert.equal(byBytes, Math.sign(compareNames(wire(left), wire(right))));
    }),
  );
});

test("the examples of RFC 4034 section 6.1 are in their order", () => {
  const names = [
    "example.",
    "a.example.",
    "yljkjljk.a.example.",
    "Z.a.example.",
    "zABC.a.EXAMPLE.",
    "z.example.",
    "\\001.z.example.",
    "*.z.example.",
    "\\200.z.example.",
  ];
  const sorted = [...names].sort((left, right) => Buffer.compare(keyBytes("zone", [left]), keyBytes("zone", [right])));
  assert.deepEqual(sorted, names);
});

test("records of a zone lie in canonical order of their names, the apex first", () => {
  const names = ["@", "a", "b.a", "*.b", "z"];
  const bytes = names.map((name) => keyBytes("record", ["corp.", name, "A"]));
  assert.deepEqual([...bytes].sort(Buffer.compare), bytes);
});

test("leading parts are a prefix, and of their own keys only", () => {
  const whole = keyBytes("record", ["corp.", "a", "A"]);
  assert.ok(isPrefix(keyBytes("record", ["corp."]), whole));
  assert.ok(isPrefix(keyBytes("record", ["corp.", "a"]), whole));
  assert.ok(!isPrefix(keyBytes("record", ["corp."]), keyBytes("record", ["sub.corp.", "a", "A"])));
  assert.ok(!isPrefix(keyBytes("record", ["corp.", "a"]), keyBytes("record", ["corp.", "x.a", "A"])));
  assert.ok(!isPrefix(keyBytes("record", ["corp.", "a", "A"]), keyBytes("record", ["corp.", "a", "AAAA"])));
  assert.ok(!isPrefix(keyBytes("config", ["rate"]), keyBytes("config", ["rate-limits"])));
});

test("the fast way to the bytes is the same as the other", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("a", "b-c", "*", "_x1"), { minLength: 1, maxLength: 4 }), (labels) => {
      // One letter by its number: the same name, but not for the fast way.
      const plain = [...labels, "a"].join(".");
      const escaped = [...labels, "\\097"].join(".");
      assert.deepEqual(
        keyBytes("record", [`${plain}.`, plain, "A"]),
        keyBytes("record", [`${escaped}.`, escaped, "A"]).slice(),
      );
    }),
  );
});

test("texts keep their order and their difference, whatever is in them", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (left, right) => {
      const [leftUtf8, rightUtf8] = [Buffer.from(left), Buffer.from(right)];
      const order = Math.sign(Buffer.compare(keyBytes("user", [left]), keyBytes("user", [right])));
      assert.equal(order, Math.sign(Buffer.compare(leftUtf8, rightUtf8)));
    }),
  );
});

test("two names of the greatest length fit, and what does not fit is refused", () => {
  const label = "\\000".repeat(63);
  const longest = `${label}.${label}.${label}.${"\\000".repeat(61)}.`;
  assert.ok(keyBytes("record", [longest, longest.slice(0, -1), "A"]).length < KEY_BYTES_MAX);
  assert.throws(() => keyBytes("user", ["x".repeat(3000)]), KeyError);
  assert.throws(() => keyBytes("zone", ["a..b."]), KeyError);
  assert.throws(() => keyBytes("zone", ["relative"]), KeyError);
  assert.throws(() => keyBytes("zone", [`${"a".repeat(64)}.`]), KeyError);
  assert.throws(() => keyBytes("user", ["a", "b"]), KeyError);
});

test("every kind has a byte of its own and a key", () => {
  for (const [kind, byte] of Object.entries(KIND_BYTES)) assert.equal(kindOfByte(byte), kind);
  assert.deepEqual(Object.keys(KIND_BYTES).sort(), Object.keys(NATURAL_KEYS).sort());
  assert.throws(() => kindOfByte(200), KeyError);
  assert.notEqual(keyText("user", ["a", "b"]), keyText("user", ["a b"]));
});
