import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { JSON_DEPTH_MAX, parseJson } from "./json.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const faultOf = (text: string) => {
  const parsed = parseJson(bytes(text));
  return "fault" in parsed ? parsed.fault : "";
};

test("every JSON value is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), (text) => {
      const parsed = parseJson(bytes(text));
      // __proto__ is the one name that valid JSON may hold and we refuse.
      if (text.includes("__proto__") && "fault" in parsed) return;
      assert.deepEqual(parsed, { value: JSON.parse(text) });
    }),
  );
});

test("arbitrary bytes give a value or a fault", () => {
  fc.assert(fc.property(fc.uint8Array(), (any) => assert.ok(Object.keys(parseJson(any)).length === 1)));
});

test("a member twice is refused, however it is spelled", () => {
  assert.match(faultOf('{"a":1,"b":{"a":2},"a":3}'), /"a" is there twice/);
  assert.match(faultOf('{"a":1,"\\u0061":3}'), /"a" is there twice/);
  assert.equal(faultOf('{"a":{"a":1},"b":[{"a":1},{"a":1}],"c":"a","d":"\\"a\\":"}'), "");
});

test("__proto__ is no name", () => {
  assert.match(faultOf('{"__proto__":{"admin":true}}'), /__proto__/);
  assert.match(faultOf('{"\\u005f_proto__":1}'), /__proto__/);
  assert.equal(faultOf('["__proto__"]'), "");
});

test("depth is bounded", () => {
  assert.equal(faultOf("[".repeat(JSON_DEPTH_MAX) + "]".repeat(JSON_DEPTH_MAX)), "");
  assert.match(faultOf("[".repeat(JSON_DEPTH_MAX + 1) + "]".repeat(JSON_DEPTH_MAX + 1)), /nested deeper/);
  assert.match(faultOf("[".repeat(1_000_000)), /nested deeper/);
});

test("bytes that are not UTF-8 are refused, a byte order mark is passed over", () => {
  assert.deepEqual(parseJson(new Uint8Array([0x22, 0xff, 0x22])), { fault: "the text is not valid UTF-8" });
  assert.deepEqual(parseJson(bytes("\ufeff1")), { value: 1 });
});

test("a fault does not repeat the text", () => {
  assert.doesNotMatch(faultOf('{"password": "secret-word" oops}'), /secret|oops/);
  assert.match(faultOf('{"a": "\\q"}'), /not valid JSON/);
});
