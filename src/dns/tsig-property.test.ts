import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FLAG, RRTYPE } from "./codes.ts";
import { decodeMessage, encodeMessage, makeQuery } from "./message.ts";
import { LOWER, nameFromText } from "./name.ts";
import { readTsig, refusalAnswer, signRequest, signResponse, type TsigKey, verifyResponse } from "./tsig.ts";
import { type TsigAlgorithm, tsigAlgorithmName } from "./tsig-algorithms.ts";

const NOW = 1_800_000_000;
const ALGORITHMS: readonly TsigAlgorithm[] = [
  ...(["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const),
  ...(["hmac-sha224", "hmac-sha1", "hmac-md5"] as const),
];

function name(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

const labels = fc.array(fc.stringMatching(/^[a-z0-9-]{1,20}$/), { minLength: 1, maxLength: 6 });
const names = labels.map((parts) => name(`${parts.join(".")}.`));
const keys: fc.Arbitrary<TsigKey> = fc.record({
  name: names,
  algorithm: fc.constantFrom(...ALGORITHMS),
  secret: fc.uint8Array({ minLength: 16, maxLength: 200 }),
});
const messages = fc
  .record({ id: fc.nat(0xffff), name: names, type: fc.constantFrom(1, 6, 16, 252), hasEdns: fc.boolean() })
  .map(({ id, name: asked, type, hasEdns }) => {
    const edns = hasEdns ? { udpSize: 1232, version: 0, wantsDnssec: false, options: [] } : undefined;
    return encodeMessage(makeQuery(id, asked, type, FLAG.RD, edns)).bytes;
  });

/** Where a signed message has bits that no signature covers: its id, and the case of letters in the record's two names. */
function isUncovered(bytes: Uint8Array, message: Uint8Array, key: TsigKey, bit: number): boolean {
  const at = bit >> 3;
  if (at < 2) return true;
  const algorithmAt = message.length + key.name.length + 10;
  const isInName = at > message.length && at < message.length + key.name.length;
  const isInAlgorithm = at > algorithmAt && at < algorithmAt + tsigAlgorithmName(key.algorithm).length;
  const flipped = bytes[at]! ^ (1 << (bit & 7));
  return (isInName || isInAlgorithm) && LOWER[flipped] === LOWER[bytes[at]!];
}

test("whatever single bit of a signed request or answer changes, it is not verified", () => {
  fc.assert(
    fc.property(keys, messages, (key, message) => {
      const sent = signRequest(key, message, NOW);
      const answer = signResponse(key, sent.mac, () => NOW).sign(message);
      assert.equal(readTsig(sent.bytes, () => key, NOW).kind, "verified");
      assert.equal(verifyResponse(answer, key, sent.mac, NOW).kind, "verified");
      for (let bit = 0; bit < sent.bytes.length * 8; bit++) {
        const isSame = isUncovered(sent.bytes, message, key, bit);
        const request = flip(sent.bytes, bit);
        assert.equal(readTsig(request, () => key, NOW).kind === "verified", isSame, `request, bit ${bit}`);
        const response = flip(answer, bit);
        assert.equal(verifyResponse(response, key, sent.mac, NOW).kind === "verified", isSame, `answer, bit ${bit}`);
      }
    }),
    { numRuns: 12 },
  );
});

function flip(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = bytes.slice();
  copy[bit >> 3] = bytes[bit >> 3]! ^ (1 << (bit & 7));
  return copy;
}

test("a message comes out of its signature as it went in", () => {
  fc.assert(
    fc.property(keys, messages, (key, message) => {
      const request = readTsig(signRequest(key, message, NOW).bytes, () => key, NOW);
      assert.deepEqual(request.kind === "verified" ? request.bytes : request.kind, message);
    }),
  );
});

/** Bytes of any kind, and signed messages that were cut, lengthened or written over in places. */
const spoiled = fc
  .record({
    key: keys,
    message: messages,
    writes: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 8 }),
    cut: fc.nat(40),
    more: fc.uint8Array({ maxLength: 20 }),
  })
  .map(({ key, message, writes, cut, more }) => {
    const { bytes } = signRequest(key, message, NOW);
    for (const [at, value] of writes) bytes[at % bytes.length] = value;
    return Buffer.concat([bytes.subarray(0, bytes.length - cut), more]);
  });

test("any bytes are read and verified without a throw, and a refusal is a message", () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 600 }), spoiled), keys, (bytes, key) => {
      const before = Buffer.from(bytes);
      const request = readTsig(bytes, (asked, algorithm) => ({ ...key, name: asked, algorithm }), NOW);
      assert.notEqual(verifyResponse(bytes, key, key.secret, NOW).kind, "verified");
      assert.deepEqual(Buffer.from(bytes), before);
      if (request.kind !== "refused") return;
      const answer = refusalAnswer(request, NOW);
      const decoded = decodeMessage(answer);
      assert.ok(decoded.kind === "message" && decoded.trailingBytes === 0);
      assert.equal(decoded.message.rcode, request.rcode);
      assert.ok(decoded.message.additionals.every(({ type }) => type === RRTYPE.TSIG));
    }),
    { numRuns: 3_000 },
  );
});
