/** Answers for names on the blocklist: they do not exist. */
import { EDE, RCODE } from "../dns/codes.ts";
import type { NameKey } from "../image/name-key.ts";
import type { Query } from "./query.ts";
import { putSuffix, suffixLength } from "./records.ts";
import { offsetOf, type Spelled } from "./spelled.ts";
import { type AnswerState, STEP, type Step, truncate } from "./state.ts";

/** Clients ask again after a minute, so that a name that was taken off the list is not missed for long. */
const SECONDS = [0, 0, 0, 60] as const;
/**
 * The SOA of negative answers (RFC 2308 section 3) behind its owner, which is the listed name. `localhost.` and
 * `nobody.invalid.` are nobody's (RFC 6761).
 */
const SOA = Uint8Array.from([
  ...[0, 6, 0, 1],
  ...SECONDS,
  ...[0, 47],
  ...[9, ...Buffer.from("localhost"), 0],
  ...[6, ...Buffer.from("nobody"), 7, ...Buffer.from("invalid"), 0],
  // Serial, refresh, retry, expire, and the minimum.
  ...[0, 0, 0, 1, 0, 0, 14, 16, 0, 0, 2, 88, 0, 1, 81, 128],
  ...SECONDS,
]);

/** NXDOMAIN for `name`; the listed name is its suffix at `label`. */
export function putBlocked(state: AnswerState, name: Spelled, label: number): Step {
  const { query } = state;
  noteBlocked(state);
  query.rcode = RCODE.NXDOMAIN;
  const owner = offsetOf(name, label);
  const ownerBytes = owner >= 0 ? 2 : suffixLength(name.key, label);
  if (query.at + ownerBytes + SOA.length > query.limit) return truncate(state);
  putOwner(query, name.key, label, owner);
  for (let index = 0; index < SOA.length; index++) query.bytes[query.at++] = SOA[index]!;
  query.authorities++;
  return STEP.ANSWERED;
}

/** Notes that the blocklist had a part in the answer. */
export function noteBlocked(state: AnswerState): void {
  state.isBlocked = true;
  state.query.extendedError = EDE.BLOCKED;
}

function putOwner(query: Query, key: NameKey, label: number, owner: number): void {
  if (owner < 0) {
    putSuffix(query, key, label);
    return;
  }
  query.data.setUint16(query.at, 0xc000 | owner);
  query.at += 2;
}
