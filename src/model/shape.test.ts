import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import Type from "typebox";
import { FAULTS_MAX } from "./limits.ts";
import { readOnlyFaults } from "./put.ts";
import { checkShape } from "./shape.ts";

const Value = Type.Object({ value: Type.String({ maxLength: 4 }) }, { additionalProperties: false });
const Thing = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 5 }),
    ttl: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
    method: Type.Optional(Type.Union([Type.Literal("a"), Type.Literal("b")])),
    role: Type.Optional(Type.Enum(["x", "y"])),
    policy: Type.Optional(Type.Union([Type.Null(), Value])),
    values: Type.Optional(Type.Array(Value, { maxItems: 3, minItems: 1, uniqueItems: true })),
    weights: Type.Optional(Type.Record(Type.String(), Type.Integer(), { maxProperties: 2 })),
    at: Type.Optional(Type.String({ format: "date-time" })),
  },
  { additionalProperties: false },
);

const cases: readonly (readonly [unknown, readonly string[]])[] = [
  [{ name: "a" }, []],
  [{ name: "a", policy: null, values: [{ value: "1" }], weights: { "a/b": 1 }, at: "2026-02-28T00:00:00Z" }, []],
  [{}, ["/name is missing"]],
  [[], [" must be an object, not an array"]],
  [{ name: 3, ttl: "1" }, ["/name must be a string, not a number", "/ttl must be an integer, not a string"]],
  [{ name: "a", ttl: 1.5 }, ["/ttl must be an integer, not a number"]],
  [{ name: "a", ttl: 10 }, ["/ttl must be from 0 to 9"]],
  [{ name: "" }, ["/name must not be empty"]],
  [{ name: "abcdef" }, ["/name must not be longer than 5 characters"]],
  [{ name: "\u{1f600}".repeat(5) }, []],
  [{ name: `e${"\u0301".repeat(9)}` }, ["/name must not be longer than 5 characters"]],
  [{ name: "\ud800" }, ["/name holds half of a surrogate pair"]],
  [{ name: "a", "x/~": 1 }, ["/x~1~0 is not a field of this object"]],
  [JSON.parse('{"name":"a","__proto__":1,"constructor":1}'), ["/__proto__ is not", "/constructor is not"]],
  [{ name: "a", method: "c" }, ['/method must be one of "a", "b"']],
  [{ name: "a", role: 1 }, ['/role must be one of "x", "y"']],
  [{ name: "a", policy: { value: "12345" } }, ["/policy/value must not be longer than 4 characters"]],
  [{ name: "a", policy: 7 }, ["/policy must be null or an object, not a number"]],
  [{ name: "a", values: [] }, ["/values must have at least 1 entry"]],
  [{ name: "a", values: [{ value: "1" }, { value: "1" }] }, ["/values/1 is there twice"]],
  [{ name: "a", values: [{ value: "1", q: 1 }] }, ["/values/0/q is not a field of this object"]],
  [{ name: "a", weights: { "a\nb": "1" } }, ["/weights/a\nb must be an integer, not a string"]],
  [JSON.parse('{"name":"a","weights":{"__proto__":1}}'), ["/weights/__proto__ is not a field"]],
  [{ name: "a", at: "2026-02-30T00:00:00Z" }, ["/at must be a time of RFC 3339"]],
  [{ name: "a", ttl: JSON.parse("1e999") }, ["/ttl must be an integer"]],
];

test("a choice of words within a choice is told by its words", () => {
  const words = Type.Union([Type.Literal("a"), Type.Literal("b")]);
  assert.deepEqual(checkShape(Type.Union([words, Type.Null()]), "x"), [
    { pointer: "", detail: 'must be one of "a", "b", null' },
  ]);
  assert.deepEqual(checkShape(Type.Union([words, Type.Null()]), null), []);
  assert.deepEqual(checkShape(Type.Union([words, Type.Null()]), "b"), []);
  assert.deepEqual(checkShape(Type.Union([Type.Enum(["a"]), Type.Null()]), 1), [
    { pointer: "", detail: 'must be one of "a", null' },
  ]);
});

for (const [value, expected] of cases) {
  test(`the shape of ${JSON.stringify(value)}`, () => {
    const found = checkShape(Thing, value).map(({ pointer, detail }) => `${pointer} ${detail}`);
    assert.equal(found.length, expected.length, found.join("\n"));
    for (const [index, fault] of found.entries())
      assert.ok(fault.startsWith(expected[index]!), `${fault}\n${expected[index]}`);
  });
}

test("no value makes it throw, and faults are bounded", () => {
  fc.assert(fc.property(fc.anything(), (value) => assert.ok(checkShape(Thing, value).length <= FAULTS_MAX)));
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, 1]));
  assert.equal(checkShape(Thing, many).length, FAULTS_MAX);
});

test("a schema with a keyword that nobody checks is refused", () => {
  assert.throws(
    () => checkShape(Type.Object({ a: Type.String({ contentEncoding: "base64" }) }), {}),
    /contentEncoding/,
  );
});

test("read-only fields may come back unchanged and not otherwise", () => {
  const current = { id: "a", soa: { serial: 1 }, name: "x" };
  assert.deepEqual(readOnlyFaults(current, { id: "a", soa: { serial: 1 }, name: "y" }, ["id", "soa"]), []);
  assert.deepEqual(
    readOnlyFaults(current, { id: "b", soa: { serial: 2 } }, ["id", "soa"]).map(({ pointer }) => pointer),
    ["/id", "/soa"],
  );
});
