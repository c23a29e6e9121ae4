import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bestSkewMs,
  clockAheadMs,
  commonVersion,
  decodeHello,
  encodeHello,
  type Hello,
  type ProofKeys,
  skewSample,
} from "./identity.ts";

const keys: ProofKeys = { key: new Uint8Array(32).fill(1), exported: new Uint8Array(32).fill(2) };
const hello: Hello = {
  nodeId: "n1",
  instanceId: "i1",
  versions: { least: 1, greatest: 3 },
  abilities: ["a", "b"],
  collectedUpToMs: 5,
  lastAgreementMs: 6,
  wallMs: 7,
};

test("a hello is read by the other end of the connection", () => {
  assert.deepEqual(decodeHello(encodeHello(hello, keys, "dialer"), keys, "dialer"), { kind: "hello", hello });
});

test("a hello of another connection, side or key, or one that was altered, proves nothing", () => {
  const bytes = encodeHello(hello, keys, "dialer");
  const altered = Buffer.from(bytes);
  const at = altered.indexOf('"n1"') + 2;
  altered[at] = "2".charCodeAt(0);
  const other = new Uint8Array(32).fill(3);
  assert.equal(decodeHello(bytes, { ...keys, exported: other }, "dialer").kind, "proof", "replayed elsewhere");
  assert.equal(decodeHello(bytes, keys, "acceptor").kind, "proof", "sent back");
  assert.equal(decodeHello(bytes, { ...keys, key: other }, "dialer").kind, "proof", "another key");
  assert.equal(decodeHello(altered, keys, "dialer").kind, "proof", "altered");
  assert.equal(decodeHello(bytes.subarray(0, 31), keys, "dialer").kind, "malformed");
});

test("members of later versions are passed over", () => {
  const later = { ...hello, colour: "blue", versions: { least: 1, greatest: 3, preferred: 2 } };
  assert.deepEqual(decodeHello(encodeHello(later, keys, "acceptor"), keys, "acceptor"), { kind: "hello", hello });
});

const MALFORMED: readonly (readonly [string, object])[] = [
  ["no node id", { nodeId: "" }],
  ["a long node id", { nodeId: "n".repeat(257) }],
  ["control characters", { nodeId: "n\n1" }],
  ["an instance id that is a number", { instanceId: 4 }],
  ["abilities that are none", { abilities: "a" }],
  ["too many abilities", { abilities: Array.from({ length: 65 }, () => "a") }],
  ["versions upside down", { versions: { least: 2, greatest: 1 } }],
  ["a version that is no integer", { versions: { least: 0.5, greatest: 1 } }],
  ["no versions", { versions: null }],
  ["a time before 1970", { lastAgreementMs: -1 }],
  ["a time that is none", { wallMs: "now" }],
];
for (const [name, change] of MALFORMED) {
  test(`a hello is malformed with ${name}`, () => {
    const bytes = encodeHello({ ...hello, ...change }, keys, "dialer");
    assert.equal(decodeHello(bytes, keys, "dialer").kind, "malformed");
  });
}

test("arbitrary bytes are no hello, and reading them throws nothing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.notEqual(decodeHello(bytes, keys, "dialer").kind, "hello");
    }),
  );
});

test("two nodes speak the greatest version that both know", () => {
  assert.equal(commonVersion({ least: 1, greatest: 2 }, { least: 1, greatest: 3 }), 2);
  assert.equal(commonVersion({ least: 2, greatest: 4 }, { least: 1, greatest: 2 }), 2);
  assert.equal(commonVersion({ least: 3, greatest: 4 }, { least: 1, greatest: 2 }), undefined);
  assert.equal(commonVersion({ least: 1, greatest: 2 }, { least: 3, greatest: 4 }), undefined);
});

test("a clock's distance is taken from the answer that came soonest", () => {
  assert.deepEqual(skewSample(100, 1_000, 1_200), { skewMs: 250, roundTripMs: 100 });
  const samples = [skewSample(400, 10_000, 10_000), skewSample(2, 10_000, 9_000), skewSample(80, 10_000, 9_100)];
  assert.equal(bestSkewMs(samples), -999);
  assert.equal(bestSkewMs([...samples, skewSample(40, 10_000, 310_000)]), 300_020);
});

test("a clock is off by how far it is from the middle of all; of two middles the earlier counts", () => {
  const cases = [
    [[], 0],
    [[3, -4], 0],
    // One that is ahead refuses, and the others do not.
    [[-300_000], 300_000],
    [[300_000], 0],
    [[-300_000, -300_010], 300_000],
    [[0, 300_000], 0],
    [[300_000, 300_010], -300_000],
    [[0, -300_000, -300_000], 300_000],
    [[0, 300_000, 300_000], 0],
  ] as const;
  for (const [skews, expected] of cases) assert.equal(clockAheadMs(skews), expected, JSON.stringify(skews));
});
