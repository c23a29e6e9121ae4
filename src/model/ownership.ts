/** CNAME and ALIAS own a name outright; all other types may stand beside each other (RFC 1034 section 3.6.2). */
import type { RecordType } from "./objects.ts";

export function ownsName(type: RecordType): boolean {
  return type === "CNAME" || type === "ALIAS";
}

/**
 * The type at the name that speaks against a record of `type` there; undefined where none does. `otherTypes` are those
 * that are stored: the SOA and the NS that the server makes by itself do not count against an ALIAS at the apex.
 */
export function ownershipConflict(type: RecordType, otherTypes: readonly RecordType[]): RecordType | undefined {
  return otherTypes.find((other) => other !== type && (ownsName(type) || ownsName(other)));
}
