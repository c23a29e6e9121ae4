/** An event as it goes out: with its time, its node and an id. */
import type { EventInput, EventType } from "./event.ts";

export type Notice = {
  readonly type: EventType;
  readonly subject: string;
  readonly node: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** Nanoseconds since 1970; no two notices of a node have the same. */
  readonly timeNs: bigint;
  /** What both sinks send as `data`. */
  readonly data: Readonly<Record<string, unknown>>;
};

const NS_PER_MS = 1_000_000n;

/** Makes notices of what happens now. `now`: milliseconds since 1970. */
export function createNotices(node: string, now: () => number): (event: EventInput) => Notice {
  let lastNs = 0n;
  return ({ type, subject, data }) => {
    const timeMs = Math.floor(now());
    const clockNs = BigInt(timeMs) * NS_PER_MS;
    lastNs = clockNs > lastNs ? clockNs : lastNs + 1n;
    return { type, subject, node, timeMs, timeNs: lastNs, data: { ...data, subject } };
  };
}

export function isoTime({ timeMs }: Notice): string {
  return new Date(timeMs).toISOString();
}
