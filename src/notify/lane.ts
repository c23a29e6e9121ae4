/**
 * The way to one sink: a bounded queue, a few events under way at once, retries. Events about the same subject never overtake
 * each other, and a sink that is slow or gone holds up nobody else.
 */
import { errorCode, errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { COMPLAINT_PAUSE_MS, IN_FLIGHT_MAX, QUEUE_MAX, REASON_CHARACTERS_MAX, RETRY_PAUSES_MS } from "./limits.ts";
import type { Notice } from "./notice.ts";
import type { Attempt, Sink, SinkName } from "./sink.ts";

/** Time as the notifier has it; a test has its own. */
export type Clock = {
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly elapsedMs: () => number;
  /** Resolves after that long, or when the signal is given. */
  readonly pause: (pauseMs: number, signal: AbortSignal) => Promise<void>;
};

export type LaneStats = {
  readonly sink: SinkName;
  readonly delivered: number;
  readonly failed: number;
  readonly dropped: number;
  /** Waiting or under way. */
  readonly queued: number;
};

export type Lane = {
  /** False: the queue is full, and the event is dropped and counted. */
  readonly offer: (notice: Notice) => boolean;
  readonly stats: () => LaneStats;
  /** Settles when nothing waits or is under way. */
  readonly idle: () => Promise<void>;
  /** Gives up what is left, which counts as dropped; it is idle soon after. */
  readonly close: () => void;
};

export type LaneOptions = {
  readonly sink: Sink;
  readonly clock: Clock;
  readonly log: Log;
  readonly queueMax?: number;
};

export function createLane({ sink, clock, log, queueMax = QUEUE_MAX }: LaneOptions): Lane {
  const waiting: Notice[] = [];
  const busySubjects = new Set<string>();
  const counts = { delivered: 0, failed: 0, dropped: 0 };
  const ended = new AbortController();
  const complaints = createComplaints(sink.name, clock, log);
  let onIdle: (() => void)[] = [];

  const carry = async (notice: Notice): Promise<void> => {
    const outcome = await deliver(sink, notice, clock, ended.signal);
    busySubjects.delete(notice.subject);
    if (outcome.kind === "delivered") {
      counts.delivered += 1;
      complaints.delivered();
    } else if (ended.signal.aborted) {
      counts.dropped += 1;
    } else {
      counts.failed += 1;
      complaints.add(`events could not be delivered: ${outcome.reason}`);
    }
    pump();
  };
  const pump = (): void => {
    while (busySubjects.size < IN_FLIGHT_MAX) {
      const next = waiting.findIndex(({ subject }) => !busySubjects.has(subject));
      const [notice] = next < 0 ? [] : waiting.splice(next, 1);
      if (notice === undefined) break;
      busySubjects.add(notice.subject);
      void carry(notice);
    }
    if (waiting.length + busySubjects.size > 0) return;
    for (const tell of onIdle.splice(0)) tell();
  };
  return {
    offer: (notice) => {
      if (waiting.length >= queueMax || ended.signal.aborted) {
        counts.dropped += 1;
        complaints.add("events were dropped: too many wait already");
        return false;
      }
      waiting.push(notice);
      pump();
      return true;
    },
    stats: () => ({ sink: sink.name, ...counts, queued: waiting.length + busySubjects.size }),
    idle: () =>
      new Promise((resolve) => {
        onIdle = [...onIdle, resolve];
        pump();
      }),
    close: () => {
      counts.dropped += waiting.splice(0).length;
      ended.abort();
      sink.close();
    },
  };
}

/** Attempts until one goes well, one is refused, or none is left. Never rejects. */
async function deliver(sink: Sink, notice: Notice, clock: Clock, signal: AbortSignal): Promise<Attempt> {
  for (const pauseMs of RETRY_PAUSES_MS) {
    const outcome = await attempt(sink, notice, signal);
    if (outcome.kind !== "failed" || signal.aborted) return outcome;
    await clock.pause(pauseMs, signal);
    if (signal.aborted) return outcome;
  }
  return await attempt(sink, notice, signal);
}

async function attempt(sink: Sink, notice: Notice, signal: AbortSignal): Promise<Attempt> {
  try {
    return await sink.attempt(notice, signal);
  } catch (error) {
    // Neither has the URL, whose path may be a secret, nor a header.
    const reason = `${errorCode(error) ?? ""} ${errorText(error)}`.trim().slice(0, REASON_CHARACTERS_MAX);
    return { kind: "failed", reason };
  }
}

type Complaints = { readonly add: (what: string) => void; readonly delivered: () => void };

/** One line at the first trouble, then at most one a pause, with how many events it is about, and one when it is over. */
function createComplaints(sink: SinkName, { elapsedMs }: Clock, log: Log): Complaints {
  let unsaid = 0;
  let saidMs = Number.NEGATIVE_INFINITY;
  /** Of a trouble that was said and is not over. */
  let isTroubled = false;
  return {
    add: (what) => {
      unsaid += 1;
      if (elapsedMs() - saidMs < COMPLAINT_PAUSE_MS) return;
      log("warn", what, { sink, events: unsaid });
      saidMs = elapsedMs();
      unsaid = 0;
      isTroubled = true;
    },
    delivered: () => {
      if (!isTroubled) return;
      log("info", "events are delivered again", { sink, lost: unsaid });
      unsaid = 0;
      isTroubled = false;
    },
  };
}
