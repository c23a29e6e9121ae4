import assert from "node:assert/strict";
import test from "node:test";
import { aggregateOf, isFailedOver, servingOf, type ValueState } from "./aggregate.ts";
import type { ProbeState } from "./probe.ts";

const STATES: { readonly [letter: string]: ProbeState } = { h: "healthy", u: "unhealthy", "?": "unknown" };

/** "eu:hu us:?" is two values of the region eu, healthy and unhealthy, and one of us that is unknown. */
function valuesOf(text: string): readonly ValueState[] {
  return text.split(" ").flatMap((part) => {
    const [region = "", letters = ""] = part.split(":");
    return [...letters].map((letter) => {
      const state = STATES[letter];
      assert.ok(state !== undefined, text);
      return { region: region === "" ? undefined : region, state };
    });
  });
}

test("a record is healthy, degraded or unhealthy by how many of its values are unhealthy", () => {
  for (const [text, status, healthy, total] of [
    [":h", "healthy", 1, 1],
    [":?", "healthy", 1, 1],
    [":u", "unhealthy", 0, 1],
    [":hu?", "degraded", 2, 3],
    [":uu?", "degraded", 1, 3],
    [":uuu", "unhealthy", 0, 3],
  ] as const) {
    assert.deepEqual(aggregateOf(valuesOf(text)), { status, healthy, total }, text);
  }
});

test("where a record is served from, for a node in eu", () => {
  for (const [text, serving] of [
    ["eu:h us:h", "home"],
    ["eu:u? us:h", "home"],
    ["eu:uu us:h", "away"],
    ["eu:uu us:u :?", "away"],
    ["eu:uu us:u", "nowhere"],
    ["us:h", "none"],
    [":h", "none"],
  ] as const) {
    for (const method of ["region", "geo-failover"] as const) {
      assert.equal(servingOf(valuesOf(text), method, "eu"), serving, text);
    }
    assert.equal(servingOf(valuesOf(text), "failover", "eu"), "none");
    assert.equal(servingOf(valuesOf(text), undefined, "eu"), "none");
    assert.equal(servingOf(valuesOf(text), "region", undefined), "none");
  }
});

test("a failover lasts while nothing is healthy, and begins only with somewhere to go", () => {
  assert.deepEqual(
    (["home", "away", "nowhere", "none"] as const).map((serving) => [
      isFailedOver(false, serving),
      isFailedOver(true, serving),
    ]),
    [
      [false, false],
      [true, true],
      [false, true],
      [false, false],
    ],
  );
});
