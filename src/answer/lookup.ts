/** Finds what the image holds for a name: its zone, then the node, zone cut or wildcard (RFC 1034 section 4.3.2, RFC 4592). */
import { NODE, NODE_FLAG, UNIT_WORDS, ZONE, ZONE_ENTRY, ZONE_ENTRY_ROUTE } from "../image/layout.ts";
import { hashAsterisk, type NameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import { findNode, type ImageView, refreshView } from "../image/view.ts";

export const FOUND = {
  /** The name exists: `node`, with or without the wanted type. */
  NODE: 0,
  /** It is synthesised from the wildcard at `node`. */
  WILDCARD: 1,
  /** It lies at or below the zone cut at `node`, whose name begins at label `cutLabel`. */
  CUT: 2,
  /** It does not exist. */
  NOTHING: 3,
} as const;

/** Result of the look-ups of one name. A thread has one and fills it again. */
export type Lookup = {
  /** Body of the zone that the name belongs to, 0 for none; its name begins at label `apexLabel`. */
  zone: number;
  apexLabel: number;
  /** Number of the route that the name takes where no zone of ours is as long, 0 for none. */
  route: number;
  found: (typeof FOUND)[keyof typeof FOUND];
  node: number;
  cutLabel: number;
};

export function createLookup(): Lookup {
  return { zone: 0, apexLabel: 0, route: 0, found: FOUND.NOTHING, node: 0, cutLabel: 0 };
}

/**
 * Finds the longest match over active zones and routes that the key ends with, from label `fromLabel` on; at equal length
 * it is the zone. Returns the zone's body, 0 where it is a route, which `lookup.route` has then, or nothing. Only label
 * counts that some zone or route has are tried.
 */
export function findZone(view: ImageView, lookup: Lookup, key: NameKey, fromLabel: number): number {
  const depths = view.control[CONTROL.ZONE_DEPTHS]!;
  for (let label = fromLabel; label <= key.labels; label++) {
    const depth = key.labels - label;
    if (((depths >>> Math.min(depth, 31)) & 1) === 0) continue;
    const entry = findNode(view, ZONE_ENTRY, key.hashes[label]!, key, key.offsets[label]!, key.length);
    if (entry === 0) continue;
    const body = view.words[entry * UNIT_WORDS + NODE.RRSETS]!;
    if (body !== 0) {
      if (body >= view.limit) refreshView(view);
      lookup.zone = body;
      lookup.apexLabel = label;
      return body;
    }
    const route = view.words[entry * UNIT_WORDS + ZONE_ENTRY_ROUTE]!;
    if (route === 0) continue;
    lookup.zone = 0;
    lookup.apexLabel = label;
    lookup.route = route;
    return 0;
  }
  lookup.zone = 0;
  lookup.route = 0;
  return 0;
}

/**
 * The node of the override with exactly this name, 0 where there is none. `overrides` is their body. A node without RRsets
 * only stands above others.
 */
export function findOverride(view: ImageView, overrides: number, key: NameKey): number {
  if (overrides >= view.limit) refreshView(view);
  const incarnation = view.words[overrides * UNIT_WORDS + ZONE.INCARNATION]!;
  const node = findNode(view, incarnation, key.hashes[0]!, key, 0, key.length);
  return node === 0 || view.words[node * UNIT_WORDS + NODE.RRSETS] === 0 ? 0 : node;
}

/** Fills the look-up as if the overrides were a zone at the root, and `node` had been found for the key there. */
export function foundOverride(lookup: Lookup, overrides: number, node: number, key: NameKey): void {
  lookup.zone = overrides;
  lookup.apexLabel = key.labels;
  lookup.found = FOUND.NODE;
  lookup.node = node;
}

/** Looks the key up in the zone that `findZone` put into `lookup`. */
export function lookUpName(view: ImageView, lookup: Lookup, key: NameKey): void {
  const zone = lookup.zone * UNIT_WORDS;
  const incarnation = view.words[zone + ZONE.INCARNATION]!;
  const apexAt = key.offsets[lookup.apexLabel]!;
  const node = findNode(view, incarnation, key.hashes[0]!, key, 0, apexAt);
  lookup.node = node;
  lookup.found = FOUND.NODE;
  if (node !== 0 && view.words[zone + ZONE.CUTS] === 0) return;
  // Every ancestor of a name exists, so that the way down ends at the closest encloser at the latest.
  let encloser = view.words[zone + ZONE.APEX]!;
  let encloserLabel = lookup.apexLabel;
  for (let label = lookup.apexLabel - 1; label >= 0; label--) {
    const below =
      label === 0 ? node : findNode(view, incarnation, key.hashes[label]!, key, key.offsets[label]!, apexAt);
    if (below === 0) break;
    if ((view.words[below * UNIT_WORDS + NODE.META]! & NODE_FLAG.CUT) !== 0) {
      lookup.found = FOUND.CUT;
      lookup.node = below;
      lookup.cutLabel = label;
      return;
    }
    encloser = below;
    encloserLabel = label;
  }
  if (node === 0) lookUpWildcard(view, lookup, key, incarnation, encloser, encloserLabel);
}

function lookUpWildcard(
  view: ImageView,
  lookup: Lookup,
  key: NameKey,
  incarnation: number,
  encloser: number,
  encloserLabel: number,
): void {
  lookup.found = FOUND.NOTHING;
  if (encloser >= view.limit) refreshView(view);
  if ((view.words[encloser * UNIT_WORDS + NODE.META]! & NODE_FLAG.WILDCARD_BELOW) === 0) return;
  // The label left of the encloser takes at least two bytes, in which `*` is spelled for the time of the look-up.
  const { lower } = key;
  const at = key.offsets[encloserLabel]! - 2;
  const first = lower[at]!;
  const second = lower[at + 1]!;
  lower[at] = 1;
  lower[at + 1] = 42;
  const hash = hashAsterisk(key.hashes[encloserLabel]!, key.hashes[key.labels]!);
  const node = findNode(view, incarnation, hash, key, at, key.offsets[lookup.apexLabel]!);
  lower[at] = first;
  lower[at + 1] = second;
  if (node === 0) return;
  lookup.found = FOUND.WILDCARD;
  lookup.node = node;
}
