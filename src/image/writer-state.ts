/** What the writer of an image knows besides the image itself. It is private to its thread and worked out anew by a successor. */
import type { Arena } from "./arena.ts";
import { RRSET, rrsetUnits, UNIT_WORDS } from "./layout.ts";
import type { Retired } from "./reclaim.ts";
import type { ImageView } from "./view.ts";

/** A segment of the name table: how many upper bits all its hashes share, and its slots in use. */
export type Segment = { readonly depth: number; live: number; used: number };

export type ImageWriter = {
  readonly view: ImageView;
  readonly arena: Arena;
  readonly retired: Retired;
  readonly segments: Map<number, Segment>;
  /** Incarnations that answer no more, with the epoch in which they ended. Their nodes are freed by the sweep. */
  readonly dead: Map<number, number>;
  /** Number of zone entries by label count. */
  readonly zonesByDepth: Map<number, number>;
  nextIncarnation: number;
};

/** Units of an RRset's block. */
export function unitsOfRRset(view: ImageView, rrset: number): number {
  const at = rrset * UNIT_WORDS;
  return rrsetUnits(view.words[at + RRSET.SIZE]! >>> 16, view.words[at + RRSET.TYPE]! >>> 16);
}
