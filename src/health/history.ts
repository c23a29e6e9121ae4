/**
 * The last outcomes of every probe, packed: 13 bytes each, and text for failures only. A probe has a place while it is known.
 */
import { HISTORY_MAX, PROBE_ERRORS, type ProbeOutcome, type ProbeStatus } from "./probe.ts";

type Columns = {
  readonly atMs: Float64Array;
  readonly latencyUs: Uint32Array;
  /** 0 for a success, else one more than the error's index in PROBE_ERRORS. */
  readonly errors: Uint8Array;
  /** By place: how many outcomes there are, and where the next one goes. */
  readonly counts: Uint8Array;
  readonly next: Uint8Array;
};

export type History = {
  columns: Columns;
  used: number;
  readonly free: number[];
  /** By place, for those that have failed. */
  readonly details: Map<number, (string | undefined)[]>;
  /** Texts of late, so that a thousand probes that fail alike share one. */
  readonly texts: Map<string, string>;
};

const FIRST_PLACES = 64;
const TEXTS_MAX = 1_024;
const DETAIL_LENGTH_MAX = 200;
const LATENCY_US_MAX = 2 ** 32 - 1;

const ERROR_CODES: ReadonlyMap<string, number> = new Map(PROBE_ERRORS.map((error, index) => [error, index + 1]));

export function createHistory(): History {
  return { columns: makeColumns(FIRST_PLACES), used: 0, free: [], details: new Map(), texts: new Map() };
}

function makeColumns(places: number): Columns {
  return {
    atMs: new Float64Array(places * HISTORY_MAX),
    latencyUs: new Uint32Array(places * HISTORY_MAX),
    errors: new Uint8Array(places * HISTORY_MAX),
    counts: new Uint8Array(places),
    next: new Uint8Array(places),
  };
}

export function takePlace(history: History): number {
  const freed = history.free.pop();
  if (freed !== undefined) return freed;
  const { columns } = history;
  if (history.used === columns.counts.length) {
    const larger = makeColumns(history.used * 2);
    larger.atMs.set(columns.atMs);
    larger.latencyUs.set(columns.latencyUs);
    larger.errors.set(columns.errors);
    larger.counts.set(columns.counts);
    larger.next.set(columns.next);
    history.columns = larger;
  }
  return history.used++;
}

/** Forgets the outcomes at a place that is kept. */
export function clearPlace(history: History, place: number): void {
  history.columns.counts[place] = 0;
  history.columns.next[place] = 0;
  history.details.delete(place);
}

export function freePlace(history: History, place: number): void {
  clearPlace(history, place);
  history.free.push(place);
}

export function noteOutcome(history: History, place: number, atMs: number, outcome: ProbeOutcome): void {
  const { columns } = history;
  const index = columns.next[place]!;
  const at = place * HISTORY_MAX + index;
  columns.atMs[at] = atMs;
  columns.latencyUs[at] = Math.min(Math.max(Math.round(outcome.latencyUs), 0), LATENCY_US_MAX);
  columns.errors[at] = outcome.error === undefined ? 0 : (ERROR_CODES.get(outcome.error) ?? 0);
  columns.next[place] = (index + 1) % HISTORY_MAX;
  columns.counts[place] = Math.min(columns.counts[place]! + 1, HISTORY_MAX);
  noteDetail(history, place, index, outcome);
}

function noteDetail(history: History, place: number, index: number, { error, detail }: ProbeOutcome): void {
  const details = history.details.get(place);
  if (error === undefined || detail === undefined) {
    if (details !== undefined) details[index] = undefined;
    return;
  }
  const text = shared(history, detail.slice(0, DETAIL_LENGTH_MAX));
  if (details !== undefined) details[index] = text;
  else {
    const own = new Array<string | undefined>(HISTORY_MAX).fill(undefined);
    own[index] = text;
    history.details.set(place, own);
  }
}

function shared({ texts }: History, text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= TEXTS_MAX) texts.clear();
  texts.set(text, text);
  return text;
}

/** Oldest first. */
export function outcomesAt({ columns, details }: History, place: number): ProbeStatus["history"] {
  const count = columns.counts[place]!;
  const first = columns.next[place]! + HISTORY_MAX - count;
  const texts = details.get(place);
  return Array.from({ length: count }, (_, nth) => {
    const index = (first + nth) % HISTORY_MAX;
    const at = place * HISTORY_MAX + index;
    const error = PROBE_ERRORS[columns.errors[at]! - 1];
    const detail = texts?.[index];
    return {
      atMs: columns.atMs[at]!,
      latencyUs: columns.latencyUs[at]!,
      ...(error === undefined ? {} : { error }),
      ...(detail === undefined ? {} : { detail }),
    };
  });
}
