import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { createSealer, SEAL_BYTES } from "./seal.ts";

const NOTHING = new Uint8Array();
const NONCE = Buffer.alloc(12, 5);
const KEY = Buffer.alloc(32, 1);

/** Sealed by hand: version, nonce, text, tag. */
function sealedBy(key: Uint8Array, version: number, plain: Uint8Array, additional = NOTHING): Uint8Array {
  const cipher = createCipheriv("aes-256-gcm", key, NONCE);
  cipher.setAAD(additional);
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Uint8Array.of(version), NONCE, text, cipher.getAuthTag()]);
}

function opened(sealed: Uint8Array, additional = NOTHING): string | undefined {
  const plain = createSealer(KEY).open(sealed, additional);
  return plain === undefined ? undefined : Buffer.from(plain).toString("latin1");
}

for (const bytes of [16, 24, 32]) {
  test(`what a key of ${bytes} bytes seals, it opens, with the same additional data only`, () => {
    const sealer = createSealer(new Uint8Array(bytes).fill(bytes));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ maxLength: 20 }), (plain, additional) => {
        const sealed = sealer.seal(plain, additional);
        assert.equal(sealed.length, plain.length + SEAL_BYTES);
        assert.deepEqual(sealer.open(sealed, additional), Buffer.from(plain));
        assert.equal(sealer.open(sealed, Uint8Array.of(...additional, 0)), undefined);
      }),
    );
  });
}

test("nonces differ", () => {
  const sealer = createSealer(KEY);
  const nonces = Array.from({ length: 100 }, () =>
    Buffer.from(sealer.seal(NOTHING, NOTHING).subarray(1, 13)).toString("hex"),
  );
  assert.equal(new Set(nonces).size, 100);
});

const padding = (count: number) => String.fromCharCode(count).repeat(count);

const PADDED: readonly (readonly [plain: string, opened: string | undefined])[] = [
  [`hello${padding(11)}`, "hello"],
  [`a whole block...${padding(16)}`, "a whole block..."],
  [padding(16), ""],
  ["", undefined],
  [`hello${padding(10)}`, undefined],
  [`${"x".repeat(15)}\0`, undefined],
  [`${"x".repeat(15)}\x11`, undefined],
  [`${"x".repeat(13)}\x02\x03\x03`, undefined],
];

for (const [plain, expected] of PADDED) {
  test(`version 0: ${JSON.stringify(plain)}`, () => {
    assert.equal(opened(sealedBy(KEY, 0, Buffer.from(plain, "latin1"))), expected);
  });
}

test("version 1 has no padding, and there is no version 2", () => {
  assert.equal(opened(sealedBy(KEY, 1, Buffer.from(`hello${padding(11)}`, "latin1"))), `hello${padding(11)}`);
  assert.equal(opened(sealedBy(KEY, 2, Buffer.from("hello"))), undefined);
});

test("what is shorter than nonce and tag is nothing", () => {
  const sealed = sealedBy(KEY, 1, NOTHING);
  assert.equal(opened(sealed), "");
  for (let length = 0; length < sealed.length; length++) assert.equal(opened(sealed.subarray(0, length)), undefined);
});
