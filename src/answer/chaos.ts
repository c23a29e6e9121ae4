/** Class CH: who answers here (RFC 4892). Everything else of that class is refused. */
import { CLASS, RCODE, RRTYPE } from "../dns/codes.ts";
import type { Query } from "./query.ts";

const ID_SERVER = "\x02id\x06server";
const HOSTNAME_BIND = "\x08hostname\x04bind";

/** Answers `id.server` and `hostname.bind` with the node's id, where it is configured. */
export function answerChaos(query: Query, nodeId: Uint8Array): void {
  const isText = query.type === RRTYPE.TXT || query.type === RRTYPE.ANY;
  if (nodeId.length === 0 || !isText || !(isName(query, ID_SERVER) || isName(query, HOSTNAME_BIND))) {
    query.rcode = RCODE.REFUSED;
    return;
  }
  const { bytes } = query;
  const fixed = [0xc0, 12, 0, RRTYPE.TXT, 0, CLASS.CH, 0, 0, 0, 0, 0, nodeId.length + 1, nodeId.length];
  for (const byte of fixed) bytes[query.at++] = byte;
  for (const byte of nodeId) bytes[query.at++] = byte;
  query.answers = 1;
  query.authoritative = true;
}

function isName({ name }: Query, wanted: string): boolean {
  if (name.length !== wanted.length) return false;
  for (let index = 0; index < wanted.length; index++) {
    if (name.lower[index] !== wanted.charCodeAt(index)) return false;
  }
  return true;
}
