/**
 * What an answer chooses from: the values of a record in the order of its policy, with all that selection goes by. Pure, so
 * that every node makes the same table from the same record, but for health and the regions that its own mappings give.
 */
import { METHOD, type Method, SELECTION_FLAG } from "../image/layout.ts";
import { regionNumber } from "../image/regions.ts";
import { WEIGHTS_SUM_MAX } from "../model/limits.ts";
import type { LbPolicy, RecordType } from "../model/objects.ts";
import { ownsName } from "../model/ownership.ts";
import { canonicalText, canonicalValue, type ValueFields } from "../model/record-values.ts";

/** How long a client keeps its value where the policy does not say. */
export const AFFINITY_SECONDS_DEFAULT = 300;
/** The greatest weight of a candidate: over 1,000 values the sum stays an Int32. */
export const CANDIDATE_WEIGHT_MAX = 2 ** 20;

const METHODS: { readonly [M in LbPolicy["method"]]: Method } = {
  "round-robin": METHOD.ROUND_ROBIN,
  failover: METHOD.FAILOVER,
  latency: METHOD.LATENCY,
  region: METHOD.REGION,
  "geo-failover": METHOD.GEO_FAILOVER,
  weighted: METHOD.WEIGHTED,
};

/** A value that an answer may have. */
export type Choice = {
  /** Of the value in the record. */
  readonly index: number;
  readonly health: number;
  readonly region: number;
  readonly weight: number;
  readonly hash: number;
};

export type SelectionTable = {
  readonly method: Method;
  /** Bits of SELECTION_FLAG. */
  readonly flags: number;
  readonly affinitySeconds: number;
  /** Numbers of the regions that are tried after the client's. */
  readonly preferred: readonly number[];
  /** In the order in which the RRs stand; no value is there twice. */
  readonly choices: readonly Choice[];
};

export type SelectionInput = {
  readonly record: ValueFields & { readonly type: RecordType };
  /** The record's own, or what it inherits. */
  readonly policy: LbPolicy | undefined;
  /** The health slot of each value; undefined where the record has no template. */
  readonly slots: readonly number[] | undefined;
  /** The number of each value's region, 0 for none; read where the method asks for regions. */
  readonly regions: readonly number[];
};

/** Whether the method asks where values are. */
export function usesRegions(policy: LbPolicy | undefined): boolean {
  return policy?.method === "region" || policy?.method === "geo-failover";
}

/** Whether an answer chooses at all: where there is but one value, and nobody probes it, every method comes to the same. */
export function isSelected(values: number, policy: LbPolicy | undefined, isProbed: boolean): boolean {
  return isProbed || (policy !== undefined && values > 1);
}

/** The table of a record; undefined where all its values are answered, or its one value, whatever happens. */
export function selectionTable({ record, policy, slots, regions }: SelectionInput): SelectionTable | undefined {
  if (!isSelected(record.values.length, policy, slots !== undefined)) return undefined;
  const ordered = orderOf(record, policy);
  const weights = policy?.method === "weighted" ? weightsOf(record, policy, ordered) : undefined;
  const asksRegions = usesRegions(policy);
  const hasAffinity = policy?.client_affinity === true;
  return {
    method: policy === undefined ? METHOD.ALL : METHODS[policy.method],
    flags: (ownsName(record.type) ? SELECTION_FLAG.SINGLE : 0) | (hasAffinity ? SELECTION_FLAG.AFFINITY : 0),
    affinitySeconds: policy?.affinity_ttl_seconds ?? AFFINITY_SECONDS_DEFAULT,
    preferred: asksRegions ? (policy?.region_preference ?? []).map(regionNumber) : [],
    choices: ordered.map(({ index, canonical }, place) => ({
      index,
      health: slots?.[index] ?? 0,
      region: asksRegions ? (regions[index] ?? 0) : 0,
      weight: weights?.[place] ?? 0,
      hash: hashOf(canonical),
    })),
  };
}

type Ordered = { readonly index: number; readonly text: string; readonly canonical: string };

/** The values, each once: in the order of failover those that it lists, and then the others as the record has them. */
function orderOf(record: SelectionInput["record"], policy: LbPolicy | undefined): readonly Ordered[] {
  const { type, values } = record;
  const seen = new Set<string>();
  const ordered: Ordered[] = [];
  for (const [index, value] of values.entries()) {
    const canonical = canonicalValue(type, record, value);
    if (seen.has(canonical)) continue;
    seen.add(canonical);
    ordered.push({ index, text: canonicalText(type, value.value), canonical });
  }
  if (policy?.method !== "failover" || policy.failover_order === undefined) return ordered;
  const places = new Map<string, number>();
  for (const [place, text] of policy.failover_order.entries()) {
    const key = canonicalText(type, text);
    if (!places.has(key)) places.set(key, place);
  }
  const placeOf = ({ text }: Ordered) => places.get(text) ?? places.size + 1;
  return ordered.sort((a, b) => placeOf(a) - placeOf(b));
}

/**
 * Whole numbers in the proportion of the policy's percentages. A key that several values share (SRV of one host) divides its
 * percentage among them, and values that no key names divide what is left to 100.
 */
function weightsOf(record: SelectionInput["record"], policy: LbPolicy, ordered: readonly Ordered[]): readonly number[] {
  const sharing = new Map<string, number>();
  for (const { text } of ordered) sharing.set(text, (sharing.get(text) ?? 0) + 1);
  const listed = new Map<string, number>();
  for (const [key, weight] of Object.entries(policy.value_weights ?? {})) {
    const text = canonicalText(record.type, key);
    if (sharing.has(text) && !listed.has(text)) listed.set(text, weight);
  }
  const left = WEIGHTS_SUM_MAX - [...listed.values()].reduce((sum, weight) => sum + weight, 0);
  const unlisted = ordered.filter(({ text }) => !listed.has(text)).length;
  const shares = ordered.map(({ text }) => {
    const weight = listed.get(text);
    return weight === undefined
      ? { percent: Math.max(0, left), among: unlisted }
      : { percent: weight, among: sharing.get(text) ?? 1 };
  });
  return wholeNumbers(shares);
}

type Share = { readonly percent: number; readonly among: number };

/** Exact where the common denominator is small enough, which it is unless several keys are shared by different numbers. */
function wholeNumbers(shares: readonly Share[]): readonly number[] {
  let denominator = 1;
  for (const among of new Set(shares.map((share) => share.among))) {
    denominator = (denominator / greatestDivisor(denominator, among)) * among;
    if (denominator * WEIGHTS_SUM_MAX > CANDIDATE_WEIGHT_MAX) {
      return shares.map((share) => Math.round((share.percent / share.among / WEIGHTS_SUM_MAX) * CANDIDATE_WEIGHT_MAX));
    }
  }
  return shares.map((share) => (share.percent * denominator) / share.among);
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** FNV-1a over the text's code units, mixed so that every bit of it is in every bit of the hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
