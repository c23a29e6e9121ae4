/** Keeps one outgoing stream to one peer: dials, waits longer after each failure, dials again. */
import type { Timers } from "../cluster/transport.ts";

export const REDIAL_LEAST_MS = 200;
export const REDIAL_MOST_MS = 30_000;
/** A stream that lived as long was a good one: what ended it says nothing of the next attempt. */
const GOOD_STREAM_MS = 10_000;

export type DialAttempt = { readonly abandon: () => void };

export type DialerOptions = {
  /** Begins an attempt; the dialer is told `opened`, and in any case `ended` once. */
  readonly dial: () => DialAttempt;
  readonly timers: Timers;
  /** From 0 to below 1. */
  readonly random: () => number;
};

export type Dialer = {
  readonly opened: () => void;
  /** The attempt or the stream is over. */
  readonly ended: () => void;
  /** Dials now where it would wait, and begins with short waits again: the peer is said to be alive. */
  readonly hurry: () => void;
  /** The peer has reached us. Dials now where it waits because it could not be reached; not where its streams end at once. */
  readonly encourage: () => void;
  /** Gives up, and an attempt that is under way; an open stream is its owner's. */
  readonly stop: () => void;
};

/** After so many failures one after another: doubled each time, and at least half of it, so that nodes do not dial in step. */
export function redialDelayMs(failures: number, random: number): number {
  const most = Math.min(REDIAL_MOST_MS, REDIAL_LEAST_MS * 2 ** Math.max(0, failures - 1));
  return most / 2 + (most / 2) * random;
}

/** Dials at once. */
export function createDialer({ dial, timers, random }: DialerOptions): Dialer {
  let failures = 0;
  let openedAtMs: number | undefined;
  let wasOpen = false;
  let attempt: DialAttempt | undefined;
  let callOff: (() => void) | undefined;
  let isStopped = false;

  const start = () => {
    callOff = undefined;
    attempt = dial();
  };
  const wait = (delayMs: number) => {
    callOff = timers.after(delayMs, start);
  };
  const dialNow = () => {
    if (callOff === undefined || isStopped) return;
    callOff();
    wait(0);
  };
  wait(0);
  return {
    opened: () => {
      openedAtMs = timers.now();
    },
    ended: () => {
      const lived = openedAtMs === undefined ? 0 : timers.now() - openedAtMs;
      wasOpen = openedAtMs !== undefined;
      failures = lived >= GOOD_STREAM_MS ? 1 : failures + 1;
      openedAtMs = undefined;
      attempt = undefined;
      if (!isStopped) wait(redialDelayMs(failures, random()));
    },
    hurry: () => {
      failures = 0;
      dialNow();
    },
    encourage: () => {
      if (!wasOpen) dialNow();
    },
    stop: () => {
      isStopped = true;
      callOff?.();
      callOff = undefined;
      attempt?.abandon();
    },
  };
}
