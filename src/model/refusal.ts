/** Why a request is refused: one code a cause, each with the fields at fault. The API maps codes to HTTP statuses. */
import { FAULTS_MAX } from "./limits.ts";

/** What is wrong with one field. `pointer` is an RFC 6901 pointer into the body ("/values/0/value"), or "?limit" for a query parameter. */
export type FieldFault = { readonly pointer: string; readonly detail: string };

export const REFUSAL_CODES = [
  "invalid_request",
  "not_authenticated",
  "rate_limited",
  "role_insufficient",
  "zone_not_permitted",
  "csrf_header_missing",
  "not_found",
  "conflict",
  "deletion_locked",
  "record_protected",
  "name_owned",
  "version_mismatch",
  "cluster_key_missing",
  "merge_needed",
  "node_alive",
  "script_checks_disabled",
  "precondition_failed",
  "body_too_large",
  "media_type_unsupported",
  "bulk_cap_exceeded",
  "clock_skew",
  "method_not_allowed",
  "not_ready",
  "upstream_failed",
  "internal_error",
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** Thrown by commands and rules. `detail` is one sentence for a person and never holds a secret. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: RefusalCode;
  readonly faults: readonly FieldFault[];
  /** Further members of the problem document, for example `{ "record_id": "rec_..." }` of what it collides with. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(
    code: RefusalCode,
    detail: string,
    faults: readonly FieldFault[] = [],
    members: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
    this.code = code;
    this.faults = faults;
    this.members = members;
  }
}

/** Throws `invalid_request` when there are faults, with at most FAULTS_MAX of them. */
export function refuseFaults(faults: readonly FieldFault[]): void {
  const first = faults[0];
  if (first === undefined) return;
  throw new Refusal("invalid_request", `${first.pointer}: ${first.detail}`, faults.slice(0, FAULTS_MAX));
}
