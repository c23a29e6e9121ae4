/** Stub zones: names at and below a domain are resolved from its own name servers on. */
import { type Static, Type } from "typebox";
import {
  CommentUpdate,
  DomainShape,
  forwardDomain,
  ownSocketFaults,
  READ_ONLY_FIELDS,
  ROUTE_VIEW,
} from "./forward-domain.ts";
import * as limits from "./limits.ts";
import type { StubZoneBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { refuseFaults } from "./refusal.ts";
import { hintFaults, type IsOwnSocket } from "./upstreams.ts";

const HintsShape = Type.Array(
  Type.String({ minLength: 1, maxLength: limits.UPSTREAM_TEXT_MAX, examples: ["192.0.2.53:53"] }),
  {
    minItems: 1,
    maxItems: limits.UPSTREAMS_MAX,
    description:
      "Servers of the zone, which are asked without recursion and whose referrals below the domain are followed: `host:port`, IPv6 addresses in brackets.",
  },
);

export const StubZoneCreate = Type.Object(
  { domain: DomainShape, hints: HintsShape, comment: CommentUpdate },
  {
    additionalProperties: false,
    examples: [{ domain: "partner.example.", hints: ["192.0.2.53:53"], comment: "until the move" }],
  },
);
export type StubZoneCreate = Static<typeof StubZoneCreate>;

export const StubZoneUpdate = Type.Object(
  {
    domain: Type.Optional(DomainShape),
    hints: Type.Optional(HintsShape),
    comment: CommentUpdate,
    ...READ_ONLY_FIELDS,
  },
  { additionalProperties: false, examples: [{ hints: ["192.0.2.53:53"] }] },
);
export type StubZoneUpdate = Static<typeof StubZoneUpdate>;

export const StubZoneView = Type.Object({
  id: Type.String({ maxLength: limits.ID_MAX, examples: ["stb_abcdefghij2345672345"] }),
  hints: HintsShape,
  ...ROUTE_VIEW,
});

export function stubZoneView(body: StubZoneBody, times: ViewTimes): Record<string, unknown> {
  return { ...body, created_at: times.createdAt, updated_at: times.updatedAt };
}

/** The body of a new stub zone. Throws `invalid_request` with every fault. */
export function stubZoneFromCreate(given: StubZoneCreate, id: string, isOwn: IsOwnSocket): StubZoneBody {
  const { domain, hints, comment } = given;
  const body = { id, domain, hints };
  return complete(comment === undefined || comment === null ? body : { ...body, comment }, isOwn);
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function stubZoneWithUpdate(
  current: StubZoneBody,
  given: StubZoneUpdate,
  times: ViewTimes,
  isOwn: IsOwnSocket,
): StubZoneBody {
  refuseFaults(readOnlyFaults(stubZoneView(current, times), given, ["id", "created_at", "updated_at"]));
  const body = { id: current.id, domain: given.domain ?? current.domain, hints: given.hints ?? current.hints };
  const comment = given.comment === undefined ? current.comment : (given.comment ?? undefined);
  // Servers that stay are not looked at: where this node's addresses have changed, the rest can still be changed.
  const isRefused = given.hints === undefined ? () => false : isOwn;
  return complete(comment === undefined ? body : { ...body, comment }, isRefused);
}

function complete(body: StubZoneBody, isOwn: IsOwnSocket): StubZoneBody {
  const domain = forwardDomain(body.domain);
  refuseFaults([
    ...(domain.kind === "fault" ? [domain.fault] : []),
    ...hintFaults("/hints", body.hints),
    ...ownSocketFaults("/hints", body.hints, isOwn),
  ]);
  return domain.kind === "domain" ? { ...body, domain: domain.domain } : body;
}
