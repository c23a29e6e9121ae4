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
/** A few milliseconds. */
const LINES_A_TURN = 2_000;
const LINE = /^([!-~]{1,64}) ([hu]) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,9}) (\d{1,9}) (\d{1,10})$/;

type Entry = readonly [key: string, state: Remembered];

function lineOf([key, state]: Entry): string {
  const { sinceMs, checkedMs, seenMs, failures, successes, latencyUs } = state;
  return `${key} ${LETTER[state.state]} ${sinceMs} ${checkedMs} ${seenMs} ${failures} ${successes} ${latencyUs}\n`;
}

export function stateText(entries: Iterable<Entry>): string {
  const lines: string[] = [];
  for (const entry of entries) {
    if (lines.length === REMEMBERED_MAX) break;
    lines.push(lineOf(entry));
  }
  const body = lines.join("");
  return `${NAME} ${VERSION} ${digest(body)}\n${body}`;
}

/**
 * The same text in parts, made some lines a turn, because probes wait meanwhile. What changes during that is in it as it was
 * or as it is; `nextTurn` resolves when others have had theirs.
 */
export async function stateParts(
  entries: Iterable<Entry>,
  nextTurn: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve)),
): Promise<readonly string[]> {
  const hash = createHash("sha256");
  const parts: string[] = [];
  let lines: string[] = [];
  let count = 0;
  const close = () => {
    const part = lines.join("");
    hash.update(part);
    parts.push(part);
    lines = [];
  };
  for (const entry of entries) {
    if (count === REMEMBERED_MAX) break;
    count += 1;
    lines.push(lineOf(entry));
    if (lines.length < LINES_A_TURN) continue;
    close();
    await nextTurn();
  }
  close();
  return [`${NAME} ${VERSION} ${hash.digest("hex")}\n`, ...parts];
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
