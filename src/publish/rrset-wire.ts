/** Makes the wire form of an RRset as the image holds it: see RRSET in image/layout.ts. */
import { RRTYPE } from "../dns/codes.ts";
import { MAX_RRSET_BYTES, MAX_RRSET_POINTERS } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";

/** An RRset in the making. A publisher has one and fills it again for every RRset. */
export type RRsetBuffer = {
  type: number;
  ttl: number;
  count: number;
  length: number;
  pointerCount: number;
  readonly wire: Uint8Array;
  readonly pointers: Uint16Array;
};

export function createRRsetBuffer(): RRsetBuffer {
  return {
    type: 0,
    ttl: 0,
    count: 0,
    length: 0,
    pointerCount: 0,
    // One RR more than fits: a full buffer is noticed before it is written to.
    wire: new Uint8Array(MAX_RRSET_BYTES + 65_535 + 12),
    pointers: new Uint16Array(MAX_RRSET_POINTERS + 2),
  };
}

export function startRRset(buffer: RRsetBuffer, type: number, ttl: number): void {
  buffer.type = type;
  buffer.ttl = ttl;
  buffer.count = 0;
  buffer.length = 0;
  buffer.pointerCount = 0;
}

export type AddOutcome = "added" | "duplicate" | "full";

/**
 * Adds an RR to the RRset of a name whose part below the apex is `ownerLength` bytes long in wire form. `rdata` is
 * uncompressed; names in it that lie at or below the apex are cut there and end with a pointer to it. An equal RR is in
 * the set already: "duplicate" (RFC 2181 section 5). The set would not fit into a message: "full".
 */
export function addRdata(
  buffer: RRsetBuffer,
  rdata: Uint8Array,
  rdataLength: number,
  apex: NameKey,
  ownerLength: number,
): AddOutcome {
  const { wire, type, ttl } = buffer;
  const start = buffer.length;
  const pointersBefore = buffer.pointerCount;
  wire[start] = 0xc0;
  wire[start + 1] = 12;
  wire[start + 2] = type >>> 8;
  wire[start + 3] = type & 0xff;
  wire[start + 4] = 0;
  wire[start + 5] = 1;
  wire[start + 6] = ttl >>> 24;
  wire[start + 7] = (ttl >>> 16) & 0xff;
  wire[start + 8] = (ttl >>> 8) & 0xff;
  wire[start + 9] = ttl & 0xff;
  const end = putRdata(buffer, start + 12, rdata, rdataLength, apex, ownerLength);
  wire[start + 10] = (end - start - 12) >>> 8;
  wire[start + 11] = (end - start - 12) & 0xff;
  if (isDuplicate(buffer, start, end)) {
    buffer.pointerCount = pointersBefore;
    return "duplicate";
  }
  if (end > MAX_RRSET_BYTES || buffer.pointerCount > MAX_RRSET_POINTERS) {
    buffer.pointerCount = pointersBefore;
    return "full";
  }
  buffer.length = end;
  buffer.count++;
  return "added";
}

/** Types whose rdata names may be compressed (RFC 3597 section 4): bytes before the first name, number of names. */
function compressibleNames(type: number): readonly [before: number, names: number] {
  switch (type) {
    case RRTYPE.NS:
    case RRTYPE.CNAME:
    case RRTYPE.PTR:
      return [0, 1];
    case RRTYPE.MX:
      return [2, 1];
    case RRTYPE.SOA:
      return [0, 2];
    default:
      return [0, 0];
  }
}

function putRdata(
  buffer: RRsetBuffer,
  at: number,
  rdata: Uint8Array,
  rdataLength: number,
  apex: NameKey,
  ownerLength: number,
): number {
  const { wire } = buffer;
  const [before, names] = compressibleNames(buffer.type);
  let from = 0;
  let to = at;
  while (from < before) wire[to++] = rdata[from++]!;
  for (let name = 0; name < names; name++) {
    const end = nameEnd(rdata, from);
    const cut = apex.length === 0 ? end : apexIn(rdata, from, end, apex);
    while (from < cut) wire[to++] = rdata[from++]!;
    if (cut === end) continue;
    buffer.pointers[buffer.pointerCount++] = to;
    wire[to++] = 0xc0 | ((12 + ownerLength) >>> 8);
    wire[to++] = (12 + ownerLength) & 0xff;
    from = end;
  }
  while (from < rdataLength) wire[to++] = rdata[from++]!;
  return to;
}

function nameEnd(rdata: Uint8Array, at: number): number {
  let end = at;
  while (rdata[end] !== 0) end += rdata[end]! + 1;
  return end + 1;
}

/** Where the apex begins in the name rdata[at, end); `end` where the name is not at or below it. */
function apexIn(rdata: Uint8Array, at: number, end: number, apex: NameKey): number {
  const wanted = end - 1 - apex.length;
  let label = at;
  while (label < wanted) label += rdata[label]! + 1;
  if (label !== wanted || wanted < at) return end;
  for (let index = 0; index < apex.length; index++) {
    if (lowerByte(rdata[wanted + index]!) !== apex.lower[index]) return end;
  }
  return wanted;
}

function lowerByte(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte + 32 : byte;
}

/** Compares the RR in [start, end) with those before it: names without regard to case, everything else exactly. */
function isDuplicate(buffer: RRsetBuffer, start: number, end: number): boolean {
  const { wire } = buffer;
  const [before, names] = compressibleNames(buffer.type);
  const exactUpTo = names === 0 ? end - start : 12 + before;
  for (let other = 0; other < start; ) {
    const otherEnd = other + 12 + ((wire[other + 10]! << 8) | wire[other + 11]!);
    if (otherEnd - other === end - start && equalFrom(wire, other, start, end - start, exactUpTo)) return true;
    other = otherEnd;
  }
  return false;
}

function equalFrom(wire: Uint8Array, a: number, b: number, length: number, exactUpTo: number): boolean {
  for (let index = 10; index < length; index++) {
    const left = wire[a + index]!;
    const right = wire[b + index]!;
    if (left === right) continue;
    if (index < exactUpTo || lowerByte(left) !== lowerByte(right)) return false;
  }
  return true;
}
