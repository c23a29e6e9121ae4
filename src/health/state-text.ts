/**
 * What is remembered of probes over a restart, as text: a line with a name, a version and the SHA-256 of what follows it, then
 * one line a probe. Keys are opaque; nothing says what is probed.
 */
import { createHash } from "node:crypto";
import type { Standing } from "./judgement.ts";
import { REMEMBERED_MAX, REMEMBERED_MS } from "./scheduler-limits.ts";

export type Remembered = Standing & {
  readonly state: "healthy" | "unhealthy";
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  readonly checkedMs: number;
  /** When it was last among the probes of this node. */
  readonly seenMs: number;
  /** Smoothed. */
  readonly latencyUs: number;
};

const NAME = "signpost-health-state";
const VERSION = "1";
const LETTER = { healthy: "h", unhealthy: "u" } as const;
const LINE = /^([!-~]{1,64}) ([hu]) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,9}) (\d{1,9}) (\d{1,10})$/;

export function stateText(entries: Iterable<readonly [key: string, Remembered]>): string {
  const lines: string[] = [];
  for (const [key, { state, sinceMs, checkedMs, seenMs, failures, successes, latencyUs }] of entries) {
    if (lines.length === REMEMBERED_MAX) break;
    lines.push(`${key} ${LETTER[state]} ${sinceMs} ${checkedMs} ${seenMs} ${failures} ${successes} ${latencyUs}\n`);
  }
  const body = lines.join("");
  return `${NAME} ${VERSION} ${digest(body)}\n${body}`;
}

/** Keeps a state for a probe that ends; what was put there first makes way where there are too many. */
export function remember(states: Map<string, Remembered>, key: string, state: Remembered): void {
  states.delete(key);
  states.set(key, state);
  const [oldest] = states.keys();
  if (states.size > REMEMBERED_MAX && oldest !== undefined) states.delete(oldest);
}

/** Drops what nobody has probed for too long. */
export function forget(states: Map<string, Remembered>, wallMs: number): void {
  for (const [key, { seenMs }] of states) if (wallMs - seenMs > REMEMBERED_MS) states.delete(key);
}

/** Undefined where the text is not one that `stateText` has made. */
export function parseStateText(text: string): Map<string, Remembered> | undefined {
  const headEnd = text.indexOf("\n");
  const [name, version, sum] = text.slice(0, Math.max(headEnd, 0)).split(" ");
  const body = text.slice(headEnd + 1);
  if (name !== NAME || version !== VERSION || sum !== digest(body)) return undefined;
  const states = new Map<string, Remembered>();
  for (const line of body.split("\n")) {
    if (line === "") continue;
    const [, key, letter, ...figures] = LINE.exec(line) ?? [];
    if (key === undefined || states.size === REMEMBERED_MAX) return undefined;
    const [sinceMs = 0, checkedMs = 0, seenMs = 0, failures = 0, successes = 0, latencyUs = 0] = figures.map(Number);
    const state = letter === LETTER.healthy ? "healthy" : "unhealthy";
    states.set(key, { state, sinceMs, checkedMs, seenMs, failures, successes, latencyUs });
  }
  return states;
}

function digest(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}
