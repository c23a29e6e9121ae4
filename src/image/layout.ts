/**
 * The blocks of an image: which word means what. A block lies in the arena at a reference, which counts units of 16
 * bytes; reference 0 means none. Words are Int32; offsets below count words from the block's start.
 *
 * A published block never changes but for the words marked (live), each of which is one aligned Int32 store.
 */

export const UNIT_BYTES = 16;
export const UNIT_WORDS = 4;

/**
 * A node: one owner name of one zone's incarnation, with its name relative to the apex in lower-case wire form behind the
 * header. Under incarnation 0 it is a zone entry instead: the name is the zone's whole name, and RRSETS is the zone body
 * that answers now, 0 for none. Creating, activating and deleting a zone is one store there.
 */
export const NODE = {
  INCARNATION: 0,
  /** (live) First RRset of the list. */
  RRSETS: 1,
  /** (live) Bits 0 to 7: length of the name; from bit 16 on: NODE_FLAG. */
  META: 2,
  /** (live) Number of nodes directly below; only the writer reads it. */
  CHILDREN: 3,
  NAME_BYTE: 16,
} as const;

export const NODE_FLAG = {
  /** A node `*` lies directly below (RFC 4592 section 2.1.1). */
  WILDCARD_BELOW: 1 << 16,
  /** The name holds NS and is not the apex: a zone cut (RFC 9499 section 7). */
  CUT: 1 << 17,
  /** The name exists without records of its own: its node stays when its last RRset goes. Only the writer reads it. */
  KEPT: 1 << 18,
} as const;

/** The zone entries' incarnation. */
export const ZONE_ENTRY = 0;

/**
 * (live) Of a zone entry, in the place of CHILDREN: the number of the route that names at and below it take where no zone
 * of ours is as long, 0 for none. An entry goes when it has neither a body nor a route.
 */
export const ZONE_ENTRY_ROUTE = NODE.CHILDREN;

/**
 * A zone body: what one incarnation of a zone consists of besides its nodes. The overrides have one too, as if they were
 * a zone at the root, with names in full: CONTROL.OVERRIDES names it, and no zone entry does.
 */
export const ZONE = {
  INCARNATION: 0,
  /** (live) Odd while several names change together; an answer that saw it odd or changed is made again. */
  SEQUENCE: 1,
  /** (live) Number of zone cuts. */
  CUTS: 2,
  APEX: 3,
  /** (live) The SOA RRset of negative answers: owner and TTL as RFC 2308 section 3 wants them. */
  NEGATIVE_SOA: 4,
  WORDS: 5,
} as const;

/**
 * A static RRset: the RRs as they go on the wire, each owner a pointer to the question (0xC00C). A rdata name in the zone
 * ends with a pointer to the longest suffix that it has in common with the owner (in types that RFC 3597 section 4 lets
 * compress), set for a question that is the owner itself. Behind the RRs stands an entry for each such pointer: what it
 * takes to set it for another question, and to find the name. Behind those may stand a tail: the additional section of the
 * answer to a question for the owner, ready to be copied behind the RRs.
 */
export const RRSET = {
  /** (live) Next RRset of the node. */
  NEXT: 0,
  /**
   * Bits 0 to 15: type; bits 16 to 27: number of pointers; bit 28: it is selected, and a table says among what; bit 31: it
   * has a tail, and so the word is negative.
   */
  TYPE: 1,
  /** Bits 0 to 15: number of RRs; bits 16 to 31: bytes of all RRs. */
  SIZE: 2,
  TTL: 3,
  WIRE_BYTE: 16,
} as const;

/**
 * Entry of a pointer, in bytes: its offset in the RRs (u16, big-endian); the labels that the suffix it means has above the
 * apex (u8); the mixed hash of the whole name (Int32, big-endian), which leads to its node.
 */
export const POINTER = { OFFSET: 0, DEPTH: 2, HASH: 3, BYTES: 7 } as const;

/** The tail, in bytes: its length without this header (u16, big-endian), its number of RRs (u16, big-endian), its RRs. */
export const TAIL = { HEADER_BYTES: 4, FLAG: 1 << 31 } as const;

/**
 * A selected RRset: health or a policy decides for each answer which of its RRs it has. It has no pointers and no tail, all
 * names in its rdata are written out, and its RRs stand in the order of the policy. Behind them, from the next whole word
 * on, stands the table: SELECTION, then columns, each with a word for each RR in the order of the RRs. Only those columns
 * are there that the selection asks for, so that the table of a few values shares a cache line with their RRs:
 *
 * 1. Health slots of the probes, 0: not probed, and so never unhealthy.
 * 2. Unless all RRs are as long as META says, their places: bits 0 to 15 the offset among the RRs; bits 16 to 31 the bytes.
 * 3. With SELECTION_FLAG.AFFINITY, ahead of its column one word with the seconds that a client keeps its value. The column:
 *    hashes of the values, the same on every node, which client affinity is drawn by.
 * 4. METHOD.REGION and GEO_FAILOVER: numbers of the regions (regionNumber), 0 for none. METHOD.WEIGHTED: the shares, in parts
 *    of the sum over all of them; at most 2^20 each.
 *
 * Behind the columns stand the numbers of the preferred regions.
 */
export const SELECTED_FLAG = 1 << 28;

/** Words of the table of a selected RRset, in words from its start. */
export const SELECTION = {
  /**
   * Bits 0 to 3: METHOD; bits 4 to 7: SELECTION_FLAG; bits 8 to 15: bytes of each RR, 0 where they differ or are too many;
   * bits 16 to 31: number of preferred regions.
   */
  META: 0,
  /**
   * (live, written by answer threads without regard to each other; a lost write does no harm) How many answers were taken
   * from it, which rotates them. Of METHOD.LATENCY: the value answered last, as its index plus 1, 0 for none.
   */
  TURN: 1,
  /** Here the columns begin, with that of the health slots. */
  HEALTH: 2,
} as const;

export const METHOD = {
  /** No policy: all healthy values, rotated. */
  ALL: 0,
  ROUND_ROBIN: 1,
  FAILOVER: 2,
  LATENCY: 3,
  /** From here on they have a column of their own. */
  REGION: 4,
  GEO_FAILOVER: 5,
  WEIGHTED: 6,
} as const;
export type Method = (typeof METHOD)[keyof typeof METHOD];
export const METHOD_MASK = 15;

export const SELECTION_FLAG = {
  /** An answer has one value whatever the method: CNAME and ALIAS. */
  SINGLE: 1 << 4,
  AFFINITY: 1 << 5,
} as const;

/** The longest RRs that META tells the length of. */
export const EVEN_BYTES_MAX = 255;

/** Bytes of each RR where all have as many, 0 where their places tell; from the word SELECTION.META. */
export function evenBytes(meta: number): number {
  return (meta >>> 8) & EVEN_BYTES_MAX;
}

/** Where the places of `count` RRs stand, if they are there, in words from the table's start. */
export function placesIn(count: number): number {
  return SELECTION.HEALTH + count;
}

/** Where the seconds of affinity stand and the hashes behind them, with SELECTION_FLAG.AFFINITY. */
export function affinityIn(meta: number, count: number): number {
  return SELECTION.HEALTH + (evenBytes(meta) === 0 ? 2 * count : count);
}

/** Where the regions or the shares stand, by the method. */
export function methodColumnIn(meta: number, count: number): number {
  return affinityIn(meta, count) + ((meta & SELECTION_FLAG.AFFINITY) === 0 ? 0 : 1 + count);
}

/** Where the preferred regions stand. */
export function preferredIn(meta: number, count: number): number {
  return methodColumnIn(meta, count) + ((meta & METHOD_MASK) < METHOD.REGION ? 0 : count);
}

/** The most bytes that the RRs of one RRset take: what a message of 65,535 bytes leaves beside question and OPT. */
export const MAX_RRSET_BYTES = 65_000;
export const MAX_RRSET_POINTERS = 4_095;

/** A segment of the name table: slots of two words, hash and reference. */
export const SEGMENT_SLOTS = 4096;
export const SEGMENT_UNITS = (SEGMENT_SLOTS * 8) / UNIT_BYTES;
/** In a slot's reference: the node was removed, look-ups go on behind it. */
export const SLOT_REMOVED = -1;

/** Units of a node block whose name has `length` bytes. */
export function nodeUnits(length: number): number {
  return (NODE.NAME_BYTE + length + UNIT_BYTES - 1) >>> 4;
}

/** Units of an RRset block of `bytes` wire bytes, `pointers` pointers and `tail` bytes of tail with its header. */
export function rrsetUnits(bytes: number, pointers: number, tail: number): number {
  return (RRSET.WIRE_BYTE + bytes + pointers * POINTER.BYTES + tail + UNIT_BYTES - 1) >>> 4;
}

/** Units of a selected RRset of `bytes` wire bytes and `count` RRs, with the word SELECTION.META. */
export function selectedUnits(bytes: number, count: number, meta: number): number {
  const table = RRSET.WIRE_BYTE + ((bytes + 3) & ~3);
  return (table + (preferredIn(meta, count) + (meta >>> 16)) * 4 + UNIT_BYTES - 1) >>> 4;
}

/** The word at which the table of a selected RRset begins, from its reference and the word RRSET.SIZE. */
export function selectionAt(rrset: number, sizeWord: number): number {
  return rrset * UNIT_WORDS + (RRSET.WIRE_BYTE >>> 2) + (((sizeWord >>> 16) + 3) >>> 2);
}

/** Number of pointers, from the word RRSET.TYPE. */
export function pointerCount(typeWord: number): number {
  return (typeWord >>> 16) & MAX_RRSET_POINTERS;
}

export const ZONE_UNITS = (ZONE.WORDS * 4 + UNIT_BYTES - 1) >>> 4;

/** A slot's hash: the name's hash under one incarnation, with every bit of both in every bit of it. */
export function mixHash(hash: number, incarnation: number): number {
  let mixed = hash ^ Math.imul(incarnation, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
