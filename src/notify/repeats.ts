/**
 * Which events are repeats: the same type about the same subject, sooner after the one that was sent than the interval. What
 * flaps without end is still told of once an interval.
 */
import type { EventInput } from "./event.ts";
import { REMEMBERED_MAX } from "./limits.ts";

export type Repeats = {
  readonly isRepeat: (event: EventInput) => boolean;
  /** It is sent now. */
  readonly remember: (event: EventInput) => void;
};

/** `elapsedMs`: a clock that nobody sets. An interval of 0 knows no repeats. */
export function createRepeats(intervalMs: number, elapsedMs: () => number, rememberedMax = REMEMBERED_MAX): Repeats {
  /** When each was sent; the map's order is that of time. */
  const sent = new Map<string, number>();
  const keyOf = ({ type, subject }: EventInput) => `${type} ${subject}`;
  const forgetOld = (nowMs: number) => {
    for (const [key, sentMs] of sent) {
      if (nowMs - sentMs < intervalMs && sent.size < rememberedMax) return;
      sent.delete(key);
    }
  };
  return {
    isRepeat: (event) => {
      const sentMs = sent.get(keyOf(event));
      return sentMs !== undefined && elapsedMs() - sentMs < intervalMs;
    },
    remember: (event) => {
      if (intervalMs === 0) return;
      const nowMs = elapsedMs();
      const key = keyOf(event);
      sent.delete(key);
      forgetOld(nowMs);
      sent.set(key, nowMs);
    },
  };
}
