/** An answerer for tests of the listeners: what it answers is plain to see in the query. */
import type { Answerer } from "../../../src/answer/answerer.ts";

/** First byte of a test query behind its two-byte id. */
export const ACTION = {
  /** The query, with the client's address behind it. */
  ECHO: 1,
  /** Nothing. */
  SILENCE: 2,
  /** Throws. */
  THROW: 3,
  /** Throws, and before that when it is read ahead. */
  THROW_EARLY: 5,
  /** As many bytes as the two bytes behind the action say. */
  LONG: 4,
} as const;

/** `entered` counts batches that have begun, less those that have ended. */
export type FakeAnswerer = Answerer & { readonly entered: () => number };

export function createFakeAnswerer(): FakeAnswerer {
  let entered = 0;
  return {
    enter: () => {
      entered += 1;
    },
    leave: () => {
      entered -= 1;
    },
    readAhead: (bytes, offset) => {
      if (entered !== 1) throw new Error("read ahead outside of a batch");
      if (bytes[offset + 2] === ACTION.THROW_EARLY) throw new Error("asked to throw");
    },
    prefetch: () => {},
    entered: () => entered,
    answer: (bytes, offset, length, room, address, addressOffset, addressLength) => {
      if (entered !== 1) throw new Error("answered outside of a batch");
      switch (bytes[offset + 2]) {
        case ACTION.SILENCE:
          return 0;
        case ACTION.THROW:
        case ACTION.THROW_EARLY:
          throw new Error("asked to throw");
        case ACTION.LONG: {
          const wanted = Math.min(room, (bytes[offset + 3]! << 8) | bytes[offset + 4]!);
          bytes.fill(bytes[offset + 1]!, offset + length, offset + wanted);
          return wanted;
        }
        default:
          bytes.set(address.subarray(addressOffset, addressOffset + addressLength), offset + length);
          return length + addressLength;
      }
    },
  };
}

/** A test query: id, action, and what follows. */
export function testQuery(id: number, action: number, ...rest: readonly number[]): Buffer {
  return Buffer.from([id >> 8, id & 255, action, ...rest]);
}

/** A test query that asks for an answer of `length` bytes. */
export function longQuery(id: number, length: number): Buffer {
  return testQuery(id, ACTION.LONG, length >> 8, length & 255);
}
