import assert from "node:assert/strict";
import { test } from "node:test";
import { LbPolicyShape, policyFaults, policyOf, zonePolicyFaults } from "./lb-policy.ts";
import { LB_METHODS, type LbPolicy, type RecordType } from "./objects.ts";
import { checkShape } from "./shape.ts";

const VALUES = [{ value: "192.0.2.1" }, { value: "192.0.2.2" }];

function faults(
  policy: LbPolicy,
  type: RecordType = "A",
  values: readonly { value: string }[] = VALUES,
): readonly string[] {
  return policyFaults(policy, type, values).map(({ pointer, detail }) => `${pointer}: ${detail}`);
}

test("every method is taken, no other is", () => {
  for (const method of LB_METHODS) assert.deepEqual(checkShape(LbPolicyShape, { method }), []);
  assert.equal(checkShape(LbPolicyShape, { method: "random" })[0]?.pointer, "/method");
  assert.equal(checkShape(LbPolicyShape, {})[0]?.pointer, "/method");
});

test("weights lie from 0 to 100", () => {
  const shape = (weight: number) => checkShape(LbPolicyShape, { method: "weighted", value_weights: { a: weight } });
  assert.deepEqual([0, 100].map(shape), [[], []]);
  for (const weight of [-1, 101]) assert.equal(shape(weight)[0]?.pointer, "/value_weights/a");
});

test("weights sum to 100 at most", () => {
  assert.deepEqual(faults({ method: "weighted", value_weights: { "192.0.2.1": 60, "192.0.2.2": 40 } }), []);
  assert.deepEqual(faults({ method: "weighted", value_weights: { "192.0.2.1": 60, "192.0.2.2": 41 } }), [
    "/lb_policy/value_weights: the weights sum to 101, which is past 100",
  ]);
});

test("a key of the weights is a value, in any spelling, once", () => {
  assert.deepEqual(faults({ method: "weighted", value_weights: { "192.0.2.9": 1 } }), [
    "/lb_policy/value_weights/192.0.2.9: matches no value of the record",
  ]);
  const values = [{ value: "a.example." }];
  assert.deepEqual(faults({ method: "weighted", value_weights: { "A.Example": 1 } }, "CNAME", values), []);
  assert.deepEqual(
    faults({ method: "weighted", value_weights: { "A.Example": 1, "a.example.": 2 } }, "CNAME", values),
    ["/lb_policy/value_weights/a.example.: is there twice, in another spelling"],
  );
  const inherited = JSON.parse('{"__proto__": 5, "constructor": 5}');
  assert.equal(faults({ method: "weighted", value_weights: inherited }).length, 2);
});

test("the order of failover names values, each once", () => {
  assert.deepEqual(faults({ method: "failover", failover_order: ["192.0.2.2", "192.0.2.1"] }), []);
  assert.deepEqual(faults({ method: "failover", failover_order: ["192.0.2.2", "192.0.2.2", "x"] }), [
    "/lb_policy/failover_order/1: is there twice",
    "/lb_policy/failover_order/2: matches no value of the record",
  ]);
});

test("delegations take no policy", () => {
  assert.deepEqual(faults({ method: "weighted" }, "NS"), ["/lb_policy: NS records take no policy"]);
});

test("the default of a zone names no values", () => {
  assert.deepEqual(zonePolicyFaults({ method: "region", region_preference: ["eu"] }), []);
  const pointers = zonePolicyFaults({ method: "weighted", value_weights: {}, failover_order: [] }).map(
    (each) => each.pointer,
  );
  assert.deepEqual(pointers, ["/lb_policy/value_weights", "/lb_policy/failover_order"]);
});

test("addresses and aliases inherit the policy of their zone, other types do not", () => {
  const zone = { lb_policy: { method: "failover" } } as const;
  const own = { method: "latency" } as const;
  assert.equal(policyOf({ type: "ALIAS" }, zone), zone.lb_policy);
  assert.equal(policyOf({ type: "TXT" }, zone), undefined);
  assert.equal(policyOf({ type: "TXT", lb_policy: own }, zone), own);
  assert.equal(policyOf({ type: "A", lb_policy: own }, zone), own);
});
