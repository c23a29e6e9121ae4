/** The reasons for an answer in their order, from what the answerer told of its way. */

import type { TraceEvent } from "../answer/trace.ts";
import { ipToText } from "../base/ip.ts";
import { RCODE, RRTYPE } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { typeToText } from "../dns/type-names.ts";
import { METHOD } from "../image/layout.ts";
import type { Reason, SelectionReason } from "../model/explanation.ts";
import type { ExplainNames, NamedRecord } from "./explain-names.ts";
import {
  beginChoice,
  type Choice,
  clientReason,
  clientText,
  endChoice,
  type SelectionSubject,
  takeAffinity,
  takeChance,
  takeStep,
} from "./explain-selection.ts";

type Route = Extract<Reason, { kind: "route" }>;
type Event<Kind extends TraceEvent["kind"]> = Extract<TraceEvent, { kind: Kind }>;

export type ToldReasons = {
  readonly reasons: readonly Reason[];
  /** Keys of the probes of the candidates, by the selection's place among the reasons and the candidate's in it. */
  readonly probes: readonly { readonly reason: number; readonly candidate: number; readonly key: string }[];
};

type Told = { readonly client: Uint8Array; readonly typeText: string; readonly names: ExplainNames };

type Way = Told & {
  readonly reasons: Reason[];
  readonly probes: { readonly reason: number; readonly candidate: number; readonly key: string }[];
  /** The name in hand, and the one that has its records. */
  name: string;
  owner: string;
  /** The zone in hand, "" for an override. */
  zone: string;
  /** What was found of the name in hand, and whether it had records for the answer. */
  found: Event<"found">["found"] | "override" | "none";
  hasRecords: boolean;
  subject: SelectionSubject | undefined;
  choice: Choice | undefined;
  clientRegion: SelectionReason["client"];
};

export function tellReasons(events: readonly TraceEvent[], isRepeated: boolean, told: Told): ToldReasons {
  const way: Way = {
    ...told,
    reasons: [],
    probes: [],
    name: ".",
    owner: ".",
    zone: "",
    found: "none",
    hasRecords: false,
    subject: undefined,
    choice: undefined,
    clientRegion: undefined,
  };
  if (isRepeated) {
    way.reasons.push({ kind: "change", text: "a zone changed while the answer was made, so it was made again" });
  }
  for (const event of events) take(way, event);
  return { reasons: way.reasons, probes: way.probes };
}

function take(way: Way, event: TraceEvent): void {
  switch (event.kind) {
    case "name":
      way.name = nameToText(event.name);
      break;
    case "route":
      takeRoute(way, event);
      break;
    case "cache":
      takeCache(way, event);
      break;
    case "lack":
      takeLack(way, event);
      break;
    case "found":
      takeFound(way, event);
      break;
    case "rrset":
      takeRecords(way, event);
      break;
    case "follow":
      takeFollow(way, event);
      break;
    case "stopped":
      way.reasons.push({
        kind: "end",
        text:
          event.why === "loop"
            ? "the chain has come back to where it was: it ends here"
            : "the chain is longer than is followed: it ends here",
        why: event.why === "loop" ? "loop" : "too_long",
      });
      break;
    case "result":
      takeResult(way, event);
      break;
    default:
      takeSelection(way, event);
  }
}

function takeRoute(way: Way, { stage, zone }: Event<"route">): void {
  const { name } = way;
  way.owner = name;
  way.hasRecords = false;
  way.found = stage === "own" ? way.found : stage === "override" ? "override" : "none";
  const domain = zone === undefined ? "" : nameToText(zone);
  way.zone = stage === "own" ? domain : "";
  if (stage === "override") {
    way.reasons.push({ kind: "route", text: `an override answers for ${name}`, name, by: "override" });
    return;
  }
  if (stage !== "own") {
    way.reasons.push(besidePending(way, elsewhereReason(way, stage, domain)));
    return;
  }
  const id = way.names.zoneId(way.zone);
  const reason: Route = {
    kind: "route",
    text: `the zone ${way.zone} is the longest that ${name} lies in`,
    name,
    by: "zone",
    zone: way.zone,
    ...(id === undefined ? {} : { zone_id: id }),
  };
  way.reasons.push(besidePending(way, reason));
}

/** A zone that is pending is none to a query; whoever has made it wonders who answers instead. */
function besidePending({ name, names }: Way, reason: Route): Route {
  const pending = names.pendingZone(name);
  if (pending === undefined) return reason;
  const text = `${reason.text}; the zone ${pending.zone} is pending, and answers when all nodes have it`;
  return { ...reason, text, pending_zone: pending.zone, pending_zone_id: pending.id };
}

/** Of a name that no zone and no override of ours answers for. */
function elsewhereReason(
  { name, names, client }: Way,
  stage: Exclude<Event<"route">["stage"], "own" | "override">,
  domain: string,
): Route {
  const route = { kind: "route", name } as const;
  switch (stage) {
    case "none":
      return {
        ...route,
        text: `no override and no zone of this node answers for ${name}, and it asks nobody else`,
        by: "nobody",
      };
    case "not-offered":
      return {
        ...route,
        text: `no override and no zone of this node answers for ${name}, and it asks nobody for ${ipToText(client)}, whose network recursion is not offered to`,
        by: "nobody",
      };
    case "blocklist":
      return { ...route, text: `${domain} is on the blocklist`, by: "blocklist", domain };
    case "default":
      return { ...route, text: `the default forwarder answers for ${name}`, by: "default_forwarder" };
    case "delegation":
      return { ...route, text: `the name servers of ${domain} answer for ${name}`, by: "delegation", domain };
    default: {
      const known = names.route(domain);
      const id =
        known?.id === undefined ? {} : { [known.by === "forwarder" ? "forwarder_id" : "stub_zone_id"]: known.id };
      const what = known?.by === "stub_zone" ? "stub zone" : "forwarder";
      const text = `the ${what} of ${domain} answers for ${name}`;
      return { ...route, text, by: known?.by ?? "forwarder", domain, ...id };
    }
  }
}

function takeCache(way: Way, { isStale, ageSeconds }: Event<"cache">): void {
  const { name } = way;
  way.reasons.push({
    kind: "cache",
    text: isStale
      ? `no upstream answers: what one said of ${name} ${ageSeconds} s ago is answered although its time is over`
      : `an upstream answered for ${name} ${ageSeconds} s ago`,
    name,
    found: isStale ? "stale" : "fresh",
    age_seconds: ageSeconds,
  });
}

function takeLack(way: Way, { type: typeNumber }: Event<"lack">): void {
  const { name } = way;
  const type = typeToText(typeNumber);
  way.reasons.push({ kind: "upstream", text: `the cache has no ${name} ${type}: an upstream is asked`, name, type });
}

function takeFound(way: Way, { found, owner: wire }: Event<"found">): void {
  const { name } = way;
  const owner = nameToText(wire);
  way.owner = owner;
  way.found = found;
  const lookup = { kind: "lookup", name, owner } as const;
  switch (found) {
    case "node":
      way.reasons.push({ ...lookup, text: `the zone has the name ${name}`, found: "name" });
      break;
    case "wildcard":
      way.reasons.push({ ...lookup, text: `the zone has no ${name}; the wildcard ${owner} stands for it`, found });
      break;
    case "cut":
      way.reasons.push({ ...lookup, text: `${owner} is delegated to other servers`, found: "delegation" });
      break;
    case "nothing":
      way.reasons.push({ ...lookup, text: `the zone has no ${name}, and no wildcard stands for it`, found });
      break;
  }
}

function takeRecords(way: Way, event: Event<"rrset">): void {
  const { section, ttl, type: typeNumber, rdata } = event;
  const name = nameToText(event.owner);
  const type = typeToText(typeNumber);
  const record =
    section === "answer" ? way.names.record(way.zone, way.owner, type) : besideRecord(way, event.owner, type);
  if (section === "answer") way.hasRecords = true;
  way.subject = {
    name,
    type,
    typeNumber,
    rdata,
    record,
    isFollowed: typeNumber === RRTYPE.CNAME || typeNumber === RRTYPE.ALIAS,
  };
  way.reasons.push({
    kind: "records",
    text:
      section === "answer"
        ? `${name} has ${type} records with a TTL of ${ttl} s`
        : `${name} is named in the answer: its ${type} records go beside it`,
    section,
    name,
    type,
    ttl,
    ...(record.id === undefined ? {} : { record_id: record.id }),
  });
}

/** Records beside an answer are an override's or those of the zone in hand, of the nearest wildcard perhaps. */
function besideRecord({ names, zone }: Way, owner: Uint8Array, type: string): NamedRecord {
  const name = nameToText(owner);
  const override = names.record("", name, type);
  if (override.id !== undefined || zone === "") return override;
  const exact = names.record(zone, name, type);
  if (exact.id !== undefined) return exact;
  for (let at = (owner[0] ?? 0) + 1; at < owner.length; at += (owner[at] ?? 0) + 1) {
    const parent = nameToText(owner, at);
    const wildcard = names.record(zone, parent === "." ? "*." : `*.${parent}`, type);
    if (wildcard.id !== undefined) return wildcard;
    if (parent === zone) break;
  }
  return exact;
}

function takeFollow(way: Way, { by, target: wire }: Event<"follow">): void {
  const target = nameToText(wire);
  way.name = target;
  way.reasons.push(
    by === "cname"
      ? { kind: "follow", text: `the CNAME leads to ${target}`, by: "CNAME", target }
      : { kind: "follow", text: `the addresses of ${target} are answered in its place`, by: "ALIAS", target },
  );
}

function takeSelection(way: Way, event: TraceEvent): void {
  const { client, names, subject, choice } = way;
  if (event.kind === "select" && subject !== undefined) {
    way.choice = beginChoice(event, subject, client, names);
    return;
  }
  if (event.kind === "client") {
    way.clientRegion = clientReason(event, client, names);
    choice?.reasons.push(clientText(way.clientRegion));
    return;
  }
  if (choice === undefined) return;
  switch (event.kind) {
    case "step":
      takeStep(choice, event);
      break;
    case "chance":
      takeChance(choice, event);
      break;
    case "affinity":
      takeAffinity(choice, event);
      break;
    case "chosen":
      takeChosen(way, choice, event);
      break;
    default:
  }
}

function takeChosen(way: Way, choice: Choice, event: Event<"chosen">): void {
  const { method, candidates } = choice.select;
  const asksRegion = method === METHOD.REGION || method === METHOD.GEO_FAILOVER;
  const reason = way.reasons.push(endChoice(choice, event, asksRegion ? way.clientRegion : undefined)) - 1;
  for (const [candidate, { slot }] of candidates.entries()) {
    const key = choice.subject.record.probes.get(slot)?.key;
    if (key !== undefined) way.probes.push({ reason, candidate, key });
  }
  way.choice = undefined;
}

/** The zone has the name, and nothing of what is asked for. */
function takeResult(way: Way, { rcode, isTruncated, answers }: Event<"result">): void {
  const { name, typeText, found, hasRecords } = way;
  const hasName = found === "node" || found === "wildcard" || found === "override";
  if (rcode !== RCODE.NOERROR || isTruncated || !hasName || (hasRecords && answers > 0)) return;
  way.reasons.push({
    kind: "no_data",
    text: `${name} has no ${typeText} records: the SOA says how long that may be kept`,
    name,
    type: typeText,
  });
}
