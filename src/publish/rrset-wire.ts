/** Makes the wire form of an RRset as the image holds it: see RRSET in image/layout.ts. */
import { RRTYPE } from "../dns/codes.ts";
import { LOWER } from "../dns/name.ts";
import {
  MAX_RRSET_BYTES,
  MAX_RRSET_POINTERS,
  mixHash,
  POINTER,
  pointerCount,
  RRSET,
  UNIT_BYTES,
  UNIT_WORDS,
} from "../image/layout.ts";
import { createNameKey, isAsterisk, type NameKey, readNameKey } from "../image/name-key.ts";
import type { RRsetTail } from "../image/rrset-block.ts";
import type { RRsetSelection, SelectionCandidate } from "../image/selection.ts";
import type { ImageView } from "../image/view.ts";
import type { SelectionTable } from "./selection-table.ts";

/** The most bytes of a tail. Where it is longer, the answer is put together when it is asked for. */
export const TAIL_BYTES_MAX = 512;

/** An RRset in the making. A publisher has one and fills it again for every RRset. */
export type RRsetBuffer = {
  type: number;
  ttl: number;
  count: number;
  length: number;
  pointerCount: number;
  readonly wire: Uint8Array;
  readonly pointers: Uint8Array;
  readonly tail: RRsetTail;
  /** Of an RRset that is selected: names in its rdata are written out. */
  selection: (RRsetSelection & { readonly candidates: SelectionCandidate[] }) | undefined;
  /** Whose RRset it is, where that is not told from outside. */
  readonly owner: NameKey;
  /** A name of rdata in hand. */
  readonly target: NameKey;
  /** Where RRs with a hash begin; those before `hashed` are in it. */
  readonly byHash: Map<number, number[]>;
  hashed: number;
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
    pointers: new Uint8Array((MAX_RRSET_POINTERS + 2) * POINTER.BYTES),
    tail: { bytes: new Uint8Array(TAIL_BYTES_MAX), length: -1, count: 0 },
    selection: undefined,
    owner: createNameKey(),
    target: createNameKey(),
    byHash: new Map(),
    hashed: 0,
  };
}

export function startRRset(buffer: RRsetBuffer, type: number, ttl: number): void {
  buffer.type = type;
  buffer.ttl = ttl;
  buffer.count = 0;
  buffer.length = 0;
  buffer.pointerCount = 0;
  buffer.tail.length = -1;
  buffer.selection = undefined;
  if (buffer.hashed > 0) buffer.byHash.clear();
  buffer.hashed = 0;
}

/** What an RRset holds: the RRs as uncompressed rdata and, where it is selected, the table with a choice for each of them. */
export type RRsetContent = { readonly rdatas: readonly Uint8Array[]; readonly table?: SelectionTable | undefined };

/** Fills the buffer with a whole RRset, each RR once. False where it would not fit into a message. */
export function fillRRset(
  buffer: RRsetBuffer,
  type: number,
  ttl: number,
  { rdatas, table }: RRsetContent,
  owner: RRsetOwner,
): boolean {
  startRRset(buffer, type, ttl);
  if (table === undefined) {
    for (const rdata of rdatas) if (addRdata(buffer, rdata, rdata.length, owner) === "full") return false;
    return true;
  }
  const { method, flags, affinitySeconds, preferred } = table;
  const candidates: SelectionCandidate[] = [];
  buffer.selection = { method, flags, affinitySeconds, preferred, candidates };
  for (const [index, rdata] of rdatas.entries()) {
    const offset = buffer.length;
    const outcome = addRdata(buffer, rdata, rdata.length, owner);
    if (outcome === "full") return false;
    const { health, region, weight, hash } = table.choices[index]!;
    if (outcome === "added") candidates.push({ offset, length: buffer.length - offset, health, region, weight, hash });
  }
  return true;
}

/** Fills the buffer from a static RRset of the image, its tail aside. */
export function loadRRset(buffer: RRsetBuffer, { words, bytes }: ImageView, rrset: number): void {
  const at = rrset * UNIT_WORDS;
  const typeWord = words[at + RRSET.TYPE]!;
  startRRset(buffer, typeWord & 0xffff, words[at + RRSET.TTL]!);
  buffer.count = words[at + RRSET.SIZE]! & 0xffff;
  buffer.length = words[at + RRSET.SIZE]! >>> 16;
  buffer.pointerCount = pointerCount(typeWord);
  const wire = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  buffer.wire.set(bytes.subarray(wire, wire + buffer.length));
  const entries = wire + buffer.length;
  buffer.pointers.set(bytes.subarray(entries, entries + buffer.pointerCount * POINTER.BYTES));
}

export type AddOutcome = "added" | "duplicate" | "full";

/** Whose RRset it is: the owner's name, the apex of its zone, and the zone's incarnation. */
export type RRsetOwner = { readonly owner: NameKey; readonly apex: NameKey; readonly incarnation: number };

/**
 * Adds an RR to the RRset in hand. `rdata` is uncompressed; a name in it that lies in the zone is cut where it has the rest
 * in common with the owner. An equal RR is in the set already: "duplicate" (RFC 2181 section 5). The set would not fit
 * into a message: "full".
 */
export function addRdata(buffer: RRsetBuffer, rdata: Uint8Array, rdataLength: number, owner: RRsetOwner): AddOutcome {
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
  const end = putRdata(buffer, start + 12, rdata, rdataLength, owner);
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

const WRITTEN_OUT = [0, 0] as const;

function putRdata(buffer: RRsetBuffer, at: number, rdata: Uint8Array, rdataLength: number, owner: RRsetOwner): number {
  const { wire, target } = buffer;
  // Which of the RRs an answer has is not known here, nor at what place in it.
  const [before, names] = buffer.selection === undefined ? compressibleNames(buffer.type) : WRITTEN_OUT;
  let from = 0;
  let to = at;
  while (from < before) wire[to++] = rdata[from++]!;
  for (let name = 0; name < names; name++) {
    const end = readNameKey(target, rdata, from, rdataLength, owner.apex.hashes[owner.apex.labels]!);
    const depth = commonDepth(target, owner);
    const label = target.labels - owner.apex.labels - depth;
    const cut = depth < 0 ? end : from + target.offsets[label]!;
    while (from < cut) wire[to++] = rdata[from++]!;
    if (cut === end) continue;
    const suffix = owner.owner.offsets[owner.owner.labels - owner.apex.labels - depth]!;
    notePointer(buffer, to, depth, mixHash(target.hashes[0]!, owner.incarnation));
    wire[to++] = 0xc0 | ((12 + suffix) >>> 8);
    wire[to++] = (12 + suffix) & 0xff;
    from = end;
  }
  while (from < rdataLength) wire[to++] = rdata[from++]!;
  return to;
}

function notePointer(buffer: RRsetBuffer, offset: number, depth: number, hash: number): void {
  const entry = new DataView(buffer.pointers.buffer, buffer.pointerCount * POINTER.BYTES, POINTER.BYTES);
  entry.setUint16(POINTER.OFFSET, offset);
  entry.setUint8(POINTER.DEPTH, depth);
  entry.setInt32(POINTER.HASH, hash);
  buffer.pointerCount++;
}

/**
 * How many labels above the apex a name has in common with the owner, counted from the apex; -1 where it does not lie in
 * the zone, or where nothing but the root is common. A wildcard's own label is in no question.
 */
function commonDepth(target: NameKey, { owner, apex }: RRsetOwner): number {
  if (target.labels < apex.labels) return -1;
  for (let depth = -apex.labels; ; depth++) {
    const own = owner.labels - apex.labels - depth - 1;
    const other = target.labels - apex.labels - depth - 1;
    if (own < 0 || other < 0 || isAsterisk(owner, own) || !sameLabel(owner, own, target, other)) {
      return depth < 0 || apex.labels + depth === 0 ? -1 : depth;
    }
  }
}

function sameLabel(a: NameKey, aLabel: number, b: NameKey, bLabel: number): boolean {
  const length = a.lower[a.offsets[aLabel]!]!;
  for (let index = 0; index <= length; index++) {
    if (a.lower[a.offsets[aLabel]! + index] !== b.lower[b.offsets[bLabel]! + index]) return false;
  }
  return true;
}

/** From this many RRs on, a set is searched by the hashes of its RRs. */
const HASHED_FROM = 16;

/** Compares the RR in [start, end) with those before it: names without regard to case, everything else exactly. */
function isDuplicate(buffer: RRsetBuffer, start: number, end: number): boolean {
  const { wire, count } = buffer;
  const [before, names] = compressibleNames(buffer.type);
  const exactUpTo = names === 0 ? end - start : 12 + before;
  if (count >= HASHED_FROM) return isHashedDuplicate(buffer, start, end, exactUpTo);
  for (let other = 0; other < start; other = recordEnd(wire, other)) {
    if (isSameRecord(wire, other, start, end, exactUpTo)) return true;
  }
  return false;
}

function isHashedDuplicate(buffer: RRsetBuffer, start: number, end: number, exactUpTo: number): boolean {
  const { wire, byHash } = buffer;
  for (; buffer.hashed < start; buffer.hashed = recordEnd(wire, buffer.hashed)) {
    const hash = recordHash(wire, buffer.hashed, recordEnd(wire, buffer.hashed));
    const same = byHash.get(hash);
    if (same === undefined) byHash.set(hash, [buffer.hashed]);
    else same.push(buffer.hashed);
  }
  const candidates = byHash.get(recordHash(wire, start, end)) ?? [];
  return candidates.some((other) => isSameRecord(wire, other, start, end, exactUpTo));
}

function recordEnd(wire: Uint8Array, at: number): number {
  return at + 12 + ((wire[at + 10]! << 8) | wire[at + 11]!);
}

/** FNV-1a over the folded rdata: equal for RRs that are the same. */
function recordHash(wire: Uint8Array, from: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = from + 10; at < end; at++) hash = Math.imul(hash ^ LOWER[wire[at]!]!, 0x01000193);
  return hash;
}

function isSameRecord(wire: Uint8Array, other: number, start: number, end: number, exactUpTo: number): boolean {
  return recordEnd(wire, other) - other === end - start && equalFrom(wire, other, start, end - start, exactUpTo);
}

function equalFrom(wire: Uint8Array, a: number, b: number, length: number, exactUpTo: number): boolean {
  for (let index = 10; index < length; index++) {
    const left = wire[a + index]!;
    const right = wire[b + index]!;
    if (left === right) continue;
    if (index < exactUpTo || LOWER[left] !== LOWER[right]) return false;
  }
  return true;
}
