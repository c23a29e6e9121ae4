/** The names that the model test uses: zones that overlap, and in each the shapes of names that look-ups tell apart. */
import { NODE, UNIT_BYTES, UNIT_WORDS } from "../../src/image/layout.ts";
import type { NameKey } from "../../src/image/name-key.ts";
import type { ImageView } from "../../src/image/view.ts";
import { keyOf } from "./content.ts";
import { NS } from "./model.ts";

export const ZONES: readonly string[] = [".", "corp.", "sub.corp.", "x.y.sub.corp.", "test."];
export const TYPES = [1, NS, 16, 28] as const;
export const RELATIVE_NAMES = [
  "",
  "a",
  "b",
  "*",
  "a.a",
  "b.a",
  "*.a",
  "a.*",
  "c.b.a",
  "*.b.a",
  "d.d.d.d",
  "sub",
  "a.sub",
  "*.sub",
  "y.sub",
  "a.x.y.sub",
] as const;

/** A zone whose names never change: every look-up of one must find it, whatever else goes on. */
export const STABLE_ZONE = "stable.";
export const STABLE_NAMES = 200;

export function stableValue(index: number): number {
  return index * 7919;
}

export function absoluteName(relative: string, zone: string): string {
  if (relative === "") return zone;
  return zone === "." ? `${relative}.` : `${relative}.${zone}`;
}

/** Every name below every zone, and one more that none of them has. */
export const UNIVERSE: readonly string[] = [
  ...new Set(ZONES.flatMap((zone) => RELATIVE_NAMES.map((relative) => absoluteName(relative, zone)))),
  "nowhere.else.",
];

/** A value tells to which name and zone it belongs, so that an RRset in a foreign place shows. `version` is below 2^18. */
export function encodeValue(absolute: string, zone: string, version: number): number {
  return (UNIVERSE.indexOf(absolute) << 22) | (ZONES.indexOf(zone) << 18) | version;
}

export function decodeValue(value: number): { readonly name: string; readonly zone: string } {
  return { name: UNIVERSE[value >>> 22] ?? "", zone: ZONES[(value >>> 18) & 15] ?? "" };
}

export function universeKeys(view: ImageView): ReadonlyMap<string, NameKey> {
  return new Map(UNIVERSE.map((name) => [name, keyOf(view, name)]));
}

/** Throws unless `value` stands at the node of the name that it was made for. `apexLength` is of the found zone's name. */
export function checkPlace(
  view: ImageView,
  node: number,
  value: number,
  apexLength: number,
  keys: ReadonlyMap<string, NameKey>,
): void {
  const { name, zone } = decodeValue(value);
  const key = keys.get(name);
  const length = view.words[node * UNIT_WORDS + NODE.META]! & 0xff;
  const from = node * UNIT_BYTES + NODE.NAME_BYTE;
  const isHere =
    key !== undefined &&
    keys.get(zone)?.length === apexLength &&
    length === key.length - apexLength &&
    view.bytes.subarray(from, from + length).every((byte, index) => byte === key.lower[index]);
  if (!isHere) throw new Error(`the value of ${name} in zone ${zone} stands at another name`);
}
