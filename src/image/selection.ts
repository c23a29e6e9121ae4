/** What a selected RRset selects by: the table behind its RRs, as whoever publishes gives it and as the image has it. */
import { CANDIDATE, type Method, RRSET, SELECTION, selectedUnits, selectionAt, UNIT_WORDS } from "./layout.ts";
import type { ImageView } from "./view.ts";

/** A value among which is selected: its RR is wire[offset, offset + length). The rest is as CANDIDATE in layout.ts has it. */
export type SelectionCandidate = {
  readonly offset: number;
  readonly length: number;
  /** Health slot, 0 for none. */
  readonly health: number;
  /** regionNumber, 0 for none. */
  readonly region: number;
  /** 0 to 2^20. */
  readonly weight: number;
  /** 32 bits of a hash of the value, the same on every node. */
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

/** Writes the table of an RRset block whose word SIZE is written already, with TURN at its start. */
export function writeSelection({ words }: ImageView, rrset: number, selection: RRsetSelection): void {
  const { method, flags, affinitySeconds, candidates, preferred } = selection;
  let at = selectionAt(rrset, words[rrset * UNIT_WORDS + RRSET.SIZE]!);
  words[at + SELECTION.META] = method | flags | (preferred.length << 16);
  words[at + SELECTION.AFFINITY_SECONDS] = affinitySeconds;
  words[at + SELECTION.TURN] = 0;
  at += SELECTION.WORDS;
  for (const { offset, length, health, region, weight, hash } of candidates) {
    words[at + CANDIDATE.PLACE] = offset | (length << 16);
    words[at + CANDIDATE.HEALTH] = health;
    words[at + CANDIDATE.REGION] = region;
    words[at + CANDIDATE.WEIGHT] = weight;
    words[at + CANDIDATE.HASH] = hash;
    at += CANDIDATE.WORDS;
  }
  for (const region of preferred) words[at++] = region;
}

/** Units of the block of a selected RRset. */
export function unitsOfSelected({ words }: ImageView, rrset: number): number {
  const size = words[rrset * UNIT_WORDS + RRSET.SIZE]!;
  const meta = words[selectionAt(rrset, size) + SELECTION.META]!;
  return selectedUnits(size >>> 16, size & 0xffff, meta >>> 16);
}
