/** Stub zones: names at and below a domain are resolved from its own name servers on. */
import { type Static, Type } from "typebox";
import {
  CommentUpdate,
  completeRoute,
  DomainShape,
  ownSocketFaults,
  READ_ONLY_FIELDS,
  ROUTE_VIEW,
  refuseReadOnly,
  routeView,
} from "./forward-domain.ts";
import * as limits from "./limits.ts";
import type { StubZoneBody } from "./objects.ts";
import type { ViewTimes } from "./record.ts";
import type { FieldFault } from "./refusal.ts";
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

/** The body of a new stub zone. Throws `invalid_request` with every fault. */
export function stubZoneFromCreate(given: StubZoneCreate, id: string, isOwn: IsOwnSocket): StubZoneBody {
  const { domain, hints, comment } = given;
  return completeRoute({ id, domain, hints }, comment, faultsOf(hints, isOwn));
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function stubZoneWithUpdate(
  current: StubZoneBody,
  given: StubZoneUpdate,
  times: ViewTimes,
  isOwn: IsOwnSocket,
): StubZoneBody {
  refuseReadOnly(routeView(current, times), given);
  const { domain = current.domain, hints = current.hints, comment = current.comment } = given;
  // Servers that stay are not looked at: where this node's addresses have changed, the rest can still be changed.
  const isRefused = given.hints === undefined ? () => false : isOwn;
  return completeRoute({ id: current.id, domain, hints }, comment, faultsOf(hints, isRefused));
}

function faultsOf(hints: readonly string[], isOwn: IsOwnSocket): readonly FieldFault[] {
  return [...hintFaults("/hints", hints), ...ownSocketFaults("/hints", hints, isOwn)];
}
