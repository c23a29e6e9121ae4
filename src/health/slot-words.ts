/** A probe's own words of the shared health words. */
import { HEALTH, HEALTH_WORD, type Health, healthOf, latencyUsOf, setHealth } from "../image/health.ts";
import { HEALTH_SLOTS } from "../image/shared.ts";
import type { ProbeSpec, ProbeState } from "./probe.ts";

const WORD: { readonly [State in ProbeState]: Health } = {
  unknown: HEALTH.UNKNOWN,
  healthy: HEALTH.HEALTHY,
  unhealthy: HEALTH.UNHEALTHY,
};

/** The slot may have been given to another probe already, and the message that ends this one be on its way. */
function isOwn(words: Int32Array, { slot, key }: ProbeSpec): boolean {
  if (slot <= 0 || slot >= HEALTH_SLOTS) return false;
  return (
    Atomics.load(words, HEALTH_WORD.KEY_HIGH + slot) === (Number.parseInt(key.slice(0, 8), 16) | 0) &&
    Atomics.load(words, HEALTH_WORD.KEY_LOW + slot) === (Number.parseInt(key.slice(8), 16) | 0)
  );
}

/**
 * Where the slot is given to another probe between the look and the write, that one is as unjudged as it was: no other thread
 * writes verdicts.
 */
export function writeSlot(words: Int32Array, spec: ProbeSpec, state: ProbeState, latencyUs: number): void {
  if (!isOwn(words, spec)) return;
  setHealth(words, spec.slot, WORD[state], latencyUs);
  if (!isOwn(words, spec)) setHealth(words, spec.slot, HEALTH.UNKNOWN, 0);
}

/** What a predecessor of this thread has written; undefined where nothing is known. */
export function readSlot(
  words: Int32Array,
  spec: ProbeSpec,
): { readonly state: "healthy" | "unhealthy"; readonly latencyUs: number } | undefined {
  if (!isOwn(words, spec)) return undefined;
  const verdict = Atomics.load(words, HEALTH_WORD.VERDICT + spec.slot);
  const state = healthOf(verdict);
  if (state === HEALTH.UNKNOWN) return undefined;
  return { state: state === HEALTH.HEALTHY ? "healthy" : "unhealthy", latencyUs: latencyUsOf(verdict) };
}
