import assert from "node:assert/strict";
import { test } from "node:test";
import { sipHash24 } from "./cookie.ts";

/** The reference implementation's test vectors: key 00 01 .. 0f, message 00 01 .. of `index` bytes. */
const VECTORS = [
  "726fdb47dd0e0e31",
  "74f839c593dc67fd",
  "0d6c8009d9a94f5a",
  "85676696d7fb7e2d",
  "cf2794e0277187b7",
  "18765564cd99a68d",
  "cbc9466e58fee3ce",
  "ab0200f58b01d137",
  "93f5f5799a932462",
  "9e0082df0ba9e4b0",
  "7a5dbbc594ddb9f3",
  "f4b32f46226bada7",
  "751e8fbc860ee5fb",
  "14ea5627c0843d90",
  "f723ca908e7af2ee",
  "a129ca6149be45e5",
] as const;

const KEY = new Int32Array(Uint8Array.from({ length: 16 }, (_, index) => index).buffer);

test("SipHash-2-4 gives the reference implementation's values", () => {
  for (const [length, expected] of VECTORS.entries()) {
    const message = new Uint8Array(40);
    for (let index = 0; index < length; index++) message[index] = index;
    const out = new Int32Array(2);
    sipHash24(KEY, 0, new Int32Array(message.buffer), length, out);
    const hash = (BigInt(out[1]! >>> 0) << 32n) | BigInt(out[0]! >>> 0);
    assert.equal(hash.toString(16).padStart(16, "0"), expected, `${length} bytes`);
  }
});

test("the key may stand anywhere in its array", () => {
  const secrets = Int32Array.of(9, 9, 9, ...KEY);
  const out = new Int32Array(2);
  sipHash24(secrets, 3, new Int32Array(4), 0, out);
  assert.equal((out[1]! >>> 0).toString(16), VECTORS[0].slice(0, 8));
});
