/** What the writer of an image knows besides the image itself. It is private to its thread and worked out anew by a successor. */
import type { Arena } from "./arena.ts";
import { POINTER, pointerCount, RRSET, rrsetUnits, SELECTED_FLAG, TAIL, UNIT_BYTES, UNIT_WORDS } from "./layout.ts";
import type { Retired } from "./reclaim.ts";
import { unitsOfSelected } from "./selection.ts";
import { CONTROL } from "./shared.ts";
import type { ImageView } from "./view.ts";

/** A segment of the name table: how many upper bits all its hashes share, and its slots in use. */
export type Segment = {
  readonly depth: number;
  live: number;
  used: number;
  /** The last sweep that went through it. */
  swept: number;
};

export type ImageWriter = {
  readonly view: ImageView;
  readonly arena: Arena;
  readonly retired: Retired;
  readonly segments: Map<number, Segment>;
  /** Incarnations that answer no more, with the epoch in which they ended. Their nodes are freed by the sweep. */
  readonly dead: Map<number, number>;
  /** The sweep that is under way or was last, and the incarnations whose nodes it frees; none: it is done. */
  sweep: { readonly number: number; readonly incarnations: ReadonlySet<number> };
  /** Number of zone entries by label count, those of routes among them. */
  readonly entriesByDepth: Map<number, number>;
  /** Number of zones that answer. */
  zones: number;
  nextIncarnation: number;
};

/** Shows to readers at which depths there are entries, and how many zones. */
export function showZones({ entriesByDepth, zones, view }: ImageWriter): void {
  let depths = 0;
  for (const [depth, count] of entriesByDepth) if (count > 0) depths |= 1 << Math.min(depth, 31);
  Atomics.store(view.control, CONTROL.ZONE_DEPTHS, depths);
  Atomics.store(view.control, CONTROL.ZONES, zones);
}

/** Units of an RRset's block. */
export function unitsOfRRset(view: ImageView, rrset: number): number {
  const at = rrset * UNIT_WORDS;
  const typeWord = view.words[at + RRSET.TYPE]!;
  if ((typeWord & SELECTED_FLAG) !== 0) return unitsOfSelected(view, rrset);
  const pointers = pointerCount(typeWord);
  const length = view.words[at + RRSET.SIZE]! >>> 16;
  if ((typeWord & TAIL.FLAG) === 0) return rrsetUnits(length, pointers, 0);
  const tail = rrset * UNIT_BYTES + RRSET.WIRE_BYTE + length + pointers * POINTER.BYTES;
  return rrsetUnits(length, pointers, TAIL.HEADER_BYTES + view.data.getUint16(tail));
}
