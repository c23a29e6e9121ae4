/**
 * What is gated, and what is known of it: every gated RRset with its values, each distinct probe with the RRsets that it
 * gates, and from these the status of each record. Only the control thread has one. States come from the health thread;
 * events go out where a status flips.
 */
import type { HealthKey } from "../image/health.ts";
import type { LbPolicy, RecordType } from "../model/objects.ts";
import { aggregateOf, isFailedOver, type RecordStatus, servingOf, type ValueState } from "./aggregate.ts";
import type { ProbeSpec, ProbeState } from "./probe.ts";

/** What the book tells of changes. The composition root hands it to the notifier. */
export type HealthEvent = {
  readonly type: "health.check_transition" | "failover.activated" | "failover.recovered";
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** A distinct probe: one address and one whole template, whoever uses it. */
export type GatedProbe = {
  readonly key: HealthKey;
  readonly slot: number;
  readonly spec: ProbeSpec;
  /** As far as this thread has heard. */
  state: ProbeState;
  /** Values that name its slot, in RRsets of the book and in those that may still be in the image. */
  holders: number;
  readonly rrsets: Set<GatedEntry>;
};

export type GatedValue = {
  readonly value: string;
  readonly region: string | undefined;
  /** Undefined: it is not probed. */
  readonly probe: GatedProbe | undefined;
  /** It would be probed, had a slot been left. */
  readonly lacksSlot: boolean;
};

export type GatedEntry = {
  /** Empty for an override. */
  readonly zone: string;
  readonly name: string;
  readonly type: RecordType;
  readonly id: string;
  readonly method: LbPolicy["method"] | undefined;
  readonly values: readonly GatedValue[];
  /** The build of its zone that it was last gated in. */
  readonly build: number;
  status: RecordStatus;
  isFailedOver: boolean;
};

export type Book = {
  readonly probes: Map<HealthKey, GatedProbe>;
  readonly zones: Map<string, ZoneBook>;
  /** Names of `zones` in order; undefined: to be sorted anew. */
  zoneOrder: readonly string[] | undefined;
  readonly ownRegion: string | undefined;
  readonly onEvent: (event: HealthEvent) => void;
};

export type ZoneBook = {
  /** By name and type. */
  readonly entries: Map<string, GatedEntry>;
  /** Number of the build under way, 0 where there is none. */
  building: number;
  /** Probes of entries replaced while a build is under way: the RRsets that name them answer until it ends. */
  readonly held: GatedProbe[];
  /** Keys of `entries` in order; undefined: to be sorted anew. */
  order: readonly string[] | undefined;
};

/** `ownRegion`: the node's. */
export function createBook(ownRegion: string | undefined, onEvent: (event: HealthEvent) => void): Book {
  return { probes: new Map(), zones: new Map(), zoneOrder: undefined, ownRegion, onEvent };
}

export function zoneBook(book: Book, zone: string): ZoneBook {
  const known = book.zones.get(zone);
  if (known !== undefined) return known;
  const made: ZoneBook = { entries: new Map(), building: 0, held: [], order: undefined };
  book.zones.set(zone, made);
  book.zoneOrder = undefined;
  return made;
}

export function dropZoneBook(book: Book, zone: string): void {
  book.zones.delete(zone);
  book.zoneOrder = undefined;
}

/** Names of zones that gate something, in order. */
export function orderedZones(book: Book): readonly string[] {
  book.zoneOrder ??= [...book.zones.keys()].sort();
  return book.zoneOrder;
}

/** Keys of a zone's entries in order. */
export function orderedEntries(zone: ZoneBook): readonly string[] {
  zone.order ??= [...zone.entries.keys()].sort();
  return zone.order;
}

/** Names hold no blank that is not escaped, so the key tells every pair apart. */
export function entryKey(name: string, type: RecordType): string {
  return `${name} ${type}`;
}

export function statesOf({ values }: GatedEntry): readonly ValueState[] {
  return values.map(({ region, probe }) => ({ region, state: probe?.state ?? "unknown" }));
}

/** Puts an entry in, in the place of the one of its name and type, which comes back without its place in the index. */
export function putEntry(
  book: Book,
  zone: ZoneBook,
  given: Omit<GatedEntry, "status" | "isFailedOver">,
): GatedEntry | undefined {
  const key = entryKey(given.name, given.type);
  const former = zone.entries.get(key);
  const entry: GatedEntry = { ...given, status: "healthy", isFailedOver: false };
  // Another value set of the same record may flip its status, and whoever was told of the former has to hear of it.
  const isSame = former !== undefined && former.id === entry.id;
  if (isSame) {
    entry.status = former.status;
    entry.isFailedOver = former.isFailedOver;
  }
  if (former === undefined) zone.order = undefined;
  else forget(former);
  zone.entries.set(key, entry);
  for (const { probe } of entry.values) probe?.rrsets.add(entry);
  refresh(book, entry, isSame);
  return former;
}

/** Takes an entry out. */
export function removeEntry(zone: ZoneBook, entry: GatedEntry): void {
  zone.entries.delete(entryKey(entry.name, entry.type));
  zone.order = undefined;
  forget(entry);
}

function forget(entry: GatedEntry): void {
  for (const { probe } of entry.values) probe?.rrsets.delete(entry);
}

/**
 * The probe is in that state now; events are told of what flips by it, unless it is `silent`. A step is one record, as one
 * probe may gate any number of them.
 */
export function* stateSteps(
  book: Book,
  probe: GatedProbe,
  state: ProbeState,
  how: "told" | "silent",
): Generator<undefined, void> {
  if (probe.state === state) return;
  probe.state = state;
  for (const entry of probe.rrsets) {
    refresh(book, entry, how === "told");
    yield;
  }
}

function refresh(book: Book, entry: GatedEntry, isTold: boolean): void {
  const states = statesOf(entry);
  const { status: previous, isFailedOver: was } = entry;
  const { status, healthy, total } = aggregateOf(states);
  const serving = servingOf(states, entry.method, book.ownRegion);
  entry.status = status;
  entry.isFailedOver = isFailedOver(was, serving);
  if (!isTold) return;
  const { zone, name, type, id } = entry;
  const named = { ...(zone === "" ? {} : { zone }), name, type };
  if (status !== previous) {
    const data = { status, previous, ...named, healthy, total, failing_open: status === "unhealthy" };
    book.onEvent({ type: "health.check_transition", subject: id, data });
  }
  if (entry.isFailedOver === was || (was && serving !== "home")) return;
  const data = { record_id: id, ...named, method: entry.method, region: book.ownRegion, healthy, total };
  book.onEvent({ type: was ? "failover.recovered" : "failover.activated", subject: id, data });
}
