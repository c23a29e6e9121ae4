import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { readNameKey } from "../image/name-key.ts";
import { createSpelled, offsetOf, POINTER_MAX, type Spelled, spelledAt, spellTarget } from "./spelled.ts";

const SEED = 7;
const QUESTION_AT = 12;

/** A name that the message spells whole at `at`. */
function spelled(text: string, at: number): Spelled {
  const name = createSpelled();
  const wire = nameOf(text);
  readNameKey(name.key, wire, 0, wire.length, SEED);
  spelledAt(name, at);
  return name;
}

/** A name whose `labels` the message spells at `at`, and behind them a pointer to the suffix of `base` at `apexLabel`. */
function spelledBehind(labels: string, at: number, base: Spelled, apexLabel: number): Spelled {
  const name = createSpelled();
  const rdata = Uint8Array.of(...nameOf(`${labels}.`).slice(0, -1), 0xc0, 12);
  spellTarget(name, rdata, 0, base, apexLabel, at, SEED);
  return name;
}

function text({ key }: Spelled): string {
  const labels = Array.from({ length: key.labels }, (_, label) =>
    Buffer.from(key.lower.subarray(key.offsets[label]! + 1, key.offsets[label + 1])).toString("latin1"),
  );
  return `${labels.join(".")}.`;
}

function offsets(name: Spelled): readonly number[] {
  return Array.from({ length: name.key.labels }, (_, label) => offsetOf(name, label));
}

test("every suffix of a name that is spelled whole can be pointed to", () => {
  assert.deepEqual(offsets(spelled("www.example.test.", QUESTION_AT)), [12, 16, 24]);
});

test("behind a pointer the suffixes lie where it leads", () => {
  const name = spelledBehind("a.bb", 100, spelled("www.example.test.", QUESTION_AT), 1);
  assert.equal(text(name), "a.bb.example.test.");
  assert.deepEqual(offsets(name), [100, 102, 16, 24]);
});

test("behind two pointers only the place of the second can be pointed to, and nothing beyond it", () => {
  const first = spelledBehind("y.b", 100, spelled("q.a.t.", QUESTION_AT), 1);
  assert.deepEqual([text(first), offsets(first)], ["y.b.a.t.", [100, 102, 14, 16]]);
  const second = spelledBehind("z", 200, first, 1);
  assert.equal(text(second), "z.b.a.t.");
  // At 104 stands the pointer to `a.t.`; `t.` lies elsewhere.
  assert.deepEqual(offsets(second), [200, 102, 104, -1]);
  const third = spelledBehind("w", 300, second, 1);
  assert.deepEqual([text(third), offsets(third)], ["w.b.a.t.", [300, 102, 104, -1]]);
});

test("a name whose rest cannot be pointed to cannot be pointed to at all", () => {
  const first = spelledBehind("y.b", 100, spelled("q.a.t.", QUESTION_AT), 1);
  const second = spelledBehind("z", 200, first, 1);
  const lost = spelledBehind("v", 300, second, 3);
  assert.equal(text(lost), "v.t.");
  assert.deepEqual(offsets(lost), [-1, -1]);
});

test("a name that was written in another form cannot be pointed to", () => {
  const base = spelled("www.example.test.", QUESTION_AT);
  assert.deepEqual(offsets(spelledBehind("a", -1, base, 1)), [-1, -1, -1]);
  assert.deepEqual(offsets(spelled("www.example.test.", -1)), [-1, -1, -1]);
});

test("nothing beyond 14 bits can be pointed to (RFC 1035 section 4.1.4)", () => {
  assert.deepEqual(offsets(spelled("aaa.b.t.", POINTER_MAX - 4)), [POINTER_MAX - 4, POINTER_MAX, -1]);
});
