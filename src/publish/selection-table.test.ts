import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { METHOD, SELECTION_FLAG } from "../image/layout.ts";
import { regionNumber } from "../image/regions.ts";
import { LB_METHODS, type LbPolicy, type RecordType, type RecordValue } from "../model/objects.ts";
import {
  AFFINITY_SECONDS_DEFAULT,
  CANDIDATE_WEIGHT_MAX,
  type SelectionTable,
  selectionTable,
} from "./selection-table.ts";

type Given = {
  readonly type?: RecordType;
  readonly values: readonly (string | RecordValue)[];
  readonly policy?: LbPolicy;
  readonly slots?: readonly number[];
  readonly regions?: readonly number[];
};

function tableOf({ type = "A", values, policy, slots, regions = [] }: Given): SelectionTable | undefined {
  const given = values.map((value) => (typeof value === "string" ? { value } : value));
  return selectionTable({ record: { type, values: given }, policy, slots, regions });
}

function selected(given: Given): SelectionTable {
  return tableOf(given) ?? assert.fail("it is static");
}

const order = (given: Given) => selected(given).choices.map(({ index }) => index);
const weights = (given: Given) => selected(given).choices.map(({ weight }) => weight);
const [ONE, TWO, THREE] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];

test("a record is static where no answer chooses", () => {
  assert.equal(tableOf({ values: [ONE, TWO] }), undefined, "neither policy nor health check");
  for (const method of LB_METHODS) {
    assert.equal(tableOf({ values: [ONE], policy: { method } }), undefined, `one value, ${method}`);
  }
  assert.equal(tableOf({ type: "CNAME", values: ["a.", "b."] }), undefined, "the first of several targets");
});

test("one value that is probed is selected: its health is what people ask for", () => {
  assert.equal(selected({ values: [ONE], slots: [7] }).choices[0]?.health, 7);
});

test("without a policy the healthy values are answered, and a CNAME or an ALIAS with one of them", () => {
  const { method, flags, preferred } = selected({ values: [ONE, TWO], slots: [1, 2] });
  assert.deepEqual({ method, flags, preferred }, { method: METHOD.ALL, flags: 0, preferred: [] });
  for (const type of ["CNAME", "ALIAS"] as const) {
    assert.equal(selected({ type, values: ["a.", "b."], slots: [1, 2] }).flags, SELECTION_FLAG.SINGLE);
    assert.deepEqual(order({ type, values: ["a.", "b."], slots: [1, 2] }), [0, 1]);
  }
});

test("methods and affinity", () => {
  const methods = LB_METHODS.map((method) => selected({ values: [ONE, TWO], policy: { method } }).method);
  const { ROUND_ROBIN, FAILOVER, LATENCY, REGION, GEO_FAILOVER, WEIGHTED } = METHOD;
  assert.deepEqual(methods, [ROUND_ROBIN, FAILOVER, LATENCY, REGION, GEO_FAILOVER, WEIGHTED]);
  const affinity = (policy: Omit<LbPolicy, "method">) => {
    const { flags, affinitySeconds } = selected({ values: [ONE, TWO], policy: { method: "round-robin", ...policy } });
    return [flags, affinitySeconds];
  };
  assert.deepEqual(affinity({ client_affinity: true }), [SELECTION_FLAG.AFFINITY, AFFINITY_SECONDS_DEFAULT]);
  assert.deepEqual(affinity({ client_affinity: true, affinity_ttl_seconds: 7 }), [SELECTION_FLAG.AFFINITY, 7]);
  assert.equal(affinity({ client_affinity: false, affinity_ttl_seconds: 7 })[0], 0);
});

test("failover: listed values first, the others after them in their order", () => {
  const failover = (failover_order?: readonly string[], method: LbPolicy["method"] = "failover") =>
    order({
      type: "AAAA",
      values: ["2001:db8::1", "2001:db8::2", "2001:db8::3"],
      policy: { method, ...(failover_order === undefined ? {} : { failover_order }) },
    });
  assert.deepEqual(failover(), [0, 1, 2]);
  assert.deepEqual(failover(["2001:db8::3"]), [2, 0, 1]);
  assert.deepEqual(failover(["2001:DB8:0::3", "2001:db8::0:2"]), [2, 1, 0], "in another spelling");
  assert.deepEqual(failover(["2001:db8::9", "2001:db8::2"]), [1, 0, 2], "an orphan is passed over");
  assert.deepEqual(failover(["2001:db8::3"], "round-robin"), [0, 1, 2], "of other methods the order is the record's");
  const srv = (port: number) => ({ value: port === 3 ? "b." : "a.", port });
  const policy: LbPolicy = { method: "failover", failover_order: ["B.", "a."] };
  assert.deepEqual(order({ type: "SRV", values: [srv(1), srv(2), srv(3)], policy }), [2, 0, 1]);
});

test("slots and regions stay with their values", () => {
  const { choices } = selected({
    values: [ONE, TWO, THREE],
    policy: { method: "geo-failover", region_preference: ["eu", "us"] },
    slots: [11, 12, 13],
    regions: [regionNumber("us"), 0, regionNumber("eu")],
  });
  assert.deepEqual(
    choices.map(({ health, region }) => [health, region]),
    [
      [11, regionNumber("us")],
      [12, 0],
      [13, regionNumber("eu")],
    ],
  );
  const moved = selected({
    values: [ONE, TWO],
    policy: { method: "failover", failover_order: [TWO] },
    slots: [11, 12],
  });
  assert.deepEqual(
    moved.choices.map(({ health }) => health),
    [12, 11],
  );
});

test("regions are those of methods that ask for them", () => {
  const given = { values: [ONE, TWO], regions: [5, 6] };
  const preference = { region_preference: ["eu", "us"] };
  for (const method of ["region", "geo-failover"] as const) {
    const { choices, preferred } = selected({ ...given, policy: { method, ...preference } });
    assert.deepEqual(preferred, [regionNumber("eu"), regionNumber("us")]);
    assert.deepEqual(
      choices.map(({ region }) => region),
      [5, 6],
    );
  }
  const { choices, preferred } = selected({ ...given, policy: { method: "latency", ...preference } });
  assert.deepEqual(preferred, []);
  assert.deepEqual(
    choices.map(({ region }) => region),
    [0, 0],
  );
});

test("weights: listed as they are, what is left to 100 among the others", () => {
  const weighted = (values: readonly string[], value_weights?: Record<string, number>) =>
    weights({ values, policy: { method: "weighted", ...(value_weights === undefined ? {} : { value_weights }) } });
  assert.deepEqual(weighted([ONE, TWO], { [ONE]: 80, [TWO]: 20 }), [80, 20]);
  assert.deepEqual(weighted([ONE, TWO], { [ONE]: 80 }), [80, 20]);
  assert.deepEqual(weighted([ONE, TWO, THREE], { [ONE]: 90 }), [180, 10, 10]);
  assert.deepEqual(weighted([ONE, TWO, THREE], { [ONE]: 100 }), [200, 0, 0]);
  assert.deepEqual(weighted([ONE, TWO, THREE]), [100, 100, 100]);
  assert.deepEqual(weighted([ONE, TWO], { [ONE]: 0, [TWO]: 0 }), [0, 0]);
  assert.deepEqual(weighted([ONE, TWO], { [ONE]: 20, "10.9.9.9": 30 }), [20, 80], "an orphan takes nothing");
  assert.deepEqual(weights({ values: [ONE, TWO], policy: { method: "failover" } }), [0, 0]);
});

test("a key that several values share divides its percentage among them", () => {
  const srv = (value: string, port: number) => ({ value, port });
  const values = [srv("a.", 1), srv("a.", 2), srv("A.", 3), srv("b.", 1)];
  const policy: LbPolicy = { method: "weighted", value_weights: { "a.": 60, "B.": 40 } };
  assert.deepEqual(weights({ type: "SRV", values, policy }), [60, 60, 60, 120]);
});

test("a value that is there twice is one choice", () => {
  const policy: LbPolicy = { method: "weighted" };
  assert.deepEqual(order({ type: "PTR", values: ["a.", "A.", "b."], policy }), [0, 2]);
  assert.deepEqual(weights({ type: "PTR", values: ["a.", "A.", "b."], policy }), [100, 100]);
});

test("the hash of a value is the same wherever it stands, and another one for another value", () => {
  const hashes = (values: Given["values"], type: RecordType = "A") =>
    selected({ type, values, slots: values.map(() => 0) }).choices.map(({ hash }) => hash);
  const [one, two] = hashes([ONE, TWO]);
  assert.deepEqual(hashes([TWO, ONE]), [two, one]);
  // A node of another version must draw the same.
  assert.deepEqual([one, two], [-1363376722, 1225628325]);
  assert.deepEqual(hashes(["www.Example."], "CNAME"), hashes(["WWW.example."], "CNAME"));
  const ports = hashes(
    [
      { value: "a.", port: 1 },
      { value: "a.", port: 2 },
    ],
    "SRV",
  );
  assert.notEqual(ports[0], ports[1]);
  const many = hashes(Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`));
  assert.equal(new Set(many).size, 1000);
  for (let bit = 0; bit < 32; bit++) {
    const set = many.filter((hash) => ((hash >>> bit) & 1) === 1).length;
    assert(set > 400 && set < 600, `bit ${bit} is set in ${set} of 1000`);
  }
});

test("whatever the weights are, the candidates' shares are the percentages", () => {
  const entry = fc.record({ host: fc.integer({ min: 0, max: 40 }), port: fc.integer({ min: 1, max: 60 }) });
  const entries = fc.uniqueArray(entry, {
    minLength: 2,
    maxLength: 120,
    selector: ({ host, port }) => `${host} ${port}`,
  });
  const listing = fc.dictionary(fc.integer({ min: 0, max: 40 }).map(String), fc.integer({ min: 0, max: 100 }));
  fc.assert(
    fc.property(entries, listing, (given, listed) => {
      const hosts = new Set(given.map(({ host }) => `${host}`));
      let left = 100;
      const percents = new Map<string, number>();
      for (const [host, weight] of Object.entries(listed)) {
        if (!hosts.has(host) || weight > left) continue;
        percents.set(host, weight);
        left -= weight;
      }
      const value_weights = Object.fromEntries([...percents].map(([host, weight]) => [`h${host}.`, weight]));
      const values = given.map(({ host, port }) => ({ value: `h${host}.`, port }));
      const made = weights({ type: "SRV", values, policy: { method: "weighted", value_weights } });
      const unlisted = given.filter(({ host }) => !percents.has(`${host}`)).length;
      const sum = made.reduce((total, weight) => total + weight, 0);
      for (const [index, { host }] of given.entries()) {
        const weight = made[index]!;
        assert(Number.isInteger(weight) && weight >= 0 && weight <= CANDIDATE_WEIGHT_MAX);
        const sharing = given.filter((other) => other.host === host).length;
        const percent = percents.get(`${host}`);
        const share = percent === undefined ? left / unlisted : percent / sharing;
        // Where all is listed and it comes to less than 100, the shares are in the proportion of the weights.
        const whole = unlisted === 0 ? 100 - left : 100;
        if (whole > 0) assert(Math.abs(weight / sum - share / whole) < 1e-3, `${weight} of ${sum} for ${share} %`);
      }
    }),
    { numRuns: 300 },
  );
});
