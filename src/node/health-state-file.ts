/**
 * The file `health-state` of the data directory: what the health thread remembers over a restart. Losing it costs no more than
 * a few probes, so it is not flushed to the disk; a torn one is recognised.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { errorCode, errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { readableFault } from "../base/private-path.ts";
import { forget, parseStateText, type Remembered, stateParts, stateText } from "../health/state-text.ts";
import { HEALTH_STATE_BYTES_MAX, HEALTH_STATE_CHANGED_MS, HEALTH_STATE_REFRESH_MS } from "./limits.ts";
import { readRegularFile } from "./regular-file.ts";

const MODE = 0o600;

/** What the file holds; nothing where there is none, or where it is not what this program has written. */
export function readHealthState(path: string, wallMs: number, log: Log): Map<string, Remembered> {
  try {
    const text = readRegularFile(path, HEALTH_STATE_BYTES_MAX, (stat) => readableFault(path, stat)).toString("latin1");
    const states = parseStateText(text);
    if (states !== undefined) {
      forget(states, wallMs);
      return states;
    }
    log("warn", `${path} is no file of health states or is damaged; every probe begins anew`);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") {
      log("warn", `cannot read ${path}: ${errorText(error)}; every probe begins anew`);
    }
  }
  return new Map();
}

/** What is written, and how it is known that there is something new. */
export type HealthStateSource = {
  readonly states: () => Iterable<readonly [key: string, Remembered]>;
  readonly done: () => number;
  readonly changes: () => number;
};

export type HealthStateWriter = {
  /** Writes what is new, now. */
  readonly close: () => void;
};

/** Keeps the file up to date: soon after a state has changed, and now and then for the ages. */
export function openHealthStateWriter(path: string, source: HealthStateSource, log: Log): HealthStateWriter {
  const draft = `${path}.new`;
  let written = { done: 0, changes: 0, atMs: performance.now() };
  let isWriting = false;
  let hasFailed = false;
  const isDue = () => {
    if (source.changes() !== written.changes) return true;
    return source.done() !== written.done && performance.now() - written.atMs >= HEALTH_STATE_REFRESH_MS;
  };
  const take = () => {
    // Before the states are read, so that what changes meanwhile is written once more.
    written = { done: source.done(), changes: source.changes(), atMs: performance.now() };
    return source.states();
  };
  const complain = (error: unknown) => {
    if (!hasFailed) log("error", `cannot write ${path}: ${errorText(error)}; states may not survive a restart`);
    hasFailed = true;
  };
  const write = async () => {
    isWriting = true;
    try {
      await writeFile(draft, await stateParts(take()), { mode: MODE });
      // What was written at the end meanwhile is newer. Nothing may come in between.
      if (!isClosed) renameSync(draft, path);
      hasFailed = false;
    } catch (error) {
      complain(error);
    } finally {
      isWriting = false;
    }
  };
  let isClosed = false;
  const timer = setInterval(() => {
    if (!isWriting && isDue()) void write();
  }, HEALTH_STATE_CHANGED_MS);
  return {
    close: () => {
      clearInterval(timer);
      isClosed = true;
      if (source.done() === written.done && source.changes() === written.changes && !isWriting) return;
      // A file of its own: the other may be half written, by a thread of the system that nobody can stop.
      const last = `${path}.last`;
      try {
        rmSync(last, { force: true });
        writeFileSync(last, stateText(take()), { mode: MODE, flag: "wx" });
        renameSync(last, path);
      } catch (error) {
        complain(error);
      }
    },
  };
}
