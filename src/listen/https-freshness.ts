/** For how long an answer may be kept by a cache of HTTP (RFC 8484 section 5.1). */
import { RRTYPE } from "../dns/codes.ts";

const HEADER_BYTES = 12;
/** RFC 2181 section 8: a TTL with the uppermost bit counts as none. */
const TTL_MAX = 0x7fffffff;

/**
 * Seconds: the least TTL of the answer section; without answers that of a negative answer by its SOA (RFC 2308 section 5).
 * 0 where neither says anything. `answer` is a message that this program has made.
 */
export function freshSeconds(answer: Uint8Array): number {
  const view = new DataView(answer.buffer, answer.byteOffset, answer.byteLength);
  let at = HEADER_BYTES;
  for (let left = view.getUint16(4); left > 0; left--) at = behindName(answer, at) + 4;
  const answers = view.getUint16(6);
  const authorities = view.getUint16(8);
  let least = -1;
  for (let record = 0; record < answers + authorities; record++) {
    at = behindName(answer, at);
    if (at + 10 > answer.length) return 0;
    const type = view.getUint16(at);
    const ttl = ttlAt(view, at + 4);
    const end = at + 10 + view.getUint16(at + 8);
    if (end > answer.length) return 0;
    if (record < answers) least = least < 0 ? ttl : Math.min(least, ttl);
    else if (answers > 0) break;
    else if (type === RRTYPE.SOA) return Math.min(ttl, ttlAt(view, end - 4));
    at = end;
  }
  return Math.max(least, 0);
}

function ttlAt(view: DataView, at: number): number {
  const ttl = view.getUint32(at);
  return ttl > TTL_MAX ? 0 : ttl;
}

/** The offset behind a name that may end in a pointer. */
function behindName(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const size = bytes[at]!;
    if (size === 0) return at + 1;
    if (size >= 0xc0) return at + 2;
    at += size + 1;
  }
  return at;
}
