/**
 * Imports are read in a thread of their own, one at a time: a large body costs seconds of parsing, and a hostile one may
 * cost that thread its memory, but neither the API nor DNS. The thread starts with the first import and ends when idle.
 */
import { Worker } from "node:worker_threads";
import type { BlocklistReader, BlocklistReading } from "../commands/blocklist.ts";
import type { ImportSource } from "../commands/import-draft.ts";
import type { ImportParser, ImportReading, ImportSlice } from "../commands/import-parser.ts";
import { Refusal } from "../model/refusal.ts";
import { IMPORT_HEAP_MB, IMPORT_IDLE_MS, IMPORT_READ_MS, IMPORTS_WAITING_MAX } from "./import-limits.ts";
import type { ImportAnswer, ImportQuestion } from "./import-messages.ts";

export type ImportThread = AsyncDisposable & {
  readonly parse: ImportParser;
  /** Takes the bytes over where they have their memory for themselves. */
  readonly readBlocklist: BlocklistReader;
};

export type ImportThreadOptions = {
  readonly heapMb?: number;
  readonly readMs?: number;
  readonly idleMs?: number;
};

type Waiting = { readonly resolve: (answer: ImportAnswer) => void; readonly reject: (error: unknown) => void };

type State = {
  readonly options: Required<ImportThreadOptions>;
  worker: Worker | undefined;
  waiting: Waiting | undefined;
  idleTimer: NodeJS.Timeout | undefined;
  /** Settles when the import before the next one is over. */
  turn: Promise<void>;
  queued: number;
  isClosed: boolean;
};

/** Starts nothing yet: the first import starts the thread. */
export function createImportThread(options: ImportThreadOptions = {}): ImportThread {
  const state: State = {
    options: { heapMb: IMPORT_HEAP_MB, readMs: IMPORT_READ_MS, idleMs: IMPORT_IDLE_MS, ...options },
    worker: undefined,
    waiting: undefined,
    idleTimer: undefined,
    turn: Promise.resolve(),
    queued: 0,
    isClosed: false,
  };
  return {
    parse: (source, signal) => parse(state, source, signal),
    readBlocklist: (body, signal) => readBlocklist(state, body, signal),
    [Symbol.asyncDispose]: async () => {
      state.isClosed = true;
      await endWorker(state, new Refusal("not_ready", "the node is stopping"));
    },
  };
}

async function parse(state: State, source: ImportSource, signal: AbortSignal | undefined): Promise<ImportReading> {
  // A copy of its own, so that its memory can change threads.
  const question = (): ImportQuestion => ({ kind: "parse", source: { ...source, body: new Uint8Array(source.body) } });
  const { answer, end } = await begin(state, question, signal);
  if (answer.kind !== "parsed") throw new Error(`the thread of imports answered ${answer.kind}`);
  const { format, zones, parseErrors } = answer;
  return { format, zones, parseErrors, slices: () => slicesOf(state), [Symbol.asyncDispose]: end };
}

async function readBlocklist(state: State, body: Uint8Array, signal?: AbortSignal): Promise<BlocklistReading> {
  const question = (): ImportQuestion => ({ kind: "blocklist", body: ownMemory(body) });
  const { answer, end } = await begin(state, question, signal);
  if (answer.kind !== "blocklist") throw new Error(`the thread of imports answered ${answer.kind}`);
  const parts: BlocklistReading["parts"] = async (keys) => {
    const given = await ask(state, { kind: "blocklist-parts", keys });
    if (given.kind !== "blocklist-parts") throw new Error(`the thread of imports answered ${given.kind}`);
    return given.parts;
  };
  return {
    list: answer.list,
    parts,
    [Symbol.asyncDispose]: async () => {
      await end();
      // Lists are the largest that is read and come seldom: the memory of one is given back at once.
      if (state.queued === 0) await endWorker(state, new Error("the thread of imports is idle"));
    },
  };
}

/** The same bytes where nothing else lies in their memory, which can change threads then; else a copy. */
function ownMemory(body: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = body;
  const isOwn = buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength;
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(body);
}

/** Asks the first question about a body when its turn has come. Whoever has the answer calls `end` once. */
async function begin(
  state: State,
  question: () => ImportQuestion,
  signal: AbortSignal | undefined,
): Promise<{ readonly answer: ImportAnswer; readonly end: () => Promise<void> }> {
  const release = await takeTurn(state);
  try {
    if (state.isClosed) throw new Refusal("not_ready", "the node is stopping");
    // The client has gone while it waited: nobody would read the answer.
    if (signal?.aborted) throw new Refusal("invalid_request", "the client has gone");
    const asked = question();
    const answer = await ask(state, asked, memoryOf(asked));
    const end = async () => {
      try {
        await ask(state, { kind: "drop" });
      } finally {
        release();
      }
    };
    return { answer, end };
  } catch (error) {
    release();
    throw error;
  }
}

/** What a question hands over instead of copying it. */
function memoryOf(question: ImportQuestion): ArrayBuffer[] {
  const body =
    question.kind === "parse" ? question.source.body : question.kind === "blocklist" ? question.body : undefined;
  return body?.buffer instanceof ArrayBuffer ? [body.buffer] : [];
}

/** Waits until no other import is being read. The result lets the next one in. */
async function takeTurn(state: State): Promise<() => void> {
  if (state.queued >= IMPORTS_WAITING_MAX) {
    throw new Refusal("not_ready", "too many imports are waiting", [], { retry_after: 5 });
  }
  state.queued++;
  clearTimeout(state.idleTimer);
  const before = state.turn;
  const { promise, resolve } = Promise.withResolvers<void>();
  state.turn = promise;
  await before;
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    state.queued--;
    if (state.queued === 0) startIdleTimer(state);
    resolve();
  };
}

function startIdleTimer(state: State): void {
  state.idleTimer = setTimeout(() => {
    if (state.queued === 0) void endWorker(state, new Error("the thread of imports is idle"));
  }, state.options.idleMs);
  state.idleTimer.unref();
}

async function* slicesOf(state: State): AsyncGenerator<ImportSlice> {
  await ask(state, { kind: "rewind" });
  for (;;) {
    const answer = await ask(state, { kind: "next" });
    if (answer.kind !== "slice" || answer.slice === undefined) return;
    yield answer.slice;
  }
}

async function ask(state: State, question: ImportQuestion, transfer: ArrayBuffer[] = []): Promise<ImportAnswer> {
  const worker = runningWorker(state, question);
  if (worker === undefined) return { kind: "done" };
  const { promise, resolve, reject } = Promise.withResolvers<ImportAnswer>();
  state.waiting = { resolve, reject };
  const timer = setTimeout(() => {
    const detail = `reading the import took longer than ${state.options.readMs / 1_000} s`;
    void endWorker(state, new Refusal("invalid_request", detail));
  }, state.options.readMs);
  try {
    worker.postMessage(question, transfer);
    const answer = await promise;
    if (answer.kind === "refused") throw new Refusal(answer.code, answer.detail, answer.faults, answer.members);
    if (answer.kind === "failed") throw new Error(`reading an import failed: ${answer.detail}`);
    return answer;
  } finally {
    clearTimeout(timer);
    state.waiting = undefined;
  }
}

/** Only a new import starts a thread; what an ended one held is gone. */
function runningWorker(state: State, question: ImportQuestion): Worker | undefined {
  if (state.worker !== undefined) return state.worker;
  if (question.kind === "drop") return undefined;
  if (question.kind !== "parse" && question.kind !== "blocklist") throw new Error("the thread of imports has ended");
  const worker = new Worker(new URL("./import-thread-entry.ts", import.meta.url), {
    name: "import",
    resourceLimits: { maxOldGenerationSizeMb: state.options.heapMb },
  });
  worker.unref();
  worker.on("message", (answer: ImportAnswer) => state.waiting?.resolve(answer));
  const lost = (error: unknown) => {
    if (state.worker === worker) state.worker = undefined;
    state.waiting?.reject(error);
  };
  worker.once("error", (error) => lost(isOutOfMemory(error) ? needsTooMuch() : error));
  worker.once("exit", () => lost(new Error("the thread of imports has ended")));
  state.worker = worker;
  return worker;
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
}

function needsTooMuch(): Refusal {
  return new Refusal("body_too_large", "reading the import takes more memory than imports have; import it in parts");
}

async function endWorker(state: State, reason: Error): Promise<void> {
  clearTimeout(state.idleTimer);
  const { worker } = state;
  state.worker = undefined;
  state.waiting?.reject(reason);
  await worker?.terminate();
}
