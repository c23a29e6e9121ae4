/** One choice among the values of a record, from what the answerer told of it: who was kept, and what dropped the others. */
import { AFFINITY_PREFIX } from "../answer/affinity.ts";
import type { TraceCandidate, TraceEvent } from "../answer/trace.ts";
import { rdataToText } from "../dns/rdata.ts";
import { HEALTH } from "../image/health.ts";
import { METHOD } from "../image/layout.ts";
import type { DroppedBy, ExplainedCandidate, SelectionReason } from "../model/explanation.ts";
import { type ExplainNames, type NamedRecord, networkText } from "./explain-names.ts";

type Event<Kind extends TraceEvent["kind"]> = Extract<TraceEvent, { kind: Kind }>;
type SelectEvent = Event<"select">;

/** What the choice is about. */
export type SelectionSubject = {
  readonly name: string;
  readonly type: string;
  readonly typeNumber: number;
  readonly rdata: readonly Uint8Array[];
  readonly record: NamedRecord;
  /** An answer has one value whatever the method: CNAME and ALIAS. */
  readonly isFollowed: boolean;
};

/** Gathers what comes between "select" and "chosen". */
export type Choice = {
  readonly subject: SelectionSubject;
  readonly client: Uint8Array;
  readonly names: ExplainNames;
  readonly select: SelectEvent;
  left: readonly number[];
  readonly droppedBy: Map<number, DroppedBy>;
  readonly reasons: string[];
  shares: ReadonlyMap<number, number> | undefined;
  affinity: SelectionReason["affinity"];
  /** The sum over all candidates. */
  readonly weights: number;
  /** The client draws by weights, not all of them 0. */
  hasWeights: boolean;
};

const METHOD_NAMES: ReadonlyMap<number, SelectionReason["method"]> = new Map([
  [METHOD.ALL, "all"],
  [METHOD.ROUND_ROBIN, "round-robin"],
  [METHOD.FAILOVER, "failover"],
  [METHOD.LATENCY, "latency"],
  [METHOD.REGION, "region"],
  [METHOD.GEO_FAILOVER, "geo-failover"],
  [METHOD.WEIGHTED, "weighted"],
]);

export function beginChoice(
  select: SelectEvent,
  subject: SelectionSubject,
  client: Uint8Array,
  names: ExplainNames,
): Choice {
  const { candidates, failOpen } = select;
  const all = candidates.map((_, index) => index);
  const choice: Choice = {
    subject,
    client,
    names,
    select,
    left: all,
    droppedBy: new Map(),
    reasons: [],
    shares: undefined,
    affinity: undefined,
    weights: candidates.reduce((sum, { weight }) => sum + weight, 0),
    hasWeights: false,
  };
  if (failOpen) {
    choice.reasons.push(`${counted(all.length, "value")}, all unhealthy: all are taken as if they were healthy`);
    return choice;
  }
  const unhealthy = all.length - select.left.length;
  choice.reasons.push(
    unhealthy === 0
      ? `${counted(all.length, "value")}, none unhealthy`
      : `${counted(all.length, "value")}, ${unhealthy} unhealthy and dropped`,
  );
  keep(choice, select.left, "unhealthy");
  return choice;
}

function keep(choice: Choice, left: readonly number[], why: DroppedBy): void {
  const kept = new Set(left);
  for (const index of choice.left) if (!kept.has(index)) choice.droppedBy.set(index, why);
  choice.left = left;
}

/** The region of the client, as far as the choice asks for it. */
export function clientReason({ region, source }: Event<"client">, client: Uint8Array, names: ExplainNames) {
  const name = names.region(region);
  const mapping = source === "mapping" ? names.mapping(client) : undefined;
  return {
    ...(name === undefined ? {} : { region: name }),
    source,
    ...(mapping === undefined ? {} : { subnet: mapping.subnet, mapping_id: mapping.id }),
  };
}

export function clientText({ region = "a region without a name", source, subnet }: ReturnType<typeof clientReason>) {
  if (source === "none") return "no subnet mapping covers the client, and this node has no region";
  if (source === "node") return `no subnet mapping covers the client, so it counts as in this node's region, ${region}`;
  return `the client is in ${region}, by the mapping of ${subnet ?? "its subnet"}`;
}

export function takeStep(choice: Choice, { step, region, left }: Event<"step">): void {
  const { reasons } = choice;
  const where = regionText(choice, region);
  const isRegion = step === "client-region" || step === "preferred-region";
  if (isRegion && left.length === 0) {
    reasons.push(
      step === "client-region"
        ? `none is in the client's region, ${where}`
        : `none is in ${where}, which is preferred next`,
    );
    return;
  }
  switch (step) {
    case "client-region":
      reasons.push(`${counted(left.length, "value")} in the client's region, ${where}`);
      break;
    case "preferred-region":
      reasons.push(`${counted(left.length, "value")} in ${where}, which is preferred next`);
      break;
    case "any-region":
      reasons.push("no region decides: values of all regions are taken");
      break;
    case "first":
      reasons.push("the first in the order is taken");
      break;
    case "nearest":
      reasons.push(
        left.length > 1 ? "those within 10 % of the lowest latency are near" : "the lowest latency is taken",
      );
      break;
    case "kept":
      reasons.push("the value answered last is kept: none is over 10 % nearer");
      break;
    case "unmeasured":
      reasons.push("no latency is measured yet: all are taken, in an order by chance");
      break;
  }
  keep(choice, left, isRegion ? "other_region" : step === "first" ? "later_in_order" : "slower");
}

export function takeChance(choice: Choice, { left, shares }: Event<"chance">): void {
  choice.shares = new Map(left.map((index, position) => [index, shares[position] ?? 0]));
  choice.reasons.push(
    left.length === 1
      ? "one is left, which is taken"
      : `chance draws one, ${new Set(shares).size > 1 ? "in proportion to the weights" : "each as likely"}`,
  );
}

export function takeAffinity(choice: Choice, event: Event<"affinity">): void {
  const { client, select, left } = choice;
  const isWeighted = select.method === METHOD.WEIGHTED;
  choice.hasWeights = isWeighted && left.some((index) => select.candidates[index]?.weight !== 0);
  const network = networkText(client, client.length === 4 ? AFFINITY_PREFIX.V4 : AFFINITY_PREFIX.V6);
  const redrawnAt = new Date(event.untilSeconds * 1000).toISOString();
  choice.affinity = {
    network,
    period: event.period,
    period_seconds: event.periodSeconds,
    redrawn_at: redrawnAt,
  };
  choice.reasons.push(`the network ${network} has drawn its own value, which it keeps until ${redrawnAt}`);
}

/** The choice is made. */
export function endChoice(choice: Choice, event: Event<"chosen">, client: SelectionReason["client"]): SelectionReason {
  const { subject, select, reasons, affinity, left } = choice;
  const { record, name, type, isFollowed } = subject;
  const chosen = isFollowed ? event.chosen.slice(0, 1) : event.chosen;
  const places = new Map(chosen.map((index, place) => [index, place + 1]));
  const isDrawn = choice.shares !== undefined || affinity !== undefined;
  const takesTurns = !isDrawn && left.length > 1;
  if (takesTurns) {
    reasons.push(
      chosen.length > 1
        ? "all that are left are answered, each answer beginning with another one"
        : "those that are left take turns, one an answer",
    );
  }
  const shares = choice.shares ?? sharesOf(takesTurns && chosen.length === 1 ? left : chosen, chosen.length);
  for (const index of left) {
    if (!places.has(index)) choice.droppedBy.set(index, isDrawn ? drawnOut(choice, index) : "other_turn");
  }
  const candidates = select.candidates.map((candidate, index) => ({
    ...candidateView(choice, candidate, index),
    ...fateOf(places.get(index), choice.droppedBy.get(index)),
    share: shares.get(index) ?? 0,
  }));
  const text = `${chosen.length} of ${counted(candidates.length, "value")} of ${name} ${type} ${chosen.length === 1 ? "is" : "are"} answered`;
  return {
    kind: "selection",
    text: select.failOpen ? `${text}, failing open` : text,
    name,
    type,
    ...(record.id === undefined ? {} : { record_id: record.id }),
    method: METHOD_NAMES.get(select.method) ?? "all",
    policy: record.policy,
    failing_open: select.failOpen,
    ...(client === undefined ? {} : { client }),
    ...(affinity === undefined ? {} : { affinity }),
    reasons,
    candidates,
  };
}

/** `answered` of these are in an answer, each as often. */
function sharesOf(indexes: readonly number[], answered: number): ReadonlyMap<number, number> {
  return new Map(indexes.map((index) => [index, answered / indexes.length]));
}

type Fate = Pick<ExplainedCandidate, "answered" | "position" | "dropped_by">;

function fateOf(position: number | undefined, droppedBy: DroppedBy | undefined): Fate {
  if (position !== undefined) return { answered: true, position };
  return { answered: false, ...(droppedBy === undefined ? {} : { dropped_by: droppedBy }) };
}

type CandidateView = Omit<ExplainedCandidate, keyof Fate | "share">;

function candidateView(
  { subject, select, names, weights }: Choice,
  candidate: TraceCandidate,
  index: number,
): CandidateView {
  const { region: number, weight, slot, health, latencyUs } = candidate;
  const region = number === 0 ? undefined : (subject.record.regions.get(number) ?? names.region(number));
  const isWeighted = select.method === METHOD.WEIGHTED && weights > 0;
  return {
    value: rdataToText(subject.typeNumber, subject.rdata[index] ?? new Uint8Array(0)),
    probed: slot !== 0,
    state: health === HEALTH.UNHEALTHY ? "unhealthy" : health === HEALTH.HEALTHY ? "healthy" : "unknown",
    ...(latencyUs === 0 ? {} : { latency_ms: latencyUs / 1000 }),
    ...(region === undefined ? {} : { region }),
    ...(isWeighted ? { weight_percent: rounded((weight * 100) / weights) } : {}),
  };
}

/** Why the one that was drawn is not this one. */
function drawnOut({ select, shares, hasWeights }: Choice, index: number): DroppedBy {
  if (shares !== undefined) return shares.get(index) === 0 ? "weight_zero" : "chance";
  return hasWeights && select.candidates[index]?.weight === 0 ? "weight_zero" : "affinity";
}

function regionText({ subject, names }: Choice, region: number): string {
  return subject.record.regions.get(region) ?? names.region(region) ?? "a region without a name";
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function rounded(percent: number): number {
  return Math.round(percent * 1000) / 1000;
}
