/** What forwarders and stub zones have in common: the domain that leads to them, and fields around it. */
import { Type } from "typebox";
import { ipFromText } from "../base/ip.ts";
import { parseUpstream } from "../dns/upstream.ts";
import { CommentShape, orNull } from "./answer-fields.ts";
import * as limits from "./limits.ts";
import { anyFullName, fullName } from "./names.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import type { IsOwnSocket } from "./upstreams.ts";

export const DomainShape = Type.String({
  minLength: 1,
  maxLength: limits.NAME_TEXT_MAX,
  description: "Full name that ends in a dot; names below it belong to it.",
  examples: ["corp.example."],
});
const ReadOnlyText = Type.Optional(Type.String({ maxLength: limits.NAME_TEXT_MAX, readOnly: true }));
/** As an update has them, since a client sends back what it was given. */
export const READ_ONLY_FIELDS = {
  id: ReadOnlyText,
  created_at: ReadOnlyText,
  updated_at: ReadOnlyText,
  warnings: Type.Optional(Type.Array(Type.String({ maxLength: 2_000 }), { maxItems: 10, readOnly: true })),
};
export const CommentUpdate = Type.Optional(orNull(CommentShape));

const Time = Type.String({ format: "date-time" });
export const ROUTE_VIEW = {
  domain: DomainShape,
  comment: Type.Optional(CommentShape),
  created_at: Time,
  updated_at: Time,
  warnings: Type.Optional(
    Type.Array(Type.String(), { description: "In the answer to a write: what is allowed and seldom meant." }),
  ),
};

export type DomainOutcome =
  | { readonly kind: "domain"; readonly domain: string }
  | { readonly kind: "fault"; readonly fault: FieldFault };

/** The one spelling of the domain of a forwarder or stub zone. */
export function forwardDomain(text: string): DomainOutcome {
  const outcome = fullName(text);
  if (outcome.kind === "fault") return fault(outcome.detail);
  if (outcome.text === ".")
    return fault("must not be the root: what nothing else matches is the default forwarder's, at /forwarders/default");
  if (outcome.text.startsWith("*.")) return fault(`must be without the asterisk: names below a domain belong to it`);
  return { kind: "domain", domain: outcome.text };
}

function fault(detail: string): DomainOutcome {
  return { kind: "fault", fault: { pointer: "/domain", detail } };
}

/** A stored name in wire form. */
export function domainWire(domain: string): Uint8Array {
  const outcome = anyFullName(domain);
  if (outcome.kind === "fault") throw new Error(`the stored domain ${JSON.stringify(domain)} is no name`);
  return outcome.wire;
}

/** Faults of upstreams that are this node itself: what it forwards there would come back to it. */
export function ownSocketFaults(pointer: string, texts: readonly string[], isOwn: IsOwnSocket): readonly FieldFault[] {
  return texts.flatMap((text, index) => {
    const parsed = parseUpstream(text);
    if (parsed.kind === "fault") return [];
    const address = ipFromText(parsed.upstream.host);
    if (address === undefined || !isOwn(address, parsed.upstream.port)) return [];
    return [{ pointer: `${pointer}/${index}`, detail: "is an address that this node itself answers on" }];
  });
}

type RouteBody = { readonly domain: string; readonly comment?: string };

/** As the API shows it. */
export function routeView(body: RouteBody, { createdAt, updatedAt }: ViewTimes): Record<string, unknown> {
  return { ...body, created_at: createdAt, updated_at: updatedAt };
}

/** Throws `invalid_request` where an update would change what it cannot. */
export function refuseReadOnly(view: Record<string, unknown>, given: Readonly<Record<string, unknown>>): void {
  refuseFaults(readOnlyFaults(view, given, ["id", "created_at", "updated_at"]));
}

/** The body with its domain in the one spelling, and its comment, null for none. Throws `invalid_request` with every fault. */
export function completeRoute<B extends RouteBody>(
  body: B,
  comment: string | null | undefined,
  serverFaults: readonly FieldFault[],
): B {
  const domain = forwardDomain(body.domain);
  refuseFaults([...(domain.kind === "fault" ? [domain.fault] : []), ...serverFaults]);
  const whole = domain.kind === "domain" ? { ...body, domain: domain.domain } : body;
  return comment === undefined || comment === null ? whole : { ...whole, comment };
}

/** What is allowed and seldom meant. */
export function domainWarnings(domain: string, isOwnZone: boolean): readonly string[] {
  return isOwnZone
    ? [`this node holds the zone ${domain} itself, and answers from it: nothing is asked elsewhere`]
    : [];
}
