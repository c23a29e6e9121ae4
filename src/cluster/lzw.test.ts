import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { deflateLzw } from "../../tests/support/lzw.ts";
import { inflateLzw } from "./lzw.ts";

const NO_LIMIT = 2 ** 30;

function inflated(text: Uint8Array, bytesMax = NO_LIMIT): string | Buffer {
  const outcome = inflateLzw(text, bytesMax);
  return "fault" in outcome ? outcome.fault : Buffer.from(outcome.bytes);
}

/** Bytes with repetitions, so that codes beyond the literals come up. */
const anyRepetitive = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 8 }), fc.integer({ min: 1, max: 60 })), { maxLength: 30 })
  .map((runs) => Buffer.concat(runs.map(([run, times]) => Buffer.alloc(run.length * times, run))));

test("the worked example of one code that stands for itself", () => {
  // "a", then code 258 before it is known: "aa".
  assert.deepEqual(inflated(deflateLzw(Buffer.from("aaa"))), Buffer.from("aaa"));
});

test("texts come out as they went in", () => {
  fc.assert(fc.property(anyRepetitive, (bytes) => assert.deepEqual(inflated(deflateLzw(bytes)), bytes)));
});

test("widths grow to twelve bits, and the table begins anew when it is full", () => {
  let state = 1;
  const bytes = Buffer.from(
    Array.from({ length: 60_000 }, () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return (state >>> 16) % 7;
    }),
  );
  assert.deepEqual(inflated(deflateLzw(bytes)), bytes);
  // A writer may also go on with a full table.
  assert.deepEqual(inflated(deflateLzw(bytes, { clearsWhenFull: false })), bytes);
});

test("output above the limit is oversized, at the limit it is not", () => {
  const zeros = Buffer.alloc(100_000);
  const text = deflateLzw(zeros);
  assert.ok(text.length < 1_000);
  assert.deepEqual(inflated(text, 100_000), zeros);
  assert.equal(inflated(text, 99_999), "oversized");
});

test("a text that is cut off, or begins with a code that is not known, is malformed", () => {
  const text = deflateLzw(Buffer.from("abcabcabcabc"));
  for (let length = 0; length < text.length - 1; length++) {
    assert.equal(inflated(text.subarray(0, length)), "malformed", `${length} bytes`);
  }
  // 258 as the first code: nothing is known yet.
  assert.equal(inflated(Uint8Array.of(0x02, 0x03, 0xff)), "malformed");
});

test("arbitrary bytes end, within the limit", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
      const outcome = inflateLzw(bytes, 10_000);
      assert.ok("fault" in outcome || outcome.bytes.length <= 10_000);
    }),
  );
});
