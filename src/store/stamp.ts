/**
 * Hybrid logical clock: stamps that follow the wall clock where it runs forward, and never go back. As text: twelve
 * hexadecimal digits of milliseconds, four of a counter, "-", the node id. Text order is the order of time.
 */
import type { Stamp } from "./store.ts";

/** Below every other stamp. */
export const STAMP_ZERO: Stamp = "";

const MS_DIGITS = 12;
const COUNTER_DIGITS = 4;
const COUNTER_MAX = 0xffff;
const TIME_CHARACTERS = MS_DIGITS + COUNTER_DIGITS;

export type Clock = {
  /** A stamp above all that this clock gave or observed. */
  readonly next: () => Stamp;
  /** Takes notice of a stamp, wherever it was made. */
  readonly observe: (stamp: Stamp) => void;
  /** The greatest time given or observed, to be kept over a restart. */
  readonly reading: () => string;
  /** How far the stamps run ahead of the wall clock, milliseconds; 0 or less: not at all. */
  readonly aheadMs: () => number;
};

export function makeClock(nodeId: string, now: () => number): Clock {
  let ms = 0;
  let counter = 0;
  const observe = (stamp: Stamp) => {
    if (stamp === STAMP_ZERO) return;
    const theirMs = stampMs(stamp);
    const theirCounter = Number.parseInt(stamp.slice(MS_DIGITS, TIME_CHARACTERS), 16);
    if (theirMs < ms || (theirMs === ms && theirCounter <= counter)) return;
    ms = theirMs;
    counter = theirCounter;
  };
  const advance = () => {
    const wall = now();
    if (wall > ms) {
      ms = wall;
      counter = 0;
    } else if (counter < COUNTER_MAX) counter++;
    else {
      ms++;
      counter = 0;
    }
  };
  return {
    observe,
    next: () => {
      advance();
      return `${timeText(ms, counter)}-${nodeId}`;
    },
    reading: () => timeText(ms, counter),
    aheadMs: () => ms - now(),
  };
}

function timeText(ms: number, counter: number): string {
  return ms.toString(16).padStart(MS_DIGITS, "0") + counter.toString(16).padStart(COUNTER_DIGITS, "0");
}

/** Milliseconds since 1970; 0 of stamp zero. */
export function stampMs(stamp: Stamp): number {
  return stamp === STAMP_ZERO ? 0 : Number.parseInt(stamp.slice(0, MS_DIGITS), 16);
}

/** What all stamps of later milliseconds are not below, and no others: to compare many with one moment. */
export function stampBehind(ms: number): Stamp {
  return (Math.floor(ms) + 1).toString(16).padStart(MS_DIGITS, "0");
}

/** The node that made it; "" of stamp zero. */
export function stampNode(stamp: Stamp): string {
  return stamp.slice(TIME_CHARACTERS + 1);
}

const STAMP_PATTERN = /^[0-9a-f]{16}-[\x21-\x7e]{1,64}$/;

/** Whether a text from outside is a stamp at all. */
export function isStamp(text: string): boolean {
  return text === STAMP_ZERO || STAMP_PATTERN.test(text);
}
