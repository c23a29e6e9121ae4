/** Refusals as RFC 9457 problem documents: the one table from code to HTTP status. */
import type { RefusalCode } from "../model/refusal.ts";
import { Refusal } from "../model/refusal.ts";

type Row = readonly [status: number, title: string];

export const PROBLEMS: { readonly [Code in RefusalCode]: Row } = {
  invalid_request: [400, "The request is not valid"],
  not_authenticated: [401, "Sign-in is needed"],
  rate_limited: [429, "Too many requests"],
  role_insufficient: [403, "The role does not permit this"],
  zone_not_permitted: [403, "The token does not permit writes to this zone"],
  csrf_header_missing: [403, "The header X-SVC-CSRF is missing"],
  not_found: [404, "There is no such thing"],
  method_not_allowed: [405, "The method is not allowed here"],
  conflict: [409, "It collides with what is there"],
  deletion_locked: [409, "The deletion lock is set"],
  record_protected: [409, "The record is protected"],
  name_owned: [409, "Another record owns the name"],
  version_mismatch: [409, "The version is another one"],
  cluster_key_missing: [409, "The node has no cluster key"],
  merge_needed: [409, "The node holds data of its own"],
  node_alive: [409, "The node is alive"],
  script_checks_disabled: [409, "Script checks are not enabled on this node"],
  precondition_failed: [412, "The object has changed meanwhile"],
  body_too_large: [413, "The body is too large"],
  media_type_unsupported: [415, "The media type is not supported"],
  bulk_cap_exceeded: [422, "The batch is larger than the cap"],
  upstream_failed: [502, "Another system failed"],
  clock_skew: [503, "The clock of this node is off"],
  not_ready: [503, "The node cannot take this now"],
  internal_error: [500, "The node failed"],
};

export type Problem = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly document: Readonly<Record<string, unknown>>;
};

export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

/** The problem document of a refusal; `retry_after` among its members becomes the header Retry-After, in seconds. */
export function problemOf(refusal: Refusal): Problem {
  const [status, title] = PROBLEMS[refusal.code];
  const { retry_after, allow, ...members } = refusal.members;
  return {
    status,
    headers: {
      ...(retry_after === undefined ? {} : { "retry-after": String(retry_after) }),
      ...(allow === undefined ? {} : { allow: String(allow) }),
      // RFC 9110 section 15.5.2 asks for a challenge with every 401.
      ...(status === 401 ? { "www-authenticate": 'Bearer realm="svc"' } : {}),
    },
    document: {
      ...members,
      type: `urn:svc:problem:${refusal.code}`,
      title,
      status,
      detail: refusal.message,
      code: refusal.code,
      errors: refusal.faults,
    },
  };
}

/** What Fastify itself refuses, as one of ours; undefined: it is a fault of this program. */
export function refusalOf(thrown: unknown): Refusal | undefined {
  if (thrown instanceof Refusal) return thrown;
  if (!(thrown instanceof Error) || !("statusCode" in thrown)) return undefined;
  switch (thrown.statusCode) {
    case 400:
    case 414:
    case 431:
      return new Refusal("invalid_request", "the request line or a header is not valid");
    case 404:
      return new Refusal("not_found", "there is nothing at this path");
    case 413:
      return new Refusal("body_too_large", "the body is too large");
    case 415:
      return new Refusal("media_type_unsupported", "the header Content-Type is not valid");
    case 503:
      return new Refusal("not_ready", "the node is stopping", [], { retry_after: 1 });
    default:
      return undefined;
  }
}
