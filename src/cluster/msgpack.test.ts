import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  createReader,
  createWriter,
  type FieldValue,
  putFields,
  readFields,
  remaining,
  UNSUPPORTED,
  written,
} from "./msgpack.ts";

const NAMES = new Set(["a", "b"]);

/** The field "a" of a map with that one field, whose value is spelled like this in hex. */
function scalarOf(hex: string): unknown {
  const reader = createReader(Buffer.from(`81a161${hex}`, "hex"));
  const fields = readFields(reader, NAMES);
  if (fields === undefined) return "malformed";
  assert.equal(remaining(reader), 0);
  const value = fields.get("a");
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
}

const SPELLINGS: readonly (readonly [what: string, hex: string, value: unknown])[] = [
  ["nil", "c0", undefined],
  ["false", "c2", false],
  ["true", "c3", true],
  ["the greatest small integer", "7f", 127],
  ["the least negative small integer", "e0", -32],
  ["8 bits", "cc80", 128],
  ["16 bits", "cd1234", 0x1234],
  ["32 bits", "ceffffffff", 0xffff_ffff],
  ["64 bits", "cf0000000100000002", 2 ** 32 + 2],
  ["64 bits that are no exact number", "cfffffffffffffffff", UNSUPPORTED],
  ["signed 8 bits", "d0ff", -1],
  ["signed 16 bits", "d18000", -32_768],
  ["signed 32 bits", "d27fffffff", 2 ** 31 - 1],
  ["signed 64 bits", "d3ffffffffffffffff", -1],
  ["signed 64 bits that are no exact number", "d38000000000000000", UNSUPPORTED],
  ["short raw", "a3616263", "616263"],
  ["no bytes", "a0", ""],
  ["str 8", "d9026162", "6162"],
  ["raw 16", "da00026162", "6162"],
  ["raw 32", "db000000026162", "6162"],
  ["bin 8", "c4026162", "6162"],
  ["bin 16", "c500026162", "6162"],
  ["bin 32", "c6000000026162", "6162"],
  ["a float of 32 bits", "ca3f800000", UNSUPPORTED],
  ["a float of 64 bits", "cb3ff0000000000000", UNSUPPORTED],
  ["an array", "93010203", UNSUPPORTED],
  ["array 16", "dc000101", UNSUPPORTED],
  ["array 32", "dd0000000101", UNSUPPORTED],
  ["a map", "81a1629101", UNSUPPORTED],
  ["map 16", "de0001a16201", UNSUPPORTED],
  ["map 32", "df00000001a16201", UNSUPPORTED],
  ["fixed extensions", "d40100", UNSUPPORTED],
  ["a fixed extension of 16 bytes", `d801${"00".repeat(16)}`, UNSUPPORTED],
  ["an extension", "c7030100ff00", UNSUPPORTED],
  ["ext 16", "c800010100", UNSUPPORTED],
  ["ext 32", "c9000000010100", UNSUPPORTED],
  ["eight arrays in each other", `${"91".repeat(8)}01`, UNSUPPORTED],
  ["nine arrays in each other", `${"91".repeat(9)}01`, "malformed"],
  ["the byte that means nothing", "c1", "malformed"],
  ["nothing", "", "malformed"],
  ["an integer that is cut off", "cd12", "malformed"],
  ["a signed integer that is cut off", "d3ffffff", "malformed"],
  ["raw that is cut off", "a36162", "malformed"],
  ["a length that is cut off", "da00", "malformed"],
  ["a length beyond the end", "dbffffffff61", "malformed"],
  ["a count beyond the end", "ddffffffff01", "malformed"],
  ["a map beyond the end", "dfffffffff01", "malformed"],
  ["an extension beyond the end", "c9ffffffff01", "malformed"],
  ["a float that is cut off", "cb3ff0", "malformed"],
];

for (const [what, hex, value] of SPELLINGS) {
  test(`${what}: ${hex.slice(0, 24)}`, () => assert.equal(scalarOf(hex), value));
}

function fieldsOf(hex: string) {
  const fields = readFields(createReader(Buffer.from(hex, "hex")), NAMES);
  return fields === undefined ? undefined : Object.fromEntries(fields);
}

test("other fields are passed over, of whatever type their keys are; the last of two counts", () => {
  assert.deepEqual(fieldsOf("86a17801a161010201" + "91c0c0" + "a16103a16204"), { a: 3, b: 4 });
  assert.deepEqual(fieldsOf(`82d941${"61".repeat(65)}01c4016102`), { a: 2 });
  assert.deepEqual(fieldsOf("80"), {});
});

test("what is no map is malformed", () => {
  for (const hex of ["", "01", "9101", "a161", "c0", "8", "82a16101"]) assert.equal(fieldsOf(hex), undefined, hex);
});

test("fields are read as they were written", () => {
  const anyValue: fc.Arbitrary<FieldValue> = fc.oneof(
    fc.boolean(),
    fc.integer({ min: 0, max: 0xffff_ffff }),
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Uint8Array.from(bytes)),
    fc.integer({ min: 65_530, max: 65_540 }).map((length) => new Uint8Array(length).fill(length)),
  );
  fc.assert(
    fc.property(anyValue, anyValue, (a, b) => {
      const writer = createWriter();
      putFields(writer, { a, b, c: "passed over" });
      const reader = createReader(written(writer));
      assert.deepEqual(Object.fromEntries(readFields(reader, NAMES) ?? []), { a, b });
      assert.equal(remaining(reader), 0);
    }),
  );
});

test("bytes are written as the old specification has them", () => {
  const spelled = (length: number) => {
    const writer = createWriter();
    putFields(writer, { a: new Uint8Array(length) });
    return Buffer.from(written(writer).subarray(3, 8)).toString("hex");
  };
  assert.equal(spelled(31).slice(0, 2), "bf");
  assert.equal(spelled(32).slice(0, 6), "da0020");
  assert.equal(spelled(65_536), "db00010000");
});

test("arbitrary bytes are fields or malformed", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      for (const text of [bytes, Uint8Array.of(0x8f, ...bytes)]) {
        const reader = createReader(text);
        readFields(reader, NAMES);
        assert.ok(reader.at <= text.length);
      }
    }),
    { numRuns: 1_000 },
  );
});
