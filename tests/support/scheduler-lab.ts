/** A scheduler of probes in simulated time, over shared health words of its own. */
import assert from "node:assert/strict";
import type { ProbeOutcome, ProbeSpec, Transition } from "../../src/health/probe.ts";
import { createScheduler, type Scheduler, type SchedulerOptions } from "../../src/health/scheduler.ts";
import { HEALTH_WORD, healthOf, latencyUsOf, openHealthSlots } from "../../src/image/health.ts";
import { createSharedImage } from "../../src/image/shared.ts";
import { createSimulatedClock } from "./simulated-clock.ts";

export const WALL_MS = 1_800_000_000_000;
export const keyOf = (number: number): string => (number + 1).toString(16).padStart(16, "0");

export function specOf(number: number, changes: Partial<ProbeSpec> = {}): ProbeSpec {
  const base = { slot: 0, protocol: "tcp", host: "192.0.2.1", port: 80, failureThreshold: 3 } as const;
  return { ...base, key: keyOf(number), intervalMs: 10_000, timeoutMs: 2_000, ...changes };
}

export type Answer = Partial<ProbeOutcome> & { readonly takesMs?: number };
export type Start = { readonly key: string; readonly atMs: number };

/** Backends in simulated time: what `answer` says of a probe is its outcome, after as long as it takes. */
export function openSchedulerLab(
  answer: (spec: ProbeSpec) => Answer | "never" | "throws",
  changes: Partial<SchedulerOptions> = {},
) {
  const clock = createSimulatedClock(WALL_MS);
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const starts: Start[] = [];
  const transitions: Transition[] = [];
  const lines: string[] = [];
  let running = 0;
  const most = { running: 0 };
  const run = (spec: ProbeSpec): Promise<ProbeOutcome> => {
    starts.push({ key: spec.key, atMs: clock.now() });
    running += 1;
    most.running = Math.max(most.running, running);
    const given = answer(spec);
    if (given === "throws") return Promise.reject(new Error("planted"));
    return new Promise((resolve) => {
      if (given === "never") return;
      const { takesMs = 1, ...outcome } = given;
      clock.after(takesMs, () => {
        running -= 1;
        resolve({ latencyUs: takesMs * 1_000, ...outcome });
      });
    });
  };
  const scheduler = createScheduler({
    clock,
    words: slots.words,
    run,
    seed: 1,
    inFlightMax: 4_000,
    remembered: new Map(),
    onTransitions: (some) => transitions.push(...some),
    log: (_, message) => lines.push(message),
    ...changes,
  });
  const wordsOf = (slot: number) => {
    const verdict = slots.words[HEALTH_WORD.VERDICT + slot]!;
    return [healthOf(verdict), latencyUsOf(verdict)];
  };
  return { clock, slots, scheduler, starts, transitions, lines, most, wordsOf };
}

/** Between the starts of one probe. */
export function gapsOf(starts: readonly Start[], key: string): number[] {
  const times = starts.filter((start) => start.key === key).map(({ atMs }) => atMs);
  return times.slice(1).map((atMs, index) => atMs - times[index]!);
}

export function statusOf(scheduler: Scheduler, key: string) {
  const [status] = scheduler.statuses([key]);
  assert.ok(status);
  return status;
}
