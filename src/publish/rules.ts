/** Rules between the RRsets of one name. */
import { RRTYPE } from "../dns/codes.ts";
import { NODE, RRSET, UNIT_WORDS } from "../image/layout.ts";
import type { ImageWriter } from "../image/writer-state.ts";

/**
 * What speaks against an RRset of `count` RRs beside those that the node has: CNAME and ALIAS own a name (RFC 1034 section
 * 3.6.2), but for SOA and NS beside an ALIAS at the apex, and hold one target. Undefined where nothing does. Node 0 is a name
 * that does not exist yet.
 */
export function nodeConflict(
  writer: ImageWriter,
  node: number,
  type: number,
  count: number,
  isApex: boolean,
): string | undefined {
  if (type === RRTYPE.CNAME && isApex) return "CNAME at the apex of a zone";
  if (count > 1 && (type === RRTYPE.CNAME || type === RRTYPE.ALIAS))
    return `several ${ownerOf(type)} records at one name`;
  const { words } = writer.view;
  let rrset = node === 0 ? 0 : words[node * UNIT_WORDS + NODE.RRSETS]!;
  for (; rrset !== 0; rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!) {
    const other = words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff;
    if (other === type) continue;
    const owning = ownsName(type) ? type : ownsName(other) ? other : 0;
    if (owning === 0) continue;
    const beside = owning === type ? other : type;
    if (isApex && owning === RRTYPE.ALIAS && (beside === RRTYPE.SOA || beside === RRTYPE.NS)) continue;
    return `${ownerOf(owning)} beside other records of the same name`;
  }
  return undefined;
}

function ownsName(type: number): boolean {
  return type === RRTYPE.CNAME || type === RRTYPE.ALIAS;
}

function ownerOf(type: number): string {
  return type === RRTYPE.CNAME ? "CNAME" : "ALIAS";
}
