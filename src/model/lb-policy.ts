/** Policies that choose among the values of a record. */
import { type Static, Type } from "typebox";
import {
  AFFINITY_TTL_SECONDS_MAX,
  REGION_MAX,
  REGION_PREFERENCE_MAX,
  VALUE_TEXT_MAX,
  VALUES_MAX,
  WEIGHT_MAX,
  WEIGHTS_SUM_MAX,
} from "./limits.ts";
import { LB_METHODS, type LbPolicy, type RecordType, type RecordValue } from "./objects.ts";
import { canonicalText } from "./record-values.ts";
import type { FieldFault } from "./refusal.ts";
import { pointerToken } from "./shape.ts";

/** Regions are the platform's names for places: letters, digits, dots, hyphens and underscores. */
export const REGION_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]*$";

export const LbPolicyShape = Type.Object(
  {
    method: Type.Enum([...LB_METHODS]),
    client_affinity: Type.Optional(Type.Boolean()),
    affinity_ttl_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: AFFINITY_TTL_SECONDS_MAX })),
    failover_order: Type.Optional(Type.Array(Type.String({ maxLength: VALUE_TEXT_MAX }), { maxItems: VALUES_MAX })),
    region_preference: Type.Optional(
      Type.Array(Type.String({ maxLength: REGION_MAX, pattern: REGION_PATTERN }), {
        maxItems: REGION_PREFERENCE_MAX,
        uniqueItems: true,
      }),
    ),
    value_weights: Type.Optional(
      Type.Record(Type.String(), Type.Integer({ minimum: 0, maximum: WEIGHT_MAX }), { maxProperties: VALUES_MAX }),
    ),
  },
  {
    additionalProperties: false,
    description: "How an answer chooses among the values",
    examples: [{ method: "weighted", value_weights: { "10.0.0.1": 80, "10.0.0.2": 20 } }],
  },
);
export type LbPolicyShape = Static<typeof LbPolicyShape>;

/** Types whose records take a policy: a delegation is always answered whole. */
export function takesPolicy(type: RecordType): boolean {
  return type !== "NS";
}

/** What is wrong with the policy of a record that has these values. `pointer` leads to the policy. */
export function policyFaults(
  policy: LbPolicy,
  type: RecordType,
  values: readonly RecordValue[],
  pointer = "/lb_policy",
): FieldFault[] {
  if (!takesPolicy(type)) return [{ pointer, detail: `${type} records take no policy` }];
  const known = new Set(values.map(({ value }) => canonicalText(type, value)));
  return [
    ...weightFaults(policy, type, known, `${pointer}/value_weights`),
    ...orderFaults(policy, type, known, `${pointer}/failover_order`),
  ];
}

/** As much of a key as comes back in a fault. */
const KEY_SHOWN_MAX = 100;

function weightFaults(policy: LbPolicy, type: RecordType, known: ReadonlySet<string>, pointer: string): FieldFault[] {
  const faults: FieldFault[] = [];
  const seen = new Set<string>();
  let sum = 0;
  for (const [key, weight] of Object.entries(policy.value_weights ?? {})) {
    const value = canonicalText(type, key);
    const at = `${pointer}/${pointerToken(key.slice(0, KEY_SHOWN_MAX).toWellFormed())}`;
    if (!known.has(value)) faults.push({ pointer: at, detail: "matches no value of the record" });
    else if (seen.has(value)) faults.push({ pointer: at, detail: "is there twice, in another spelling" });
    seen.add(value);
    sum += weight;
  }
  if (sum > WEIGHTS_SUM_MAX)
    faults.push({ pointer, detail: `the weights sum to ${sum}, which is past ${WEIGHTS_SUM_MAX}` });
  return faults;
}

function orderFaults(policy: LbPolicy, type: RecordType, known: ReadonlySet<string>, pointer: string): FieldFault[] {
  const faults: FieldFault[] = [];
  const seen = new Set<string>();
  for (const [index, text] of (policy.failover_order ?? []).entries()) {
    const value = canonicalText(type, text);
    if (!known.has(value)) faults.push({ pointer: `${pointer}/${index}`, detail: "matches no value of the record" });
    else if (seen.has(value)) faults.push({ pointer: `${pointer}/${index}`, detail: "is there twice" });
    seen.add(value);
  }
  return faults;
}

/**
 * The policy without what it says of values that the record does not have (any more); the same object where that is
 * nothing. A list that becomes empty goes.
 */
export function withoutOrphans(policy: LbPolicy, type: RecordType, values: readonly RecordValue[]): LbPolicy {
  const known = new Set(values.map(({ value }) => canonicalText(type, value)));
  const isKnown = (text: string) => known.has(canonicalText(type, text));
  const { value_weights, failover_order, ...rest } = policy;
  const weights = Object.entries(value_weights ?? {});
  const keptWeights = weights.filter(([value]) => isKnown(value));
  const keptOrder = (failover_order ?? []).filter(isKnown);
  if (keptWeights.length === weights.length && keptOrder.length === (failover_order ?? []).length) return policy;
  return {
    ...rest,
    ...(keptWeights.length === 0 ? {} : { value_weights: Object.fromEntries(keptWeights) }),
    ...(keptOrder.length === 0 ? {} : { failover_order: keptOrder }),
  };
}

/** What is wrong with a policy as a zone's default: it knows no values. */
export function zonePolicyFaults(policy: LbPolicy, pointer = "/lb_policy"): FieldFault[] {
  return (["value_weights", "failover_order"] as const)
    .filter((field) => policy[field] !== undefined)
    .map((field) => ({
      pointer: `${pointer}/${field}`,
      detail: "names values, which the default of a zone has none of",
    }));
}

/** The policy that a record goes by: its own, or its zone's for the types that inherit. */
export function policyOf(
  record: { readonly type: RecordType; readonly lb_policy?: LbPolicy },
  zone: { readonly lb_policy?: LbPolicy },
): LbPolicy | undefined {
  if (record.lb_policy !== undefined) return record.lb_policy;
  return inheritsPolicy(record.type) ? zone.lb_policy : undefined;
}

export function inheritsPolicy(type: RecordType): boolean {
  return type === "A" || type === "AAAA" || type === "CNAME" || type === "ALIAS";
}
