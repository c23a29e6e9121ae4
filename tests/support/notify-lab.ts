/** What tests of events have in common: a clock that stands still until it is told, and sinks that do as they are told. */
import type { Log, LogLine } from "../../src/base/log.ts";
import type { Clock } from "../../src/notify/lane.ts";
import type { Notice } from "../../src/notify/notice.ts";
import type { Attempt, Sink, SinkName } from "../../src/notify/sink.ts";
import { createSimulatedClock } from "./simulated-clock.ts";

export type NotifyClock = Clock & { readonly pass: (ms: number) => Promise<void> };

/** Every pause is a multiple of it. */
const STEP_MS = 1_000;

export function createNotifyClock(): NotifyClock {
  const clock = createSimulatedClock();
  return {
    nowMs: clock.wallMs,
    elapsedMs: clock.now,
    pause: (pauseMs, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const cancel = clock.after(pauseMs, resolve);
        signal.addEventListener("abort", () => {
          cancel();
          resolve();
        });
      }),
    pass: async (ms) => {
      await settled();
      // In steps: what follows from a pause that ends may begin the next one before time goes on.
      for (let left = ms; left > 0; left -= STEP_MS) {
        await clock.pass(Math.min(left, STEP_MS));
        await settled();
      }
    },
  };
}

/** When every promise that waits for nothing but others has settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export type ScriptedSink = Sink & {
  /** Every attempt so far, with the time of the clock. */
  readonly attempts: readonly { readonly notice: Notice; readonly atMs: number }[];
  readonly isClosed: () => boolean;
};

/** `answer` gives what becomes of the nth attempt (from 0); a promise of it may never settle but by the signal. */
export function createScriptedSink(
  clock: Clock,
  answer: (notice: Notice, index: number) => Attempt | Promise<Attempt>,
  name: SinkName = "webhook",
): ScriptedSink {
  const attempts: { readonly notice: Notice; readonly atMs: number }[] = [];
  let closed = false;
  return {
    name,
    attempts,
    attempt: (notice, signal) => {
      attempts.push({ notice, atMs: clock.elapsedMs() });
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")));
        Promise.resolve(answer(notice, attempts.length - 1)).then(resolve, reject);
      });
    },
    close: () => {
      closed = true;
    },
    isClosed: () => closed,
  };
}

export const DELIVERED: Attempt = { kind: "delivered" };
export const FAILED: Attempt = { kind: "failed", reason: "answered 503" };
export const REFUSED: Attempt = { kind: "refused", reason: "answered 404" };
/** What a sink that never answers gives. */
export const NEVER: Promise<Attempt> = new Promise(() => {});

export function recordingLog(): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  return { log: (level, message, fields = {}) => void lines.push({ level, message, fields }), lines };
}

export function noticeAbout(subject: string, data: Readonly<Record<string, unknown>> = {}): Notice {
  const timeMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  return {
    type: "health.check_transition",
    subject,
    node: "node-1",
    timeMs,
    timeNs: BigInt(timeMs) * 1_000_000n,
    data: { ...data, subject },
  };
}
