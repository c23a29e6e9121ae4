/**
 * The one writer of an image. It lives in the control thread; readers never wait for it and it never waits for readers.
 * Every function leaves the image in a state that readers may see, at each single store.
 */
import { allocate, openArena, release, usedBytes } from "./arena.ts";
import {
  mixHash,
  NODE,
  NODE_FLAG,
  nodeUnits,
  RRSET,
  SEGMENT_SLOTS,
  UNIT_BYTES,
  UNIT_WORDS,
  ZONE,
  ZONE_ENTRY,
  ZONE_ENTRY_ROUTE,
  ZONE_UNITS,
} from "./layout.ts";
import { isAsterisk, type NameKey } from "./name-key.ts";
import { createRetired, reclaim, retire } from "./reclaim.ts";
import { recoverImage } from "./recover.ts";
import { type RRsetWire, writeRRset } from "./rrset-block.ts";
import { CONTROL, type SharedImage } from "./shared.ts";
import { collectDead } from "./sweep.ts";
import { insertSlot, removeSlot } from "./table.ts";
import { findNode, openView, refreshView } from "./view.ts";
import { type ImageWriter, showZones, unitsOfRRset } from "./writer-state.ts";

/** One incarnation of a zone. Until it is activated no reader can reach it. */
export type ZoneHandle = {
  readonly incarnation: number;
  readonly body: number;
  readonly apex: number;
  /** Label count and length of the zone's name. */
  readonly labels: number;
  readonly length: number;
  active: boolean;
  /** Whose answers hold addresses of which names: the publisher's, see publish/tail.ts. */
  readonly pointing: Pointing;
  /** The apex has no NS records of its own: those it answers with are made of the SOA, and change with it. */
  nsIsFromSoa: boolean;
};

/** RRsets of a zone that point to names in it. An RRset is told by its node and type, a name by its mixed hash. */
export type Pointing = {
  readonly names: Map<number, readonly number[]>;
  readonly rrsets: Map<number, number[]>;
};

/**
 * Opens the writer of an image. A predecessor may have died at any moment: what it left half-made is found and freed, and
 * the zones that were active go on answering.
 */
export function openImageWriter(shared: SharedImage): ImageWriter {
  const view = openView(shared);
  refreshView(view);
  const writer: ImageWriter = {
    view,
    arena: openArena(view),
    retired: createRetired(),
    segments: new Map(),
    dead: new Map(),
    sweep: { number: 0, incarnations: new Set() },
    entriesByDepth: new Map(),
    zones: 0,
    nextIncarnation: ZONE_ENTRY + 1,
  };
  recoverImage(writer);
  return writer;
}

/** Begins a new incarnation of the zone named by `key`. It answers nothing before `activateZone`. */
export function createZone(writer: ImageWriter, key: NameKey): ZoneHandle {
  const incarnation = writer.nextIncarnation++;
  const body = allocate(writer.arena, ZONE_UNITS);
  const apex = createNode(writer, incarnation, key.hashes[0]!, key.lower, 0, 0);
  const at = body * UNIT_WORDS;
  const { words } = writer.view;
  words[at + ZONE.INCARNATION] = incarnation;
  words[at + ZONE.SEQUENCE] = 0;
  words[at + ZONE.CUTS] = 0;
  words[at + ZONE.APEX] = apex;
  words[at + ZONE.NEGATIVE_SOA] = 0;
  return {
    incarnation,
    body,
    apex,
    labels: key.labels,
    length: key.length,
    active: false,
    pointing: { names: new Map(), rrsets: new Map() },
    nsIsFromSoa: false,
  };
}

/** Lets a zone answer, in place of its former incarnation if it had one: one store. */
export function activateZone(writer: ImageWriter, zone: ZoneHandle, key: NameKey): void {
  let entry = findNode(writer.view, ZONE_ENTRY, key.hashes[0]!, key, 0, key.length);
  if (entry === 0) entry = createEntry(writer, key);
  const at = entry * UNIT_WORDS + NODE.RRSETS;
  const former = writer.view.words[at]!;
  Atomics.store(writer.view.words, at, zone.body);
  zone.active = true;
  if (former !== 0) endIncarnation(writer, former);
  else {
    writer.zones++;
    showZones(writer);
  }
  // Its zone cuts may be others too.
  routingChanged(writer);
}

/** The entry of a name that neither a zone nor a route has: readers that look for it look there first from now on. */
function createEntry(writer: ImageWriter, key: NameKey): number {
  countEntry(writer, key.labels, 1);
  return createNode(writer, ZONE_ENTRY, key.hashes[0]!, key.lower, 0, key.length);
}

/**
 * Lets names at and below one take a route where no zone of ours is as long: one store. Route 0: they take none of their own
 * any more. Other numbers are at least ROUTE.FIRST.
 */
export function setRoute(writer: ImageWriter, key: NameKey, route: number): void {
  let entry = findNode(writer.view, ZONE_ENTRY, key.hashes[0]!, key, 0, key.length);
  if (entry === 0 && route === 0) return;
  if (entry === 0) entry = createEntry(writer, key);
  const { words } = writer.view;
  Atomics.store(words, entry * UNIT_WORDS + ZONE_ENTRY_ROUTE, route);
  if (route === 0 && words[entry * UNIT_WORDS + NODE.RRSETS] === 0) removeEntry(writer, key, entry);
  routingChanged(writer);
}

/** Sets the default forwarder's route, 0 for none, and what holds for it: bits of FORWARDING. */
export function setDefaultRoute(writer: ImageWriter, route: number, forwarding: number): void {
  const { control } = writer.view;
  Atomics.store(control, CONTROL.FORWARDING, forwarding);
  Atomics.store(control, CONTROL.DEFAULT_ROUTE, route);
  routingChanged(writer);
}

/** Tells readers that names may be routed elsewhere than before, once they are. */
export function routingChanged(writer: ImageWriter): void {
  Atomics.add(writer.view.control, CONTROL.ROUTING, 1);
}

/**
 * Lets an incarnation that was begun at the root hold the overrides, in place of the one before: one store. Undefined: there
 * are none.
 */
export function showOverrides(writer: ImageWriter, overrides: ZoneHandle | undefined): void {
  const { control } = writer.view;
  const former = control[CONTROL.OVERRIDES]!;
  Atomics.store(control, CONTROL.OVERRIDES, overrides?.body ?? 0);
  if (overrides !== undefined) overrides.active = true;
  if (former !== 0) endIncarnation(writer, former);
  routingChanged(writer);
}

/** Gives up an incarnation that was never activated. */
export function discardZone(writer: ImageWriter, zone: ZoneHandle): void {
  endIncarnation(writer, zone.body);
}

/** Ends a zone: one store, then its memory follows. Returns false where there is no such zone. */
export function deleteZone(writer: ImageWriter, key: NameKey): boolean {
  const entry = findNode(writer.view, ZONE_ENTRY, key.hashes[0]!, key, 0, key.length);
  if (entry === 0) return false;
  const at = entry * UNIT_WORDS + NODE.RRSETS;
  const body = writer.view.words[at]!;
  Atomics.store(writer.view.words, at, 0);
  if (writer.view.words[entry * UNIT_WORDS + ZONE_ENTRY_ROUTE] === 0) removeEntry(writer, key, entry);
  // It is a route's entry.
  if (body === 0) return false;
  writer.zones--;
  showZones(writer);
  routingChanged(writer);
  endIncarnation(writer, body);
  return true;
}

function removeEntry(writer: ImageWriter, key: NameKey, entry: number): void {
  removeSlot(writer, mixHash(key.hashes[0]!, ZONE_ENTRY), entry);
  retire(writer.retired, writer.view.control, entry, nodeUnits(key.length));
  countEntry(writer, key.labels, -1);
}

function endIncarnation(writer: ImageWriter, body: number): void {
  const at = body * UNIT_WORDS;
  writer.dead.set(writer.view.words[at + ZONE.INCARNATION]!, Atomics.load(writer.view.control, CONTROL.EPOCH));
  retireRRset(writer, writer.view.words[at + ZONE.NEGATIVE_SOA]!);
  retire(writer.retired, writer.view.control, body, ZONE_UNITS);
}

function countEntry(writer: ImageWriter, labels: number, change: number): void {
  writer.entriesByDepth.set(labels, (writer.entriesByDepth.get(labels) ?? 0) + change);
  showZones(writer);
}

/** Brackets a change of several names: answers that see it half-made are made again. */
export function beginChange(writer: ImageWriter, zone: ZoneHandle): void {
  Atomics.add(writer.view.words, zone.body * UNIT_WORDS + ZONE.SEQUENCE, 1);
}

export function endChange(writer: ImageWriter, zone: ZoneHandle): void {
  Atomics.add(writer.view.words, zone.body * UNIT_WORDS + ZONE.SEQUENCE, 1);
}

/** The node of a name at or below the apex; 0 where there is none. */
export function nodeOf(writer: ImageWriter, zone: ZoneHandle, key: NameKey): number {
  return findNode(writer.view, zone.incarnation, key.hashes[0]!, key, 0, key.length - zone.length);
}

/** The node of a name at or below the apex, made where it is missing, with the empty non-terminals above it. */
export function ensureNode(writer: ImageWriter, zone: ZoneHandle, key: NameKey): number {
  const found = nodeOf(writer, zone, key);
  return found === 0 ? addNode(writer, zone, key) : found;
}

/** As `ensureNode`, of a name that has no node. */
export function addNode(writer: ImageWriter, zone: ZoneHandle, key: NameKey): number {
  const apexAt = key.length - zone.length;
  const depth = key.labels - zone.labels;
  // Children before parents: no reader finds a name whose existence does not show yet.
  const node = createNode(writer, zone.incarnation, key.hashes[0]!, key.lower, 0, apexAt);
  let child = 0;
  for (let label = 1; label <= depth; label++) {
    const from = key.offsets[label]!;
    let parent = findNode(writer.view, zone.incarnation, key.hashes[label]!, key, from, apexAt);
    const existed = parent !== 0;
    if (!existed) parent = createNode(writer, zone.incarnation, key.hashes[label]!, key.lower, from, apexAt);
    const at = parent * UNIT_WORDS;
    writer.view.words[at + NODE.CHILDREN]! += 1;
    if (isAsterisk(key, child)) setFlag(writer, parent, NODE_FLAG.WILDCARD_BELOW, true);
    if (existed) break;
    child = label;
  }
  return node;
}

function createNode(
  writer: ImageWriter,
  incarnation: number,
  hash: number,
  lower: Uint8Array,
  from: number,
  to: number,
): number {
  const node = allocate(writer.arena, nodeUnits(to - from));
  const { words, bytes } = writer.view;
  const at = node * UNIT_WORDS;
  words[at + NODE.INCARNATION] = incarnation;
  words[at + NODE.RRSETS] = 0;
  words[at + NODE.META] = to - from;
  words[at + NODE.CHILDREN] = 0;
  const name = node * UNIT_BYTES + NODE.NAME_BYTE;
  for (let index = from; index < to; index++) bytes[name + index - from] = lower[index]!;
  insertSlot(writer, mixHash(hash, incarnation), node);
  if (incarnation !== ZONE_ENTRY) writer.view.control[CONTROL.NAMES]! += 1;
  return node;
}

function setFlag(writer: ImageWriter, node: number, flag: number, on: boolean): void {
  const at = node * UNIT_WORDS + NODE.META;
  const meta = writer.view.words[at]!;
  Atomics.store(writer.view.words, at, on ? meta | flag : meta & ~flag);
}

/** The RRset of a type at a node; 0 where there is none. */
export function rrsetOf(writer: ImageWriter, node: number, type: number): number {
  const { words } = writer.view;
  let rrset = words[node * UNIT_WORDS + NODE.RRSETS]!;
  while (rrset !== 0 && (words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff) !== type) {
    rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!;
  }
  return rrset;
}

/**
 * Puts an RRset at a node, in place of the one of its type if there is one. `cut` says that it makes the node a zone cut
 * (NS below the apex). Nothing else of the image is touched.
 */
export function putRRset(writer: ImageWriter, zone: ZoneHandle, node: number, made: RRsetWire, cut: boolean): void {
  const rrset = writeRRset(writer, made);
  const { words } = writer.view;
  const former = unlinkPoint(writer, node, made.type);
  const old = words[former]!;
  const replaces = old !== 0 && (words[old * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === made.type;
  words[rrset * UNIT_WORDS + RRSET.NEXT] = replaces ? words[old * UNIT_WORDS + RRSET.NEXT]! : old;
  Atomics.store(words, former, rrset);
  if (replaces) dropRRset(writer, zone, old);
  else writer.view.control[CONTROL.RRSETS]! += 1;
  if (cut && !replaces) {
    Atomics.add(words, zone.body * UNIT_WORDS + ZONE.CUTS, 1);
    setFlag(writer, node, NODE_FLAG.CUT, true);
  }
  if (zone.active && (cut ? !replaces : old === 0)) namesChanged(writer, zone, cut);
}

/** Where names below a cut are sought, and which names have overrides, is routing. */
function namesChanged(writer: ImageWriter, zone: ZoneHandle, cut: boolean): void {
  if (cut || zone.body === writer.view.control[CONTROL.OVERRIDES]) routingChanged(writer);
}

/** Takes away an RRset, and the node with the empty non-terminals above it where nothing is left of them. */
export function removeRRset(writer: ImageWriter, zone: ZoneHandle, key: NameKey, type: number, cut: boolean): boolean {
  const node = nodeOf(writer, zone, key);
  if (node === 0) return false;
  const { words } = writer.view;
  const former = unlinkPoint(writer, node, type);
  const old = words[former]!;
  if (old === 0 || (words[old * UNIT_WORDS + RRSET.TYPE]! & 0xffff) !== type) return false;
  if (cut) {
    setFlag(writer, node, NODE_FLAG.CUT, false);
    Atomics.sub(words, zone.body * UNIT_WORDS + ZONE.CUTS, 1);
  }
  Atomics.store(words, former, words[old * UNIT_WORDS + RRSET.NEXT]!);
  writer.view.control[CONTROL.RRSETS]! -= 1;
  dropRRset(writer, zone, old);
  if (zone.active && (cut || words[node * UNIT_WORDS + NODE.RRSETS] === 0)) namesChanged(writer, zone, cut);
  removeEmptyNodes(writer, zone, key);
  return true;
}

/** The word that names the RRset of `type`, or the first of the list where there is none. */
function unlinkPoint(writer: ImageWriter, node: number, type: number): number {
  const { words } = writer.view;
  const head = node * UNIT_WORDS + NODE.RRSETS;
  let at = head;
  for (let rrset = words[at]!; rrset !== 0; rrset = words[at]!) {
    if ((words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff) === type) return at;
    at = rrset * UNIT_WORDS + RRSET.NEXT;
  }
  return head;
}

function removeEmptyNodes(writer: ImageWriter, zone: ZoneHandle, key: NameKey): void {
  const apexAt = key.length - zone.length;
  const depth = key.labels - zone.labels;
  for (let label = 0; label < depth; label++) {
    const from = key.offsets[label]!;
    const node = findNode(writer.view, zone.incarnation, key.hashes[label]!, key, from, apexAt);
    const at = node * UNIT_WORDS;
    if (writer.view.words[at + NODE.RRSETS] !== 0 || writer.view.words[at + NODE.CHILDREN] !== 0) return;
    if ((writer.view.words[at + NODE.META]! & NODE_FLAG.KEPT) !== 0) return;
    // Parents after children, as ensureNode has it the other way round.
    removeSlot(writer, mixHash(key.hashes[label]!, zone.incarnation), node);
    retire(writer.retired, writer.view.control, node, nodeUnits(apexAt - from));
    writer.view.control[CONTROL.NAMES]! -= 1;
    const above = key.offsets[label + 1]!;
    const parent = findNode(writer.view, zone.incarnation, key.hashes[label + 1]!, key, above, apexAt);
    writer.view.words[parent * UNIT_WORDS + NODE.CHILDREN]! -= 1;
    if (isAsterisk(key, label)) setFlag(writer, parent, NODE_FLAG.WILDCARD_BELOW, false);
  }
}

/**
 * Lets a name below the apex exist whether or not it has records, or no longer: then it goes with the empty non-terminals
 * above it where nothing is left of them.
 */
export function keepName(writer: ImageWriter, zone: ZoneHandle, key: NameKey, keep: boolean): void {
  if (keep) {
    setFlag(writer, ensureNode(writer, zone, key), NODE_FLAG.KEPT, true);
    return;
  }
  const node = nodeOf(writer, zone, key);
  if (node === 0) return;
  setFlag(writer, node, NODE_FLAG.KEPT, false);
  removeEmptyNodes(writer, zone, key);
}

/** Whether the name is held by `keepName`. */
export function isKept(writer: ImageWriter, node: number): boolean {
  return node !== 0 && (writer.view.words[node * UNIT_WORDS + NODE.META]! & NODE_FLAG.KEPT) !== 0;
}

/** The types of the RRsets at a node. */
export function typesAt(writer: ImageWriter, node: number): readonly number[] {
  const { words } = writer.view;
  const types: number[] = [];
  if (node === 0) return types;
  for (
    let rrset = words[node * UNIT_WORDS + NODE.RRSETS]!;
    rrset !== 0;
    rrset = words[rrset * UNIT_WORDS + RRSET.NEXT]!
  ) {
    types.push(words[rrset * UNIT_WORDS + RRSET.TYPE]! & 0xffff);
  }
  return types;
}

/** The names of the zones that answer, in lower-case wire form. */
export function zoneNames(writer: ImageWriter): readonly Uint8Array[] {
  const { words } = writer.view;
  return entries(writer)
    .filter(({ entry }) => words[entry * UNIT_WORDS + NODE.RRSETS] !== 0)
    .map(({ name }) => name);
}

/** The names that have a route, in lower-case wire form, and its number. */
export function namedRoutes(writer: ImageWriter): readonly { readonly name: Uint8Array; readonly route: number }[] {
  const { words } = writer.view;
  return entries(writer)
    .map(({ name, entry }) => ({ name, route: words[entry * UNIT_WORDS + ZONE_ENTRY_ROUTE]! }))
    .filter(({ route }) => route !== 0);
}

function entries(writer: ImageWriter): readonly { readonly name: Uint8Array; readonly entry: number }[] {
  const { words, bytes } = writer.view;
  const found: { name: Uint8Array; entry: number }[] = [];
  for (const segment of writer.segments.keys()) {
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const node = words[segment * UNIT_WORDS + slot * 2 + 1]!;
      if (node <= 0 || words[node * UNIT_WORDS + NODE.INCARNATION] !== ZONE_ENTRY) continue;
      const from = node * UNIT_BYTES + NODE.NAME_BYTE;
      const length = words[node * UNIT_WORDS + NODE.META]! & 0xff;
      found.push({ name: Uint8Array.from([...bytes.subarray(from, from + length), 0]), entry: node });
    }
  }
  return found;
}

/** Sets the SOA RRset that negative answers carry. */
export function setNegativeSoa(writer: ImageWriter, zone: ZoneHandle, made: RRsetWire): void {
  const rrset = writeRRset(writer, made);
  const at = zone.body * UNIT_WORDS + ZONE.NEGATIVE_SOA;
  const former = writer.view.words[at]!;
  Atomics.store(writer.view.words, at, rrset);
  dropRRset(writer, zone, former);
}

/** Frees an unlinked RRset: at once where no reader could ever reach it. */
function dropRRset(writer: ImageWriter, zone: ZoneHandle, rrset: number): void {
  if (rrset === 0) return;
  if (zone.active) retireRRset(writer, rrset);
  else release(writer.arena, rrset, unitsOfRRset(writer.view, rrset));
}

function retireRRset(writer: ImageWriter, rrset: number): void {
  if (rrset !== 0) retire(writer.retired, writer.view.control, rrset, unitsOfRRset(writer.view, rrset));
}

/**
 * Frees what no reader holds any more: retired blocks, and the nodes of ended zones in at most `segmentsMax` segments of
 * the name table. Returns true where something is left or waits for a reader, so that the caller comes again. To be called
 * after every change.
 */
export function collect(writer: ImageWriter, segmentsMax = Number.POSITIVE_INFINITY): boolean {
  const deadLeft = collectDead(writer, segmentsMax);
  const left = reclaim(writer.retired, writer.arena);
  Atomics.store(writer.view.control, CONTROL.ARENA_BYTES_USED_KIB, Math.ceil(usedBytes(writer.arena) / 1024));
  return deadLeft || left > 0;
}
