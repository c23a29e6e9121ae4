/**
 * The ring of the cache: where the next entry goes, and what has to go for it. One writer.
 *
 * Entries lie one behind the other, never over the end of the ring. What lies between tail and head is there; the memory
 * ahead of the head is free up to the tail. A lap is one way through the ring, so that a position is never used twice
 * while a reader could remember it.
 */
import { CACHE_UNIT_WORDS, CACHE_WORD, type CacheLayout, ENTRY } from "./cache.ts";

export type CacheRing = {
  readonly words: Int32Array;
  readonly layout: CacheLayout;
  headLap: number;
  headPlace: number;
  tailLap: number;
  tailPlace: number;
  /** Place behind the last entry of the tail's lap, while the head is a lap further. */
  lapEnd: number;
};

/** An empty ring whose positions lie behind `head`, the position that a former ring ended at. */
export function createCacheRing(words: Int32Array, layout: CacheLayout, head: number): CacheRing {
  const ring: CacheRing = { words, layout, headLap: 0, headPlace: 0, tailLap: 0, tailPlace: 0, lapEnd: 0 };
  // Two laps on: a writer that died may have put an entry behind the head that it noted.
  ring.headLap = lapBehind(layout, lapBehind(layout, head >>> layout.lapBits));
  moveTail(ring, ring.headLap, 0);
  Atomics.store(words, CACHE_WORD.HEAD, headPosition(ring));
  return ring;
}

/** The lap behind another. No lap is 0, so that no position is. */
function lapBehind({ lapBits }: CacheLayout, lap: number): number {
  const next = (lap + 1) & (2 ** (32 - lapBits) - 1);
  return next === 0 ? 1 : next;
}

function positionOf({ layout }: CacheRing, lap: number, place: number): number {
  return (lap << layout.lapBits) | place;
}

export function headPosition(ring: CacheRing): number {
  return positionOf(ring, ring.headLap, ring.headPlace);
}

export function tailPosition(ring: CacheRing): number {
  return positionOf(ring, ring.tailLap, ring.tailPlace);
}

/**
 * Memory before the new tail may be overwritten as soon as this returns: the load behind the store keeps later stores from
 * being seen before it, on arm64 too.
 */
function moveTail(ring: CacheRing, lap: number, place: number): void {
  ring.tailLap = lap;
  ring.tailPlace = place;
  Atomics.store(ring.words, CACHE_WORD.TAIL, positionOf(ring, lap, place));
  Atomics.load(ring.words, CACHE_WORD.TAIL);
}

/** The word at which what lies at a place begins. */
export function wordOfPlace({ layout }: CacheRing, place: number): number {
  return layout.ringAt + place * CACHE_UNIT_WORDS;
}

/** Makes room for so many units at the head; `onGone` is told the word of each entry that goes, while it can still be read. */
export function reserve(ring: CacheRing, units: number, onGone: (entry: number) => void): void {
  for (;;) {
    if (ring.tailLap !== ring.headLap) {
      if (ring.tailPlace - ring.headPlace >= units) return;
      dropOldest(ring, onGone);
    } else {
      if (ring.layout.ringUnits - ring.headPlace >= units) return;
      ring.lapEnd = ring.headPlace;
      ring.headLap = lapBehind(ring.layout, ring.headLap);
      ring.headPlace = 0;
      if (ring.tailPlace === ring.lapEnd) moveTail(ring, ring.headLap, 0);
    }
  }
}

function dropOldest(ring: CacheRing, onGone: (entry: number) => void): void {
  const entry = wordOfPlace(ring, ring.tailPlace);
  const next = ring.tailPlace + ring.words[entry + ENTRY.UNITS]!;
  onGone(entry);
  if (next === ring.lapEnd) moveTail(ring, ring.headLap, 0);
  else moveTail(ring, ring.tailLap, next);
}

/** Moves the head behind an entry that was written there and can be found. */
export function moveHead(ring: CacheRing, units: number): void {
  ring.headPlace += units;
  Atomics.store(ring.words, CACHE_WORD.HEAD, headPosition(ring));
}

/** Calls `visit` with the word of every entry that lies in the ring, found or not, oldest first. */
export function walkRing(ring: CacheRing, visit: (entry: number) => void): void {
  const isWrapped = ring.tailLap !== ring.headLap;
  walkPlaces(ring, ring.tailPlace, isWrapped ? ring.lapEnd : ring.headPlace, visit);
  if (isWrapped) walkPlaces(ring, 0, ring.headPlace, visit);
}

function walkPlaces(ring: CacheRing, from: number, to: number, visit: (entry: number) => void): void {
  for (let place = from; place < to; ) {
    const entry = wordOfPlace(ring, place);
    place += ring.words[entry + ENTRY.UNITS]!;
    visit(entry);
  }
}
