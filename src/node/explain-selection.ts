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
  for (const index of choice.left) if (!left.includes(index)) choice.droppedBy.set(index, why);
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
    new Set(shares).size > 1 ? "chance draws one, in proportion to the weights" : "chance draws one, each as likely",
  );
}

export function takeAffinity(choice: Choice, event: Event<"affinity">): void {
  const { client } = choice;
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
  const { subject, select, reasons, affinity, names } = choice;
  const { record, name, type, isFollowed } = subject;
  const chosen = isFollowed ? event.chosen.slice(0, 1) : event.chosen;
  const before = choice.left;
  const isDrawn = choice.shares !== undefined || affinity !== undefined;
  if (!isDrawn && before.length > 1) {
    reasons.push(
      chosen.length > 1 ? "all that are left are answered, by turns first" : "they take turns, one an answer",
    );
  }
  for (const index of before) {
    if (!chosen.includes(index)) choice.droppedBy.set(index, isDrawn ? drawnOut(choice, index) : "other_turn");
  }
  const method = METHOD_NAMES.get(select.method) ?? "all";
  const weights = select.candidates.reduce((sum, { weight }) => sum + weight, 0);
  const candidates = select.candidates.map((candidate, index): ExplainedCandidate => {
    const position = chosen.indexOf(index) + 1;
    const droppedBy = choice.droppedBy.get(index);
    const region =
      candidate.region === 0 ? undefined : (record.regions.get(candidate.region) ?? names.region(candidate.region));
    return {
      value: rdataToText(subject.typeNumber, subject.rdata[index] ?? new Uint8Array(0)),
      ...stateOf(candidate),
      ...(region === undefined ? {} : { region }),
      ...(method === "weighted" && weights > 0 ? { weight_percent: rounded((candidate.weight * 100) / weights) } : {}),
      answered: position > 0,
      ...(position > 0 ? { position } : {}),
      ...(droppedBy === undefined ? {} : { dropped_by: droppedBy }),
      share: shareOf(choice, index, before, chosen, isDrawn),
    };
  });
  return {
    kind: "selection",
    text: `${chosen.length} of ${counted(candidates.length, "value")} of ${name} ${type} ${chosen.length === 1 ? "is" : "are"} answered${select.failOpen ? ", failing open" : ""}`,
    name,
    type,
    ...(record.id === undefined ? {} : { record_id: record.id }),
    method,
    policy: record.policy,
    failing_open: select.failOpen,
    ...(client === undefined ? {} : { client }),
    ...(affinity === undefined ? {} : { affinity }),
    reasons,
    candidates,
  };
}

/** Why the one that was drawn is not this one. */
function drawnOut({ select, shares, left }: Choice, index: number): DroppedBy {
  if (shares !== undefined) return shares.get(index) === 0 ? "weight_zero" : "chance";
  const hasWeights = left.some((each) => select.candidates[each]?.weight !== 0);
  return select.method === METHOD.WEIGHTED && hasWeights && select.candidates[index]?.weight === 0
    ? "weight_zero"
    : "affinity";
}

function shareOf(
  { shares }: Choice,
  index: number,
  before: readonly number[],
  chosen: readonly number[],
  isDrawn: boolean,
): number {
  if (shares !== undefined) return shares.get(index) ?? 0;
  const takeTurns = !isDrawn && chosen.length === 1 && before.includes(index);
  return takeTurns ? 1 / before.length : chosen.includes(index) ? 1 : 0;
}

function stateOf({ slot, health, latencyUs }: TraceCandidate): Pick<ExplainedCandidate, "probed" | "state"> {
  const state = health === HEALTH.UNHEALTHY ? "unhealthy" : health === HEALTH.HEALTHY ? "healthy" : "unknown";
  return { probed: slot !== 0, state, ...(latencyUs === 0 ? {} : { latency_ms: latencyUs / 1000 }) };
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
