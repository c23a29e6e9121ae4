/** CNAME and ALIAS own a name outright; all other types may stand beside each other (RFC 1034 section 3.6.2). */
import type { RecordType } from "./objects.ts";

const APEX = "@";

export const OWNERS: readonly RecordType[] = ["CNAME", "ALIAS"];

export function ownsName(type: RecordType): boolean {
  return OWNERS.includes(type);
}

/**
 * The type at the name that speaks against a record of `type` there; undefined where none does. `name` is relative to the
 * zone: NS stands beside an ALIAS at the apex, which every zone needs both of; the SOA is no record here.
 */
export function ownershipConflict(
  type: RecordType,
  otherTypes: readonly RecordType[],
  name: string,
): RecordType | undefined {
  return otherTypes.find((other) => excludes(type, other, name));
}

/** Whether records of these types cannot both be in effect at that name. */
export function excludes(left: RecordType, right: RecordType, name: string): boolean {
  if (left === right || !(ownsName(left) || ownsName(right))) return false;
  const isAliasAndNs = (left === "ALIAS" && right === "NS") || (left === "NS" && right === "ALIAS");
  return !(name === APEX && isAliasAndNs);
}
