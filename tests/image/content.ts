/** Names and RRsets for tests of the image. Every byte of such an RRset follows from one value, so that a torn one shows. */
import { nameFromText } from "../../src/dns/name.ts";
import { POINTER, RRSET, UNIT_BYTES, UNIT_WORDS } from "../../src/image/layout.ts";
import { createNameKey, type NameKey, readNameKey } from "../../src/image/name-key.ts";
import { CONTROL } from "../../src/image/shared.ts";
import { type ImageView, refreshView } from "../../src/image/view.ts";
import {
  activateZone,
  createZone,
  ensureNode,
  putRRset,
  type RRsetWire,
  type ZoneHandle,
} from "../../src/image/writer.ts";
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

/** An RRset whose size, TTL, bytes and pointers all say `value`, from 0 to 2^31 - 1. */
export function patternRRset(type: number, value: number): RRsetWire {
  const length = wireBytes(value);
  const pointerCount = value % 4;
  const wire = new Uint8Array(length);
  for (let index = 0; index < length; index++) wire[index] = (value >>> ((index % 4) * 8)) & 0xff;
  const pointers = Uint8Array.from({ length: pointerCount * POINTER.BYTES }, (_, index) => (value + index) & 0xff);
  return { type, ttl: value, count: (value % 9) + 1, wire, length, pointers, pointerCount };
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
  if (words[at + RRSET.TYPE]! >>> 16 !== value % 4) torn("number of pointers");
  if (words[at + RRSET.SIZE] !== (value % 9) + 1 + (length << 16)) torn("size");
  let from = rrset * UNIT_BYTES + RRSET.WIRE_BYTE;
  for (let index = 0; index < length; index++) {
    if (bytes[from++] !== ((value >>> ((index % 4) * 8)) & 0xff)) torn(`byte ${index} of ${length}`);
  }
  for (let index = 0; index < (value % 4) * POINTER.BYTES; index++) {
    if (bytes[from++] !== ((value + index) & 0xff)) torn(`byte ${index} of the pointers`);
  }
  return { type, value };
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
