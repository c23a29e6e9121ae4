/** Conditional forwarders: names at and below a domain are asked of servers of its own. */
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
import type { ForwarderBody } from "./objects.ts";
import type { ViewTimes } from "./record.ts";
import type { FieldFault } from "./refusal.ts";
import { type IsOwnSocket, upstreamFaults } from "./upstreams.ts";

const UpstreamsShape = Type.Array(
  Type.String({ minLength: 1, maxLength: limits.UPSTREAM_TEXT_MAX, examples: ["192.0.2.53:53"] }),
  {
    minItems: 1,
    maxItems: limits.UPSTREAMS_MAX,
    description:
      "Servers that are asked with recursion, the best first by what they have shown: `host` or `host:port`, IPv6 addresses in brackets, `tls://host:port#name` for DNS over TLS.",
  },
);

export const ForwarderCreate = Type.Object(
  { domain: DomainShape, upstreams: UpstreamsShape, comment: CommentUpdate },
  {
    additionalProperties: false,
    examples: [{ domain: "partner.example.", upstreams: ["192.0.2.53:53"], comment: "until the move" }],
  },
);
export type ForwarderCreate = Static<typeof ForwarderCreate>;

export const ForwarderUpdate = Type.Object(
  {
    domain: Type.Optional(DomainShape),
    upstreams: Type.Optional(UpstreamsShape),
    comment: CommentUpdate,
    ...READ_ONLY_FIELDS,
  },
  { additionalProperties: false, examples: [{ upstreams: ["192.0.2.53:53"] }] },
);
export type ForwarderUpdate = Static<typeof ForwarderUpdate>;

export const ForwarderView = Type.Object({
  id: Type.String({ maxLength: limits.ID_MAX, examples: ["fwd_abcdefghij2345672345"] }),
  upstreams: UpstreamsShape,
  ...ROUTE_VIEW,
});

/** The body of a new forwarder. Throws `invalid_request` with every fault. */
export function forwarderFromCreate(given: ForwarderCreate, id: string, isOwn: IsOwnSocket): ForwarderBody {
  const { domain, upstreams, comment } = given;
  return completeRoute({ id, domain, upstreams }, comment, faultsOf(upstreams, isOwn));
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function forwarderWithUpdate(
  current: ForwarderBody,
  given: ForwarderUpdate,
  times: ViewTimes,
  isOwn: IsOwnSocket,
): ForwarderBody {
  refuseReadOnly(routeView(current, times), given);
  const { domain = current.domain, upstreams = current.upstreams, comment = current.comment } = given;
  // Servers that stay are not looked at: where this node's addresses have changed, the rest can still be changed.
  const isRefused = given.upstreams === undefined ? () => false : isOwn;
  return completeRoute({ id: current.id, domain, upstreams }, comment, faultsOf(upstreams, isRefused));
}

function faultsOf(upstreams: readonly string[], isOwn: IsOwnSocket): readonly FieldFault[] {
  return [...upstreamFaults("/upstreams", upstreams), ...ownSocketFaults("/upstreams", upstreams, isOwn)];
}
