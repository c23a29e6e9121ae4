import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { createNameKey, hashAsterisk, MAX_LABELS, type NameKey, readNameKey, readTargetKey } from "./name-key.ts";

const SEED = 0x1234_5678;

/** Wire form of labels, with the root's zero byte. */
function wireOf(labels: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from([...labels.flatMap((label) => [label.length, ...label]), 0]);
}

function label(length: number, byte = 97): Uint8Array {
  return new Uint8Array(length).fill(byte);
}

function read(wire: Uint8Array, seed = SEED): { end: number; key: NameKey } {
  const key = createNameKey();
  return { end: readNameKey(key, wire, 0, wire.length, seed), key };
}

const labels = fc.array(fc.uint8Array({ minLength: 1, maxLength: 63 }), { maxLength: 3 });

test("a key holds the name in lower case, where its labels start, and the hash of each suffix", () => {
  fc.assert(
    fc.property(labels, (parts) => {
      const { key } = read(wireOf(parts));
      assert.equal(key.labels, parts.length);
      assert.equal(key.length, wireOf(parts).length - 1);
      for (let index = 0; index <= parts.length; index++) {
        const suffix = read(wireOf(parts.slice(index)));
        assert.equal(key.offsets[index], wireOf(parts.slice(0, index)).length - 1);
        assert.equal(key.hashes[index], suffix.key.hashes[0]);
        assert.deepEqual(key.lower.slice(key.offsets[index], key.length), suffix.key.lower.slice(0, suffix.key.length));
      }
    }),
  );
});

test("letter case of ASCII is the same name, and other bytes are not folded", () => {
  const upper = read(wireOf([Uint8Array.of(65, 90, 64, 91, 193, 225)])).key;
  const lower = read(wireOf([Uint8Array.of(97, 122, 64, 91, 193, 225)])).key;
  assert.deepEqual(upper, lower);
  assert.notEqual(read(wireOf([Uint8Array.of(193)])).key.hashes[0], read(wireOf([Uint8Array.of(225)])).key.hashes[0]);
});

test("255 bytes and 127 labels are the most", () => {
  const longest = wireOf([label(63), label(63), label(63), label(61)]);
  assert.equal(longest.length, 255);
  assert.equal(read(longest).end, 255);
  assert.equal(read(wireOf([label(63), label(63), label(63), label(62)])).end, -1);
  const most = wireOf(Array.from({ length: 127 }, () => label(1)));
  assert.equal(read(most).end, 255);
  assert.equal(read(most).key.labels, MAX_LABELS);
  assert.equal(read(wireOf(Array.from({ length: 128 }, () => label(1)))).end, -1);
});

test("the root is a name without labels", () => {
  const { end, key } = read(Uint8Array.of(0));
  assert.deepEqual([end, key.labels, key.length, key.hashes[0]], [1, 0, 0, SEED]);
});

test("a name that is cut off, points elsewhere or has a reserved label type is none", () => {
  const whole = wireOf([label(3), label(5)]);
  for (let length = 0; length < whole.length; length++) assert.equal(read(whole.subarray(0, length)).end, -1);
  for (const size of [64, 65, 128, 0xbf, 0xc0, 0xff]) {
    assert.equal(read(Uint8Array.of(size, 12, ...label(200), 0)).end, -1);
  }
});

test("arbitrary bytes give a name or -1, and never more than was there", () => {
  const key = createNameKey();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(20), (bytes, at) => {
      const end = readNameKey(key, bytes, at, bytes.length, SEED);
      if (end === -1) return;
      assert.ok(end > at && end <= bytes.length);
      assert.equal(end - at, key.length + 1);
    }),
  );
});

test("another seed gives other hashes, which nobody can prepare names for", () => {
  const wire = wireOf([label(5), label(3)]);
  assert.notEqual(read(wire, 1).key.hashes[0], read(wire, 2).key.hashes[0]);
});

test("the hash of the label * is that of a name which begins with it", () => {
  const { key } = read(wireOf([Uint8Array.of(42), label(4)]));
  assert.equal(hashAsterisk(key.hashes[1]!, SEED), key.hashes[0]);
});

test("a target with a pointer ends in the apex of its base, one with the root stands alone", () => {
  fc.assert(
    fc.property(labels, labels, labels, fc.boolean(), (below, apex, spelled, points) => {
      const base = read(wireOf([...below, ...apex])).key;
      const wire = wireOf(spelled);
      const target = points ? Uint8Array.of(...wire.subarray(0, -1), 0xc0, 12) : wire;
      const whole = read(wireOf(points ? [...spelled, ...apex] : spelled));
      const key = createNameKey();
      fc.pre(base.labels === below.length + apex.length);
      const count = readTargetKey(key, target, 0, base, below.length, SEED);
      if (whole.end === -1) return assert.equal(count, -1);
      assert.equal(count, spelled.length);
      assert.equal(key.length, whole.key.length);
      assert.equal(key.labels, whole.key.labels);
      assert.deepEqual(key.lower.slice(0, key.length), whole.key.lower.slice(0, key.length));
      assert.deepEqual(key.offsets.slice(0, key.labels + 1), whole.key.offsets.slice(0, key.labels + 1));
      assert.deepEqual(key.hashes.slice(0, key.labels + 1), whole.key.hashes.slice(0, key.labels + 1));
    }),
  );
});
