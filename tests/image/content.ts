/** Names and RRsets for tests of the image. Every byte of such an RRset follows from one value, so that a torn one shows. */
import { nameFromText } from "../../src/dns/name.ts";
import {
  affinityIn,
  evenBytes,
  METHOD,
  methodColumnIn,
  POINTER,
  placesIn,
  preferredIn,
  RRSET,
  SELECTED_FLAG,
  SELECTION,
  SELECTION_FLAG,
  selectionAt,
  UNIT_BYTES,
  UNIT_WORDS,
} from "../../src/image/layout.ts";
import { createNameKey, type NameKey, readNameKey } from "../../src/image/name-key.ts";
import type { RRsetWire } from "../../src/image/rrset-block.ts";
import { metaOf, type RRsetSelection } from "../../src/image/selection.ts";
import { CONTROL } from "../../src/image/shared.ts";
import { type ImageView, refreshView } from "../../src/image/view.ts";
import { activateZone, createZone, ensureNode, putRRset, type ZoneHandle } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";

export function keyOf(view: ImageView, text: string): NameKey {
  const result = nameFromText(text);
  if (result.kind === "error") throw new Error(`${text}: ${result.reason}`);
  const key = createNameKey();
  readNameKey(key, result.name, 0, result.name.length, view.control[CONTROL.HASH_SEED]!);
  return key;
}

/** Most RRsets are small, as in life, and some need a large block. */
function wireBytes(value: number): number {
  return value % 61 === 0 ? 4_000 + (value % 997) : 4 + (value % 120);
}

/** Every fifth is a selected one. */
function isSelected(value: number): boolean {
  return value % 5 === 2;
}

function pointersOf(value: number): number {
  return isSelected(value) ? 0 : value % 4;
}

/** A table in which every word says `value` too. */
function patternSelection(value: number, length: number): RRsetSelection {
  const count = (value % 9) + 1;
  const words = { health: value, region: value + 1, weight: value + 2, hash: value + 3 };
  return {
    method: METHOD.REGION,
    flags: value % 2 === 0 ? SELECTION_FLAG.AFFINITY : 0,
    affinitySeconds: value,
    candidates: Array.from({ length: count }, (_, index) => ({ offset: index, length: length - index, ...words })),
    preferred: Array.from({ length: value % 4 }, (_, index) => value + index),
  };
}

/** An RRset whose size, TTL, bytes, pointers and table all say `value`, from 0 to 2^31 - 1. */
export function patternRRset(type: number, value: number): RRsetWire {
  const length = wireBytes(value);
  const pointerCount = pointersOf(value);
  const wire = new Uint8Array(length);
  for (let index = 0; index < length; index++) wire[index] = (value >>> ((index % 4) * 8)) & 0xff;
  const pointers = Uint8Array.from({ length: pointerCount * POINTER.BYTES }, (_, index) => (value + index) & 0xff);
  const selection = isSelected(value) ? patternSelection(value, length) : undefined;
  return { type, ttl: value, count: (value % 9) + 1, wire, length, pointers, pointerCount, selection };
}

/** The value of an RRset; throws where its bytes do not all say the same. */
export function readPattern(view: ImageView, rrset: number): { readonly type: number; readonly value: number } {
  if (rrset >= view.limit) refreshView(view);
  const { words, bytes } = view;
  const at = rrset * UNIT_WORDS;
  const value = words[at + RRSET.TTL]!;
  const type = words[at + RRSET.TYPE]! & 0xffff;
  const length = wireBytes(value);
  const torn = (what: string): never => {
    throw new Error(`torn RRset at ${rrset}: value ${value}, type ${type}, ${what}`);
  };
  const flags = isSelected(value) ? SELECTED_FLAG : pointersOf(value) << 16;
  if ((words[at + RRSET.TYPE]! & ~0xffff) !== flags) torn("flags and number of pointers");
  if (words[at + RRSET.SIZE] !== (value % 9) + 1 + (length << 16)) torn("size");
  let from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  for (let index = 0; index < length; index++) {
    if (bytes[from++] !== ((value >>> ((index % 4) * 8)) & 0xff)) torn(`byte ${index} of ${length}`);
  }
  for (let index = 0; index < pointersOf(value) * POINTER.BYTES; index++) {
    if (bytes[from++] !== ((value + index) & 0xff)) torn(`byte ${index} of the pointers`);
  }
  if (isSelected(value)) readPatternTable(words, selectionAt(rrset, words[at + RRSET.SIZE]!), value, length, torn);
  return { type, value };
}

function readPatternTable(
  words: Int32Array,
  table: number,
  value: number,
  length: number,
  torn: (what: string) => never,
): void {
  const selection = patternSelection(value, length);
  const { candidates, preferred } = selection;
  const count = candidates.length;
  const meta = metaOf(selection);
  if (words[table + SELECTION.META] !== meta) torn("method");
  const hashes = (meta & SELECTION_FLAG.AFFINITY) === 0 ? -1 : table + affinityIn(meta, count) + 1;
  if (hashes >= 0 && words[hashes - 1] !== value) torn("affinity");
  for (const [index, { offset, length: bytes, health, region, hash }] of candidates.entries()) {
    if (words[table + SELECTION.HEALTH + index] !== health) torn("health slot");
    if (evenBytes(meta) === 0 && words[table + placesIn(count) + index] !== (offset | (bytes << 16))) torn("place");
    if (hashes >= 0 && words[hashes + index] !== (hash | 0)) torn("hash");
    if (words[table + methodColumnIn(meta, count) + index] !== (region | 0)) torn("region");
  }
  let at = table + preferredIn(meta, count);
  for (const region of preferred) if (words[at++] !== (region | 0)) torn("preferred region");
}

/** Puts an RRset of TYPE A at a name of a zone, with the nodes that it needs. */
export function putValue(writer: ImageWriter, zone: ZoneHandle, name: NameKey, value: number, type = 1): void {
  putRRset(writer, zone, ensureNode(writer, zone, name), patternRRset(type, value), false);
}

/** Makes and activates a zone with `count` names n0, n1, ... of which number n has the value `makeValue(n)`. */
export function publishNumbered(
  writer: ImageWriter,
  apex: string,
  count: number,
  makeValue: (index: number) => number,
): ZoneHandle {
  const key = keyOf(writer.view, apex);
  const zone = createZone(writer, key);
  for (let index = 0; index < count; index++) {
    putValue(writer, zone, keyOf(writer.view, `n${index}.${apex}`), makeValue(index));
  }
  activateZone(writer, zone, key);
  return zone;
}
