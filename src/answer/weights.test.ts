import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { openSelectionLab, type SelectionLab } from "../../tests/support/selection-lab.ts";
import { queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";

const WWW = "www.corp.test. A";
const ROOM = 512;
const ANSWERS = 1_000_000;
/** What the promise allows, as a part of all answers. */
const TOLERANCE = 0.005;

function open(weights: readonly number[], seed: number): SelectionLab {
  const lab = openSelectionLab([zone("corp.test.")], { answerer: { chance: Int32Array.of(seed, 2, 3, 4) } });
  const values = weights.map((weight, index) => ({ value: `10.0.0.${index}`, probe: `p${index}`, weight }));
  lab.select(WWW, { method: "WEIGHTED" }, values);
  return lab;
}

/** How often each value was answered: the last byte of its address tells it. */
function draw(lab: SelectionLab, answers: number): Float64Array {
  const { answerer } = lab;
  const query = queryBytes(WWW, { edns: false });
  const bytes = new Uint8Array(ROOM);
  const client = Uint8Array.of(127, 0, 0, 1);
  const counts = new Float64Array(256);
  answerer.enter();
  for (let answer = 0; answer < answers; answer++) {
    bytes.set(query);
    const length = answerer.answer(bytes, 0, query.length, ROOM, client, 0, 4, TRANSPORT.UDP);
    assert.equal(length, query.length + 16, "one value");
    counts[bytes[length - 1]!]!++;
  }
  answerer.leave();
  return counts;
}

function assertShares(counts: Float64Array, weights: readonly number[], tolerance: number): void {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const answers = counts.reduce((all, number) => all + number, 0);
  for (const [index, weight] of weights.entries()) {
    const share = counts[index]! / answers;
    assert.ok(Math.abs(share - weight / sum) < tolerance, `${index}: ${share} of ${weight}/${sum}`);
    if (weight === 0) assert.equal(counts[index], 0);
  }
}

test("a million answers keep to the weights", () => {
  const weights = [50, 25, 15, 9, 1, 0];
  assertShares(draw(open(weights, 1), ANSWERS), weights, TOLERANCE);
});

test("also with values unhealthy, whose share goes to the others in proportion", () => {
  const lab = open([50, 25, 15, 9, 1, 0], 2);
  lab.health("p0", "UNHEALTHY");
  lab.health("p3", "UNHEALTHY");
  assertShares(draw(lab, ANSWERS), [0, 25, 15, 0, 1, 0], TOLERANCE);
});

test("fail open keeps to the weights too", () => {
  const lab = open([70, 30], 3);
  lab.health("p0", "UNHEALTHY");
  lab.health("p1", "UNHEALTHY");
  assertShares(draw(lab, ANSWERS), [70, 30], TOLERANCE);
});

test("whatever the weights and whoever is unhealthy", () => {
  const value = fc.record({ weight: fc.integer({ min: 0, max: 2 ** 20 }), isDown: fc.boolean() });
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 40 }), fc.integer(), (values, seed) => {
      const weights = values.map(({ weight }) => weight);
      const lab = open(weights, seed | 1);
      for (const [index, { isDown }] of values.entries()) if (isDown) lab.health(`p${index}`, "UNHEALTHY");
      const left = values.every(({ isDown }) => isDown) ? weights : values.map((of) => (of.isDown ? -1 : of.weight));
      const isEqual = left.every((weight) => weight <= 0);
      const expected = left.map((weight) => (isEqual ? Number(weight === 0) : Math.max(weight, 0)));
      assertShares(draw(lab, 20_000), expected, 0.025);
    }),
    { numRuns: 60 },
  );
});
