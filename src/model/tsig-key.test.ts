import assert from "node:assert/strict";
import { test } from "node:test";
import { nameToText } from "../dns/name.ts";
import type { TsigKeyBody } from "./objects.ts";
import { signingKey, tsigKeyFromCreate } from "./tsig-key.ts";

const SECRET = Buffer.from("0123456789abcdef0123456789abcdef");

function stored(algorithm: string): TsigKeyBody {
  return { id: "tsk_1", name: "key.example.", algorithm, secret: SECRET.toString("base64"), management_view: false };
}

test("a stored key signs with the bytes of its secret", () => {
  for (const algorithm of ["hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1"]) {
    const key = signingKey(stored(algorithm), false);
    assert.ok(key !== undefined, algorithm);
    assert.equal(nameToText(key.name), "key.example.");
    assert.deepEqual([key.algorithm, Buffer.from(key.secret).toString()], [algorithm, SECRET.toString()]);
  }
});

test("a key of HMAC-MD5 signs only where that is enabled, and one of another node's algorithm never", () => {
  assert.equal(signingKey(stored("hmac-md5"), false), undefined);
  assert.equal(signingKey(stored("hmac-md5"), true)?.algorithm, "hmac-md5");
  assert.equal(signingKey(stored("hmac-sha3"), true), undefined);
});

test("a secret that is made is as long as the algorithm's hash", () => {
  for (const [algorithm, bytes] of [
    ["hmac-sha256", 32],
    ["hmac-sha384", 48],
    ["hmac-sha512", 64],
    ["hmac-sha224", 28],
    ["hmac-sha1", 20],
    ["hmac-md5", 16],
  ] as const) {
    const { key } = tsigKeyFromCreate({ name: "k.", algorithm }, "tsk_1", true);
    assert.equal(Buffer.from(key.secret, "base64").length, bytes, algorithm);
  }
});
