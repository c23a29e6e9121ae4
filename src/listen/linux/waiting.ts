/** Waiting for one of several sockets, and a stopwatch that allocates nothing. */
import { type Libc, TIMESPEC_BYTES } from "./libc.ts";

const POLLIN = 1;
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

/** Measures times below half an hour in whole microseconds. */
export type Stopwatch = {
  readonly start: () => void;
  /** Since the last start. */
  readonly elapsedUs: () => number;
};

/** `performance.now` gives a new object on the heap with every call. */
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
