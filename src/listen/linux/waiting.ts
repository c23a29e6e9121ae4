/** Waiting for one of several sockets, and clocks that allocate nothing. */
import { type Libc, TIMESPEC_BYTES } from "./libc.ts";

const POLLIN = 1;
const CLOCK_REALTIME = 0;
const CLOCK_MONOTONIC = 1;

/** Waits until one of several sockets can be read. */
export type PollSet = {
  /** The number of readable sockets after at most `timeoutMs`. */
  readonly wait: (timeoutMs: number) => number;
  readonly isReadable: (index: number) => boolean;
};

export function createPollSet(libc: Libc, descriptors: readonly number[]): PollSet {
  const words = new Int32Array(descriptors.length * 2);
  for (const [index, descriptor] of descriptors.entries()) {
    words[index * 2] = descriptor;
    words[index * 2 + 1] = POLLIN;
  }
  const address = libc.addressOf(words.buffer);
  return {
    wait: (timeoutMs) => libc.poll(address, descriptors.length, timeoutMs),
    // revents is the upper half of the second word; an error of the socket must be read too, so any bit counts.
    isReadable: (index) => words[index * 2 + 1]! >>> 16 !== 0,
  };
}

/** Milliseconds since 1970 as `Date.now` gives them, which gives a new object on the heap with every call. */
export function createWallClock(libc: Libc): () => number {
  const words = new Int32Array(TIMESPEC_BYTES / 4);
  const address = libc.addressOf(words.buffer);
  return () => {
    libc.clockGettime(CLOCK_REALTIME, address);
    // Unsigned, the lower word of the seconds lasts until 2106.
    return (words[0]! >>> 0) * 1000 + Math.trunc(words[2]! / 1_000_000);
  };
}

/** Measures times below half an hour in whole microseconds. */
export type Stopwatch = {
  readonly start: () => void;
  /** Since the last start. */
  readonly elapsedUs: () => number;
};

/** `performance.now` too gives a new object each time. */
export function createStopwatch(libc: Libc): Stopwatch {
  const words = new Int32Array((TIMESPEC_BYTES / 4) * 2);
  const started = libc.addressOf(words.buffer);
  const stopped = started + TIMESPEC_BYTES;
  return {
    start: () => {
      libc.clockGettime(CLOCK_MONOTONIC, started);
    },
    elapsedUs: () => {
      libc.clockGettime(CLOCK_MONOTONIC, stopped);
      // The lower words of both seconds are enough for their difference.
      const seconds = (words[4]! - words[0]!) | 0;
      return (Math.imul(seconds, 1_000_000) + (((words[6]! - words[2]!) / 1000) | 0)) | 0;
    },
  };
}
