/**
 * Where lines of the query log go: a file, a pipe, or standard output. Nothing waits for a reader: what a pipe does not take, or
 * a full disk, is lost and counted, and no line is ever broken by that.
 */
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { errorCode, errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

export type LineSink = {
  /** Lines with their ends. */
  readonly write: (lines: readonly string[]) => void;
  /** Opens the file anew: it was moved away. */
  readonly reopen: () => void;
  readonly close: () => void;
};

export type LineSinkOptions = {
  /** "": standard output. */
  readonly path: string;
  readonly nowMs: () => number;
  readonly onWritten: (lines: number) => void;
  readonly onLost: (lines: number) => void;
  readonly log: Log;
};

const STANDARD_OUTPUT = 1;
const RETRY_MS = 1_000;
/** A pipe takes so many bytes as a whole, between what others write to it (PIPE_BUF). */
const PIPE_BYTES = 4_096;
const FILE_BYTES = 2 ** 18;
const NEW_FILE_MODE = 0o640;
const LINE_END = 10;

type Open = { readonly descriptor: number; readonly isOwn: boolean; readonly chunkBytes: number };

type State = {
  readonly options: LineSinkOptions;
  open: Open | undefined;
  retryAtMs: number;
  isFailing: boolean;
  /** What is left of a line that was taken in part. */
  rest: Uint8Array | undefined;
};

export function openLineSink(options: LineSinkOptions): LineSink {
  const state: State = { options, open: undefined, retryAtMs: 0, isFailing: false, rest: undefined };
  if (options.path === "" && fstatSync(STANDARD_OUTPUT).isSocket()) return openSocketOutput(options);
  return {
    write: (lines) => writeLines(state, lines),
    reopen() {
      if (options.path === "") return;
      close(state);
      state.retryAtMs = 0;
    },
    close: () => close(state),
  };
}

function writeLines(state: State, lines: readonly string[]): void {
  const { options } = state;
  ensureOpen(state);
  let index = 0;
  while (index < lines.length) {
    if (state.open === undefined || !writeRest(state, state.open)) break;
    let text = "";
    let count = 0;
    const limit = state.open.chunkBytes;
    // Lines are ASCII, so that characters are bytes.
    while (index + count < lines.length && (count === 0 || text.length + lines[index + count]!.length <= limit)) {
      text += lines[index + count++]!;
    }
    const written = writeChunk(state, state.open, Buffer.from(text, "latin1"));
    options.onWritten(written);
    options.onLost(count - written);
    index += count;
    if (written < count) break;
  }
  if (index < lines.length) options.onLost(lines.length - index);
}

/** Writes whole lines and says how many went; one of which a part went is among them, and its rest goes first next time. */
function writeChunk(state: State, open: Open, bytes: Uint8Array): number {
  const taken = tryWrite(state, open, bytes);
  let lines = 0;
  for (let index = 0; index < taken; index++) if (bytes[index] === LINE_END) lines++;
  if (taken === 0 || bytes[taken - 1] === LINE_END) return lines;
  state.rest = bytes.slice(taken, bytes.indexOf(LINE_END, taken) + 1);
  return lines + 1;
}

/** False: some of it is left still. */
function writeRest(state: State, open: Open): boolean {
  const { rest } = state;
  if (rest === undefined) return true;
  const taken = tryWrite(state, open, rest);
  state.rest = taken === rest.length ? undefined : rest.subarray(taken);
  return state.rest === undefined;
}

function tryWrite(state: State, { descriptor }: Open, bytes: Uint8Array): number {
  try {
    const taken = writeSync(descriptor, bytes);
    recovered(state);
    return taken;
  } catch (error) {
    if (errorCode(error) === "EAGAIN") return 0;
    failed(state, error);
    // A full disk may have room again; a pipe whose reader has gone needs to be opened anew.
    if (errorCode(error) !== "ENOSPC" && errorCode(error) !== "EDQUOT") close(state);
    return 0;
  }
}

function ensureOpen(state: State): void {
  const { path, nowMs } = state.options;
  if (state.open !== undefined || nowMs() < state.retryAtMs) return;
  state.retryAtMs = nowMs() + RETRY_MS;
  try {
    state.open = path === "" ? openStandardOutput() : openPath(path);
  } catch (error) {
    failed(state, error);
  }
}

function openPath(path: string): Open {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
  // Without O_NONBLOCK a pipe that nobody reads would hold this thread for ever.
  const descriptor = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, NEW_FILE_MODE);
  return { descriptor, isOwn: true, chunkBytes: fstatSync(descriptor).isFile() ? FILE_BYTES : PIPE_BYTES };
}

/** A pipe is opened anew, as others who write to it want to wait; a file is not, since they share the place in it. */
function openStandardOutput(): Open {
  const status = fstatSync(STANDARD_OUTPUT);
  if (!status.isFIFO()) return { descriptor: STANDARD_OUTPUT, isOwn: false, chunkBytes: PIPE_BYTES };
  const descriptor = openSync("/proc/self/fd/1", constants.O_WRONLY | constants.O_NONBLOCK);
  return { descriptor, isOwn: true, chunkBytes: PIPE_BYTES };
}

/** A socket cannot be opened anew: its lines go the way of everything that this process prints, one piece at a time. */
function openSocketOutput({ onWritten, onLost }: LineSinkOptions): LineSink {
  let isBusy = false;
  return {
    write(lines) {
      if (lines.length === 0) return;
      if (isBusy) return onLost(lines.length);
      isBusy = true;
      onWritten(lines.length);
      process.stdout.write(lines.join(""), () => {
        isBusy = false;
      });
    },
    reopen: () => {},
    close: () => {},
  };
}

function close(state: State): void {
  const { open } = state;
  state.open = undefined;
  state.rest = undefined;
  if (open?.isOwn === true) closeSync(open.descriptor);
}

function failed(state: State, error: unknown): void {
  if (state.isFailing) return;
  state.isFailing = true;
  state.options.log("warn", `the query log loses lines: ${errorText(error)}`);
}

function recovered(state: State): void {
  if (!state.isFailing) return;
  state.isFailing = false;
  state.options.log("info", "the query log is written again");
}
