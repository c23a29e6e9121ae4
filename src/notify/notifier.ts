/** Events to sinks: which are sent, when they repeat, and a lane for each sink. */
import type { Log } from "../base/log.ts";
import type { Emit, EventType } from "./event.ts";
import { type Clock, createLane, type LaneStats } from "./lane.ts";
import { FLUSH_MS } from "./limits.ts";
import { createNotices } from "./notice.ts";
import { createRepeats } from "./repeats.ts";
import type { Sink } from "./sink.ts";

export type NotifierOptions = {
  /** None: every event is passed over. */
  readonly sinks: readonly Sink[];
  readonly nodeId: string;
  /** Empty: all. */
  readonly eventTypes: readonly EventType[];
  readonly minIntervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly queueMax?: number;
};

export type NotifierStats = {
  readonly lanes: readonly LaneStats[];
  /** Events that found no place, counted once a sink. */
  readonly dropped: number;
  /** Repeats that were not sent. */
  readonly suppressed: number;
};

export type Notifier = AsyncDisposable & {
  readonly emit: Emit;
  readonly stats: () => NotifierStats;
  /** Takes no more; settles when all is delivered, or after FLUSH_MS, when the rest is given up. */
  readonly close: () => Promise<void>;
};

export function createNotifier(options: NotifierOptions): Notifier {
  const { sinks, nodeId, eventTypes, minIntervalMs, clock, log, queueMax } = options;
  const lanes = sinks.map((sink) => createLane({ sink, clock, log, ...(queueMax === undefined ? {} : { queueMax }) }));
  const repeats = createRepeats(minIntervalMs, clock.elapsedMs);
  const noticeOf = createNotices(nodeId, clock.nowMs);
  let suppressed = 0;
  let closing: Promise<void> | undefined;
  const emit: Emit = (event) => {
    if (lanes.length === 0 || closing !== undefined) return;
    if (eventTypes.length > 0 && !eventTypes.includes(event.type)) return;
    if (repeats.isRepeat(event)) {
      suppressed += 1;
      return;
    }
    const notice = noticeOf(event);
    const taken = lanes.filter((lane) => lane.offer(notice));
    // What nobody took was not sent, and the next one like it is no repeat.
    if (taken.length > 0) repeats.remember(event);
  };
  const close = async (): Promise<void> => {
    const flushed = new AbortController();
    const idle = Promise.all(lanes.map((lane) => lane.idle())).then(() => {});
    await Promise.race([idle, clock.pause(FLUSH_MS, flushed.signal)]);
    flushed.abort();
    for (const lane of lanes) {
      const { sink, queued } = lane.stats();
      if (queued > 0) log("warn", "events are given up: the node stops", { sink, events: queued });
      lane.close();
    }
    await idle;
  };
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  return {
    emit,
    stats: () => {
      const stats = lanes.map((lane) => lane.stats());
      return { lanes: stats, dropped: stats.reduce((sum, { dropped }) => sum + dropped, 0), suppressed };
    },
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}
