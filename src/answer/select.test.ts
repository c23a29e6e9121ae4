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

const MAPPINGS = { "10.1.0.0/16": "west", "10.2.0.0/16": "east", "10.2.9.0/24": "west", "fd00:3::/32": "north" };
const REGIONAL: readonly Value[] = [
  { value: ONE, probe: ONE, region: "west" },
  { value: TWO, probe: TWO, region: "west" },
  { value: THREE, probe: THREE, region: "east" },
  { value: FOUR, probe: FOUR },
];

function openRegional(
  method: "REGION" | "GEO_FAILOVER",
  preferred: readonly string[] = [],
  own?: string,
): SelectionLab {
  const lab = openWww();
  lab.regions(MAPPINGS, own);
  lab.select(WWW, { method, preferred }, REGIONAL);
  return lab;
}

for (const method of ["REGION", "GEO_FAILOVER"] as const) {
  test(`${method}: the client's region by longest prefix, rotated within it`, () => {
    const lab = openRegional(method);
    assert.deepEqual(lab.values(WWW, "10.1.2.3"), [ONE, TWO]);
    assert.deepEqual(lab.values(WWW, "10.2.9.3"), [TWO, ONE]);
    assert.deepEqual(lab.values(WWW, "10.2.8.3"), [THREE]);
    assert.deepEqual(lab.values(WWW, "10.2.10.3"), [THREE]);
  });

  test(`${method}: where the client's region has no healthy value, the preferred ones in turn, then all others`, () => {
    const lab = openRegional(method, ["nowhere", "east"]);
    down(lab, ONE, TWO);
    assert.deepEqual(lab.values(WWW, "10.1.2.3"), [THREE]);
    down(lab, THREE);
    assert.deepEqual(lab.values(WWW, "10.1.2.3"), [FOUR]);
    lab.health(TWO, "HEALTHY");
    assert.deepEqual(lab.values(WWW, "10.1.2.3"), [TWO]);
  });

  test(`${method}: all unhealthy, and the region still selects among all`, () => {
    const lab = openRegional(method, ["east"]);
    down(lab, ONE, TWO, THREE, FOUR);
    assert.deepEqual(lab.values(WWW, "10.1.2.3").toSorted(), [ONE, TWO]);
    assert.deepEqual(lab.values(WWW, "10.2.2.3"), [THREE]);
    assert.deepEqual(lab.values(WWW, "fd00:3::1"), [THREE], "north has none, east is preferred");
  });

  test(`${method}: a client that no mapping covers is in the node's own region, if it has one`, () => {
    assert.deepEqual(openRegional(method, [], "east").values(WWW, "192.0.2.1"), [THREE]);
    assert.deepEqual(openRegional(method, [], "nowhere").values(WWW, "192.0.2.1").length, 4);
    assert.deepEqual(openRegional(method).values(WWW, "192.0.2.1").length, 4);
    const unmapped = openRegional(method, [], "west");
    unmapped.regions({}, "west");
    assert.deepEqual(unmapped.values(WWW, "10.2.0.1"), [ONE, TWO]);
  });
}

/** How often each value is answered, alone, in so many answers. */
function shares(lab: SelectionLab, answers: number, client?: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (let answer = 0; answer < answers; answer++) {
    const values = lab.values(WWW, client);
    assert.equal(values.length, 1);
    counts.set(values[0]!, (counts.get(values[0]!) ?? 0) + 1);
  }
  return counts;
}

const CHANCE = () => ({ answerer: { chance: Int32Array.of(1, 2, 3, 4) } });

test("a weight of 0 is never answered while another has more; where all are 0 each is as likely", () => {
  const lab = openWww(CHANCE());
  const weights = [0, 5, 5, 0];
  lab.select(
    WWW,
    { method: "WEIGHTED" },
    FOUR_VALUES.map((value, index) => ({ ...value, weight: weights[index]! })),
  );
  assert.deepEqual([...shares(lab, 200).keys()].toSorted(), [TWO, THREE]);
  down(lab, TWO, THREE);
  const equal = shares(lab, 400);
  assert.deepEqual([...equal.keys()].toSorted(), [ONE, FOUR]);
  for (const count of equal.values()) assert.ok(Math.abs(count - 200) < 60, `${count} of 400`);
});

test("latency: the nearest, and no change for less than 10 %", () => {
  const lab = openWww();
  lab.select(WWW, { method: "LATENCY" }, FOUR_VALUES);
  lab.health(ONE, "HEALTHY", 1_000);
  lab.health(TWO, "HEALTHY", 2_000);
  assert.deepEqual(lab.values(WWW), [ONE], "what was not measured stands behind");
  lab.health(TWO, "HEALTHY", 900);
  assert.deepEqual(lab.values(WWW), [ONE], "exactly 10 % lower");
  lab.health(TWO, "HEALTHY", 899);
  assert.deepEqual(lab.values(WWW), [TWO]);
  lab.health(ONE, "HEALTHY", 850);
  assert.deepEqual(lab.values(WWW), [TWO]);
  lab.health(TWO, "UNHEALTHY", 899);
  assert.deepEqual(lab.values(WWW), [ONE]);
  lab.health(TWO, "HEALTHY", 899);
  assert.deepEqual(lab.values(WWW), [ONE]);
});

test("latency: what stands first has no advantage where nothing was answered yet, or what was is withheld", () => {
  const lab = openWww();
  lab.select(WWW, { method: "LATENCY" }, FOUR_VALUES);
  lab.health(ONE, "HEALTHY", 1_000);
  lab.health(TWO, "HEALTHY", 999);
  lab.health(THREE, "HEALTHY", 998);
  assert.deepEqual(lab.values(WWW), [THREE]);
  lab.health(THREE, "UNHEALTHY", 998);
  assert.deepEqual(lab.values(WWW), [TWO]);
});

test("latency without a measurement: all, in turn", () => {
  const lab = openWww(CHANCE());
  lab.select(WWW, { method: "LATENCY" }, FOUR_VALUES);
  const first = new Set<string>();
  for (let answer = 0; answer < 100; answer++) {
    const values = lab.values(WWW);
    assert.deepEqual(values.toSorted(), [ONE, TWO, THREE, FOUR]);
    first.add(values[0]!);
  }
  assert.equal(first.size, 4);
});

for (const method of ["ALL", "ROUND_ROBIN", "REGION", "GEO_FAILOVER"] as const) {
  test(`where an answer has one value, ${method} gives each in turn`, () => {
    const lab = openWww();
    lab.select(WWW, { method, single: true }, FOUR_VALUES);
    const answers = Array.from({ length: 5 }, () => lab.values(WWW));
    assert.deepEqual(answers, [[ONE], [TWO], [THREE], [FOUR], [ONE]]);
  });
}

test("each RRset turns by itself, and a new one begins at its first", () => {
  const lab = openWww();
  lab.select(WWW, { method: "ALL" }, [ONE, TWO]);
  lab.select("web.corp.test. A", { method: "ALL" }, [ONE, TWO]);
  assert.deepEqual(
    [lab.values(WWW), lab.values(WWW)],
    [
      [ONE, TWO],
      [TWO, ONE],
    ],
  );
  assert.deepEqual(lab.values("web.corp.test. A"), [ONE, TWO]);
  lab.values(WWW);
  lab.select(WWW, { method: "ALL" }, [ONE, TWO]);
  assert.deepEqual(lab.values(WWW), [ONE, TWO]);
});

test("a turn beyond the largest number goes on", () => {
  const lab = openWww();
  lab.select(WWW, { method: "ALL" }, [ONE, TWO, THREE]);
  const words = lab.writer.view.words;
  lab.values(WWW);
  const at = words.findLastIndex((word, index) => word === 1 && words[index - 1] === 300);
  words[at] = 2 ** 31 - 1;
  for (let answer = 0; answer < 4; answer++) assert.equal(lab.values(WWW).length, 3);
  words[at] = -1;
  for (let answer = 0; answer < 4; answer++) assert.equal(lab.values(WWW).length, 3);
});
