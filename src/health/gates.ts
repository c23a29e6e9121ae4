/**
 * The gates of the image, as publishing asks for them: a health slot for each value that a probe gates, one for each
 * distinct (address, whole template), whoever uses it. A slot is given back when nothing in the image names it any more.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  dropUnheld,
  HEALTH,
  HEALTH_WORD,
  type HealthKey,
  type HealthSlots,
  healthOf,
  openHealthSlots,
  releaseHealthSlot,
  takeHealthSlot,
} from "../image/health.ts";
import type { SharedImage } from "../image/shared.ts";
import type { GatedRRset, Gates } from "../model/gates.ts";
import {
  type Book,
  createBook,
  dropZoneBook,
  entryKey,
  type GatedEntry,
  type GatedProbe,
  type GatedValue,
  type HealthEvent,
  putEntry,
  removeEntry,
  type ZoneBook,
  zoneBook,
} from "./book.ts";
import type { KnownState } from "./messages.ts";
import type { ProbeSpec, ProbeState, Transition } from "./probe.ts";
import { createStateChanges, type StateChanges } from "./state-changes.ts";
import { type ProbeTarget, probeSettings, probeTarget } from "./target.ts";

export type GatesOptions = {
  readonly shared: SharedImage;
  /** The key of a probe from a text that says all of it, secrets included, so that no one can guess it. */
  readonly keyOf: (target: string) => HealthKey;
  /** The node's. */
  readonly region: string | undefined;
  /** Begins, changes or ends a probe. */
  readonly start: (spec: ProbeSpec) => void;
  readonly stop: (key: HealthKey) => void;
  /** Called once: nothing in the image is a predecessor's any more, and all that is gated has been begun. */
  readonly onTakenOver: () => void;
  readonly onEvent: (event: HealthEvent) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
};

/** The first `settle` also gives back the slots of a predecessor that nobody has taken: until then its RRsets may answer. */
export type HealthGates = Gates & {
  readonly book: Book;
  /** Of probes of the book; others are passed over. */
  readonly hear: (transitions: readonly Transition[]) => void;
  /** What the health thread knew of probes before it was told of them. */
  readonly recall: (states: readonly KnownState[]) => void;
};

const COMPLAINT_PAUSE_MS = 60_000;

type State = {
  readonly options: GatesOptions;
  readonly slots: HealthSlots;
  readonly book: Book;
  readonly changes: StateChanges;
  /** Probes of values that are in the book no more, each once a value. */
  readonly released: GatedProbe[];
  builds: number;
  isTakenOver: boolean;
  complainedMs: number;
};

/** Takes over the slots that a predecessor of this thread has handed out, with the states that they hold. */
export function openGates(options: GatesOptions): HealthGates {
  const book = createBook(options.region, options.onEvent);
  const state: State = {
    options,
    slots: openHealthSlots(options.shared),
    book,
    changes: createStateChanges(book),
    released: [],
    builds: 0,
    isTakenOver: false,
    complainedMs: Number.NEGATIVE_INFINITY,
  };
  return {
    book,
    gate: (rrset) => gate(state, rrset),
    ungate: (zone, name, type) => {
      const known = book.zones.get(zone);
      const entry = known?.entries.get(entryKey(name, type));
      if (known !== undefined && entry !== undefined) remove(state, known, entry);
    },
    beginZone: (zone) => {
      state.builds += 1;
      zoneBook(book, zone).building = state.builds;
    },
    endZone: (zone) => endZone(state, zone),
    ungateZone: (zone) => {
      const known = book.zones.get(zone);
      if (known === undefined) return;
      known.building = 0;
      for (const entry of [...known.entries.values()]) remove(state, known, entry);
      state.released.push(...known.held.splice(0));
      dropZoneBook(book, zone);
    },
    settle: () => settle(state),
    hear: (transitions) => {
      for (const transition of transitions) hear(state, transition);
    },
    recall: (states) => {
      for (const known of states) recall(state, known);
    },
  };
}

function gate(state: State, rrset: GatedRRset): readonly number[] {
  const { book } = state;
  const { zone, name, type, id, method } = rrset;
  const settings = probeSettings(rrset.template, type);
  const values = rrset.values.map(({ value, port, region }): GatedValue => {
    const target = probeTarget(settings, value, port);
    const probe = target === undefined ? undefined : probeOf(state, target);
    return { value, region, probe, lacksSlot: target !== undefined && probe === undefined };
  });
  const known = zoneBook(book, zone);
  const former = putEntry(book, known, { zone, name, type, id, method, values, build: known.building });
  if (former !== undefined) release(state, known, former);
  return values.map(({ probe }) => probe?.slot ?? 0);
}

/** The probe of that target, with one more holder. Undefined where no slot is left for it. */
function probeOf(state: State, target: ProbeTarget): GatedProbe | undefined {
  const { book, options, slots } = state;
  const key = options.keyOf(target.text);
  const known = book.probes.get(key);
  if (known !== undefined) {
    known.holders += 1;
    return known;
  }
  const slot = takeSlot(state, key);
  if (slot === undefined) return undefined;
  const spec: ProbeSpec = { ...target.spec, key, slot };
  const probe: GatedProbe = {
    key,
    slot,
    spec,
    state: stateInWords(slots.words, slot),
    holders: 1,
    rrsets: new Set(),
  };
  book.probes.set(key, probe);
  options.start(spec);
  return probe;
}

function takeSlot(state: State, key: HealthKey): number | undefined {
  try {
    return takeHealthSlot(state.slots, key);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const { now, log } = state.options;
    if (now() - state.complainedMs >= COMPLAINT_PAUSE_MS) {
      state.complainedMs = now();
      log("error", `values are answered without a health check: ${errorText(error)}`);
    }
    return undefined;
  }
}

function stateInWords(words: Int32Array, slot: number): ProbeState {
  const state = healthOf(Atomics.load(words, HEALTH_WORD.VERDICT + slot));
  return state === HEALTH.UNHEALTHY ? "unhealthy" : state === HEALTH.HEALTHY ? "healthy" : "unknown";
}

/** While the zone is built anew, what it had before answers still. */
function release(state: State, zone: ZoneBook, { values }: GatedEntry): void {
  const list = zone.building === 0 ? state.released : zone.held;
  for (const { probe } of values) if (probe !== undefined) list.push(probe);
}

function remove(state: State, zone: ZoneBook, entry: GatedEntry): void {
  removeEntry(zone, entry);
  release(state, zone, entry);
}

function endZone(state: State, name: string): void {
  const zone = state.book.zones.get(name);
  if (zone === undefined || zone.building === 0) return;
  const { building } = zone;
  zone.building = 0;
  for (const entry of [...zone.entries.values()]) if (entry.build !== building) remove(state, zone, entry);
  for (const probe of zone.held.splice(0)) state.released.push(probe);
  if (zone.entries.size === 0) dropZoneBook(state.book, name);
}

function settle(state: State): void {
  const { released, slots, book, options } = state;
  for (const probe of released.splice(0)) {
    probe.holders -= 1;
    if (probe.holders > 0) continue;
    book.probes.delete(probe.key);
    releaseHealthSlot(slots, probe.key);
    options.stop(probe.key);
  }
  if (state.isTakenOver) return;
  state.isTakenOver = true;
  dropUnheld(slots);
  options.onTakenOver();
}

function hear({ book, changes }: State, { key, from, to }: Transition): void {
  const probe = book.probes.get(key);
  if (probe === undefined) return;
  // A state from before the start that nobody told of is no event.
  changes.put(probe, from, () => "silent");
  changes.put(probe, to, () => "told");
}

/** What it was before the start is no event; what a health thread did not get to tell before it died is one. */
function recall({ book, changes }: State, { key, state }: KnownState): void {
  const probe = book.probes.get(key);
  if (probe !== undefined) changes.put(probe, state, (before) => (before === "unknown" ? "silent" : "told"));
}
