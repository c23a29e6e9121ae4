/**
 * Queries that image and cache cannot answer, on their way from the thread that took them to the one that resolves: a
 * ring in shared memory for each thread, with one writer and one reader.
 *
 * A ring is `HANDOVER_BYTES` long. Its first words are HANDOVER_RING; the rest is data, in which records lie one behind the
 * other, each on a whole word, and never over the end: what does not fit there begins at the front, behind a record of
 * length 0. The positions count bytes of data and only rise, modulo 2^32, which the data's size divides.
 *
 * Who writes a position has written all that lies before it. A thread that dies leaves its ring as it is, and the next one
 * goes on from there.
 */
import { HANDOVER_BYTES, HANDOVER_DATA_BYTES, type SharedImage } from "./shared.ts";

/** Words of a ring. */
export const HANDOVER_RING = {
  /** Written: where the next record begins. Writer: the thread whose ring it is. */
  HEAD: 0,
  /** Taken: where the oldest record begins. A cache line further on, since another thread writes it. Writer: resolve. */
  TAIL: 16,
  WORDS: 32,
} as const;

/** What a record asks for. */
export const HANDOVER_KIND = {
  /** An answer to a datagram, which leaves on the socket `socket` of the thread by its descriptor. */
  DATAGRAM: 1,
  /** An answer to be handed back to the thread by a message with `token`. */
  MESSAGE: 2,
  /** No answer: what the cache has for the question is to be refreshed, because it is popular and near its end. */
  REFRESH: 3,
} as const;

/** A record, in bytes from its start. */
export const HANDOVER = {
  /** u32: bytes of the whole record with this header, a multiple of four. 0: go on at the front. */
  LENGTH: 0,
  /** u8 HANDOVER_KIND, u8 TRANSPORT, u8 bytes of the client's address, u8 bytes of the socket name. */
  KIND: 4,
  TRANSPORT: 5,
  ADDRESS_BYTES: 6,
  NAME_BYTES: 7,
  /** i32: MESSAGE: what the thread knows the query by. DATAGRAM: index of its socket. REFRESH: word of the cache's entry. */
  TOKEN: 8,
  /** u16 bytes of the query; u16 bytes of the control message that the answer takes along (its local address). */
  QUERY_BYTES: 12,
  CONTROL_BYTES: 14,
  /**
   * Behind it: the client's address (16), its socket name (28, as the kernel gave it; of a MESSAGE only its first four bytes,
   * of which the latter two are the port), the control message (40), the query.
   */
  ADDRESS: 16,
  NAME: 32,
  CONTROL: 60,
  QUERY: 100,
} as const;

/** One thread's ring. */
export type HandoverRing = {
  /** HANDOVER_RING. */
  readonly words: Int32Array;
  readonly data: DataView;
  readonly bytes: Uint8Array;
};

export function handoverRing(shared: SharedImage, thread: number): HandoverRing {
  const at = thread * HANDOVER_BYTES;
  const dataAt = at + HANDOVER_RING.WORDS * 4;
  return {
    words: new Int32Array(shared.handover, at, HANDOVER_RING.WORDS),
    data: new DataView(shared.handover, dataAt, HANDOVER_DATA_BYTES),
    bytes: new Uint8Array(shared.handover, dataAt, HANDOVER_DATA_BYTES),
  };
}
