/** An answerer for tests of the listeners: what it answers is plain to see in the query. */
import { type Answerer, TAKEN } from "../../../src/answer/answerer.ts";
import { createNameKey } from "../../../src/image/name-key.ts";

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
  /** Has to be resolved; where nobody is waited for, the answer is the query with the extended error behind it. */
  RESOLVE: 6,
  /** The query, and the entry of the cache at word 77 is to be refreshed. */
  REFRESH: 7,
  /** The query, and that is for this client. */
  OWN: 8,
  /** As many bytes as the two bytes behind the action say. */
  LONG: 4,
} as const;

/** `entered` counts batches that have begun, less those that have ended. */
export type FakeAnswerer = Answerer & { readonly entered: () => number };

export function createFakeAnswerer(): FakeAnswerer {
  let entered = 0;
  let refresh = 0;
  let isForClient = false;
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
      refresh = bytes[offset + 2] === ACTION.REFRESH ? 77 : 0;
      isForClient = bytes[offset + 2] === ACTION.OWN;
      switch (bytes[offset + 2]) {
        case ACTION.RESOLVE:
          return TAKEN;
        case ACTION.REFRESH:
        case ACTION.OWN:
          return length;
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
    answerNow: (bytes, offset, length, _room, _address, _addressOffset, _addressLength, _transport, extendedError) => {
      bytes[offset + length] = extendedError;
      return length + 1;
    },
    need: { route: 0, key: createNameKey(), type: 0, flags: 0 },
    acceptFrom: () => {},
    client: { port: 0, takenMs: 0 },
    setView: () => {},
    answerWith: (_bytes, _offset, length) => length,
    note: () => {},
    get refresh() {
      return refresh;
    },
    get isForClient() {
      return isForClient;
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
