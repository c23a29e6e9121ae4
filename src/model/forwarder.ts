/** Conditional forwarders: names at and below a domain are asked of servers of its own. */
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
import type { ForwarderBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { refuseFaults } from "./refusal.ts";
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

export function forwarderView(body: ForwarderBody, times: ViewTimes): Record<string, unknown> {
  return { ...body, created_at: times.createdAt, updated_at: times.updatedAt };
}

/** The body of a new forwarder. Throws `invalid_request` with every fault. */
export function forwarderFromCreate(given: ForwarderCreate, id: string, isOwn: IsOwnSocket): ForwarderBody {
  const { domain, upstreams, comment } = given;
  const body = { id, domain, upstreams };
  return complete(comment === undefined || comment === null ? body : { ...body, comment }, isOwn);
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function forwarderWithUpdate(
  current: ForwarderBody,
  given: ForwarderUpdate,
  times: ViewTimes,
  isOwn: IsOwnSocket,
): ForwarderBody {
  refuseFaults(readOnlyFaults(forwarderView(current, times), given, ["id", "created_at", "updated_at"]));
  const body = {
    id: current.id,
    domain: given.domain ?? current.domain,
    upstreams: given.upstreams ?? current.upstreams,
  };
  const comment = given.comment === undefined ? current.comment : (given.comment ?? undefined);
  // Servers that stay are not looked at: where this node's addresses have changed, the rest can still be changed.
  const isRefused = given.upstreams === undefined ? () => false : isOwn;
  return complete(comment === undefined ? body : { ...body, comment }, isRefused);
}

function complete(body: ForwarderBody, isOwn: IsOwnSocket): ForwarderBody {
  const domain = forwardDomain(body.domain);
  refuseFaults([
    ...(domain.kind === "fault" ? [domain.fault] : []),
    ...upstreamFaults("/upstreams", body.upstreams),
    ...ownSocketFaults("/upstreams", body.upstreams, isOwn),
  ]);
  return domain.kind === "domain" ? { ...body, domain: domain.domain } : body;
}
