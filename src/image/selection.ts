/** What a selected RRset selects by: the table behind its RRs, as whoever publishes gives it and as the image has it. */
import {
  affinityIn,
  EVEN_BYTES_MAX,
  evenBytes,
  METHOD,
  type Method,
  methodColumnIn,
  placesIn,
  preferredIn,
  RRSET,
  SELECTION,
  SELECTION_FLAG,
  selectedUnits,
  selectionAt,
  UNIT_WORDS,
} from "./layout.ts";
import type { ImageView } from "./view.ts";

/** A value among which is selected: its RR is wire[offset, offset + length). The rest is as the columns in layout.ts have it. */
export type SelectionCandidate = {
  readonly offset: number;
  readonly length: number;
  /** Health slot, 0 for none. */
  readonly health: number;
  /** regionNumber, 0 for none; it is kept where the method asks for regions. */
  readonly region: number;
  /** 0 to 2^20; it is kept under METHOD.WEIGHTED. */
  readonly weight: number;
  /** 32 bits of a hash of the value, the same on every node; it is kept where there is affinity. */
  readonly hash: number;
};

export type RRsetSelection = {
  readonly method: Method;
  /** SELECTION_FLAG of layout.ts. */
  readonly flags: number;
  /** At least 1; it means something where the flags have AFFINITY. */
  readonly affinitySeconds: number;
  /** One for each RR, in the order of the RRs. */
  readonly candidates: readonly SelectionCandidate[];
  /** Numbers of the regions to try after the client's own, in order. */
  readonly preferred: readonly number[];
};

/** The word SELECTION.META. */
export function metaOf({ method, flags, candidates, preferred }: RRsetSelection): number {
  const bytes = candidates[0]?.length ?? 0;
  const isEven = candidates.every(({ offset, length }, index) => length === bytes && offset === index * bytes);
  return method | flags | (isEven && bytes <= EVEN_BYTES_MAX ? bytes << 8 : 0) | (preferred.length << 16);
}

/** Writes the table of an RRset block whose word SIZE is written already, with TURN at its start. */
export function writeSelection({ words }: ImageView, rrset: number, selection: RRsetSelection): void {
  const { method, affinitySeconds, candidates, preferred } = selection;
  const table = selectionAt(rrset, words[rrset * UNIT_WORDS + RRSET.SIZE]!);
  const meta = metaOf(selection);
  words[table + SELECTION.META] = meta;
  words[table + SELECTION.TURN] = 0;
  const count = candidates.length;
  const hasPlaces = evenBytes(meta) === 0;
  const hasAffinity = (meta & SELECTION_FLAG.AFFINITY) !== 0;
  const affinity = table + affinityIn(meta, count);
  if (hasAffinity) words[affinity] = affinitySeconds;
  for (const [index, { offset, length, health, region, weight, hash }] of candidates.entries()) {
    words[table + SELECTION.HEALTH + index] = health;
    if (hasPlaces) words[table + placesIn(count) + index] = offset | (length << 16);
    if (hasAffinity) words[affinity + 1 + index] = hash;
    if (method >= METHOD.REGION) {
      words[table + methodColumnIn(meta, count) + index] = method === METHOD.WEIGHTED ? weight : region;
    }
  }
  let at = table + preferredIn(meta, count);
  for (const region of preferred) words[at++] = region;
}

/** Units of the block of a selected RRset. */
export function unitsOfSelected({ words }: ImageView, rrset: number): number {
  const size = words[rrset * UNIT_WORDS + RRSET.SIZE]!;
  const meta = words[selectionAt(rrset, size) + SELECTION.META]!;
  return selectedUnits(size >>> 16, size & 0xffff, meta);
}
