/**
 * What was answered, on its way from the threads that answer to the one that writes it down: a ring in shared memory for
 * each thread, with one writer and one reader. The writer never waits: what finds no room is dropped and counted.
 *
 * A ring is its head and tail, then EVENT_DATA_BYTES of events, each on a multiple of eight and never over the end: what
 * does not fit there begins at the front, behind a length of 0. Positions count bytes and only rise, modulo 2^32.
 */
import { EVENT_DATA_BYTES, EVENT_RING_BYTES, type SharedImage } from "./shared.ts";

const HEADER_BYTES = EVENT_RING_BYTES - EVENT_DATA_BYTES;

/** Words of a ring. */
export const EVENT_RING = {
  /** Writer: the thread whose ring it is. */
  HEAD: 0,
  /** Writer: whoever reads the events. A cache line further on. */
  TAIL: 16,
} as const;

/** Which of the two wanted the event. */
export const WANTED = { SAMPLED: 1, CAPTURED: 2 } as const;

/** By what an answer came to be: bits. */
export const SOURCE = {
  ZONE: 1,
  OVERRIDE: 2,
  CACHE: 4,
  STALE: 8,
  /** An upstream was asked. */
  FORWARDED: 16,
  BLOCKED: 32,
  REFUSED: 64,
  /** The server itself: what is malformed, other opcodes, class CH. */
  SERVER: 128,
} as const;

/** Bits of EVENT.TRAITS. */
export const TRAIT = { QUESTION: 1, EDNS: 2, DNSSEC_OK: 4 } as const;

/** An event, in bytes from its start. Numbers are little-endian. */
export const EVENT = {
  /** u32: bytes of the whole event, a multiple of eight. 0: go on at the front. */
  LENGTH: 0,
  /** u8 each: WANTED, TRANSPORT, bytes of the client's address, SOURCE. */
  WANTED: 4,
  TRANSPORT: 5,
  ADDRESS_BYTES: 6,
  SOURCES: 7,
  /** f64: milliseconds since 1970, of the answer. */
  TIME: 8,
  /** u32: microseconds that answering took. */
  MICROS: 16,
  /** u16: the client's port, 0 where nobody knows it. */
  PORT: 20,
  /** u16: flags of the answer's header. */
  FLAGS: 22,
  /** u16: question. */
  TYPE: 24,
  CLASS: 26,
  /** u16: with the upper bits that EDNS has. */
  RCODE: 28,
  /** u16: Extended DNS Error plus one. */
  EXTENDED_ERROR: 30,
  /** u16: RRs of the answer section. */
  ANSWERS: 32,
  /** u16: bytes of the answer. */
  ANSWER_BYTES: 34,
  /** u16: UDP size that the client takes by EDNS. */
  EDNS_BYTES: 36,
  /** u16: bytes of MESSAGE. */
  MESSAGE_BYTES: 38,
  /** u8: TRAIT. */
  TRAITS: 40,
  ADDRESS: 44,
  /** The answer, or header and question of it. */
  MESSAGE: 60,
} as const;

export type EventRing = {
  readonly words: Int32Array;
  /** Of the data. */
  readonly bytes: Uint8Array;
  readonly data: DataView;
};

export function eventRing(shared: SharedImage, thread: number): EventRing {
  const at = thread * EVENT_RING_BYTES;
  return {
    words: new Int32Array(shared.events, at, HEADER_BYTES / 4),
    bytes: new Uint8Array(shared.events, at + HEADER_BYTES, EVENT_DATA_BYTES),
    data: new DataView(shared.events, at + HEADER_BYTES, EVENT_DATA_BYTES),
  };
}

/** Bytes of an event whose message has so many. */
export function eventBytes(messageBytes: number): number {
  return (EVENT.MESSAGE + messageBytes + 7) & ~7;
}

/** Where an event of `length` bytes is to be written; -1: there is no room. `endEvent` lets it be seen. */
export function beginEvent({ words, data }: EventRing, length: number): number {
  const head = words[EVENT_RING.HEAD]!;
  const at = head & (EVENT_DATA_BYTES - 1);
  const toEnd = EVENT_DATA_BYTES - at;
  const needed = length <= toEnd ? length : toEnd + length;
  const used = (head - Atomics.load(words, EVENT_RING.TAIL)) >>> 0;
  if (needed > EVENT_DATA_BYTES - used) return -1;
  if (length <= toEnd) return at;
  data.setUint32(at + EVENT.LENGTH, 0, true);
  return 0;
}

/** The event at `at`, as `beginEvent` gave it, is complete. */
export function endEvent({ words }: EventRing, at: number, length: number): void {
  const head = words[EVENT_RING.HEAD]!;
  const before = head & (EVENT_DATA_BYTES - 1);
  const skipped = before === at ? 0 : EVENT_DATA_BYTES - before;
  Atomics.store(words, EVENT_RING.HEAD, (head + skipped + length) | 0);
}

/** Gives `visit` the places of up to `count` events, oldest first, each valid during its call only. The number of them. */
export function takeEvents({ words, data }: EventRing, count: number, visit: (at: number) => void): number {
  const head = Atomics.load(words, EVENT_RING.HEAD);
  let tail = words[EVENT_RING.TAIL]!;
  let taken = 0;
  while (tail !== head && taken < count) {
    const at = tail & (EVENT_DATA_BYTES - 1);
    const length = data.getUint32(at + EVENT.LENGTH, true);
    if (length === 0) {
      tail = (tail + EVENT_DATA_BYTES - at) | 0;
      continue;
    }
    visit(at);
    taken++;
    tail = (tail + length) | 0;
  }
  Atomics.store(words, EVENT_RING.TAIL, tail);
  return taken;
}
