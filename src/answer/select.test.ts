import assert from "node:assert/strict";
import test from "node:test";
import { openSelectionLab, type SelectionLab, type Value } from "../../tests/support/selection-lab.ts";
import { zone } from "../../tests/support/zone-lab.ts";

const WWW = "www.corp.test. A";
const [ONE, TWO, THREE, FOUR] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"] as const;
const FOUR_VALUES: readonly Value[] = [ONE, TWO, THREE, FOUR].map((value) => ({ value, probe: value }));

function openWww(options = {}): SelectionLab {
  return openSelectionLab([zone("corp.test.")], options);
}

function down(lab: SelectionLab, ...probes: readonly string[]): void {
  for (const probe of probes) lab.health(probe, "UNHEALTHY");
}

test("without a policy all healthy values are answered, each answer beginning one further on", () => {
  const lab = openWww();
  lab.select(WWW, { method: "ALL" }, FOUR_VALUES);
  assert.deepEqual(lab.values(WWW), [ONE, TWO, THREE, FOUR]);
  assert.deepEqual(lab.values(WWW), [TWO, THREE, FOUR, ONE]);
  down(lab, TWO);
  assert.deepEqual(lab.values(WWW), [FOUR, ONE, THREE]);
  lab.health(TWO, "HEALTHY");
  assert.deepEqual(lab.values(WWW), [FOUR, ONE, TWO, THREE]);
});

test("unknown counts as healthy, and so does what is not probed", () => {
  const lab = openWww();
  lab.select(WWW, { method: "FAILOVER" }, [ONE, { value: TWO, probe: "b" }]);
  assert.deepEqual(lab.values(WWW), [ONE]);
  lab.select(WWW, { method: "FAILOVER" }, [{ value: TWO, probe: "b" }, ONE]);
  lab.health("b", "UNKNOWN");
  assert.deepEqual(lab.values(WWW), [TWO]);
});

test("all unhealthy: all are candidates again, until one recovers", () => {
  const lab = openWww();
  lab.select(WWW, { method: "ROUND_ROBIN" }, FOUR_VALUES);
  down(lab, ONE, TWO, THREE, FOUR);
  assert.deepEqual(lab.values(WWW).toSorted(), [ONE, TWO, THREE, FOUR]);
  lab.health(THREE, "HEALTHY");
  assert.deepEqual(lab.values(WWW), [THREE]);
});

test("failover answers the first healthy value in order, and goes back", () => {
  const lab = openWww();
  lab.select(WWW, { method: "FAILOVER" }, FOUR_VALUES);
  assert.deepEqual(lab.values(WWW), [ONE]);
  down(lab, ONE, TWO);
  assert.deepEqual(lab.values(WWW), [THREE]);
  lab.health(ONE, "HEALTHY");
  assert.deepEqual(lab.values(WWW), [ONE]);
  down(lab, ONE, THREE, FOUR);
  assert.deepEqual(lab.values(WWW), [ONE], "fail open begins again at the first");
});
