/** Writes the blocks of RRsets. */
import { allocate } from "./arena.ts";
import { POINTER, RRSET, rrsetUnits, SELECTED_FLAG, selectedUnits, TAIL, UNIT_BYTES, UNIT_WORDS } from "./layout.ts";
import { metaOf, type RRsetSelection, writeSelection } from "./selection.ts";
import type { ImageWriter } from "./writer-state.ts";

/** The additional section of an answer, ready to be copied; `length` is -1 for none. */
export type RRsetTail = { readonly bytes: Uint8Array; length: number; count: number };

/** An RRset made for the image: its RRs in wire form and where they hold pointers to the apex; see layout.ts. */
export type RRsetWire = {
  readonly type: number;
  readonly ttl: number;
  readonly count: number;
  readonly wire: Uint8Array;
  readonly length: number;
  /** Entries as POINTER in layout.ts has them. */
  readonly pointers: Uint8Array;
  readonly pointerCount: number;
  readonly tail?: Readonly<RRsetTail>;
  /** Of a selected RRset, which has neither pointers nor a tail; it has a candidate for each of its RRs, one at least. */
  readonly selection?: RRsetSelection | undefined;
};

/** Writes an RRset that no reader can reach yet, and returns its reference. */
export function writeRRset(writer: ImageWriter, made: RRsetWire): number {
  if (made.selection !== undefined) return writeSelected(writer, made, made.selection);
  const tail = made.tail !== undefined && made.tail.length >= 0 ? made.tail : undefined;
  const tailBytes = tail === undefined ? 0 : TAIL.HEADER_BYTES + tail.length;
  const rrset = allocate(writer.arena, rrsetUnits(made.length, made.pointerCount, tailBytes));
  const { words, bytes } = writer.view;
  const at = rrset * UNIT_WORDS;
  words[at + RRSET.NEXT] = 0;
  words[at + RRSET.TYPE] = made.type | (made.pointerCount << 16) | (tail === undefined ? 0 : TAIL.FLAG);
  words[at + RRSET.SIZE] = made.count | (made.length << 16);
  words[at + RRSET.TTL] = made.ttl;
  let to = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  for (let index = 0; index < made.length; index++) bytes[to++] = made.wire[index]!;
  const entries = made.pointerCount * POINTER.BYTES;
  for (let index = 0; index < entries; index++) bytes[to++] = made.pointers[index]!;
  if (tail !== undefined) {
    writer.view.data.setInt32(to, (tail.length << 16) | tail.count);
    bytes.set(tail.bytes.subarray(0, tail.length), to + TAIL.HEADER_BYTES);
  }
  return rrset;
}

function writeSelected(writer: ImageWriter, made: RRsetWire, selection: RRsetSelection): number {
  const { candidates } = selection;
  if (made.pointerCount !== 0 || candidates.length !== made.count || made.count === 0) {
    throw new RangeError(`a selected RRset of ${made.count} RRs, ${candidates.length} candidates`);
  }
  const rrset = allocate(writer.arena, selectedUnits(made.length, made.count, metaOf(selection)));
  const { words, bytes } = writer.view;
  const at = rrset * UNIT_WORDS;
  words[at + RRSET.NEXT] = 0;
  words[at + RRSET.TYPE] = made.type | SELECTED_FLAG;
  words[at + RRSET.SIZE] = made.count | (made.length << 16);
  words[at + RRSET.TTL] = made.ttl;
  bytes.set(made.wire.subarray(0, made.length), rrset * UNIT_BYTES + RRSET.WIRE_BYTE);
  writeSelection(writer.view, rrset, selection);
  return rrset;
}
