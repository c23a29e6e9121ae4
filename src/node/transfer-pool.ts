/**
 * Zones encoded for transfer by threads of their own: a large zone takes longer than any answer may wait. A thread starts
 * with the first transfer and ends when idle. What was encoded is kept for a while, and given again only where the store
 * says that the zone has not changed since.
 */
import { Worker } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { nameToText } from "../dns/name.ts";
import type { ZoneForTransfer } from "../primary/axfr.ts";
import type { EncodedTransfer } from "../primary/axfr-encode.ts";
import {
  ENCODED_BYTES_MAX,
  ENCODED_KEPT_MS,
  ENCODER_HEAP_MB,
  ENCODER_IDLE_MS,
  ENCODER_SILENT_MS,
  ENCODERS_MAX,
  ENCODING_MS,
  ENCODING_WAITING_MAX,
} from "./transfer-limits.ts";
import type { TransferAnswer, TransferQuestion, TransferVersion } from "./transfer-messages.ts";

export type TransferPool = AsyncDisposable & {
  /** The zone with that lower-case wire name as the store has it now, or later. Never rejects. */
  readonly encode: (zone: Uint8Array) => Promise<ZoneForTransfer>;
  /** Somebody will soon ask for the zone with that canonical name. */
  readonly prepare: (zone: string) => void;
  /** Whether a thread is to be there before anybody asks: its start takes longer than many a transfer. */
  readonly keepWarm: (isWanted: boolean) => void;
  readonly stats: () => TransferPoolStats;
};

export type TransferPoolStats = {
  readonly threads: number;
  readonly keptZones: number;
  readonly keptBytes: number;
  /** Since the start: zones encoded, and transfers that were given what another one had been. */
  readonly encoded: number;
  readonly reused: number;
  /** Those that were brought up to date with what had changed. */
  readonly patched: number;
};

export type TransferPoolOptions = {
  /** The node's data directory. */
  readonly directory: string;
  readonly heapMb?: number;
  readonly idleMs?: number;
  readonly encodingMs?: number;
  readonly keptBytesMax?: number;
  readonly keptMs?: number;
};

type Kept = {
  readonly transfer: EncodedTransfer;
  readonly version: TransferVersion;
  readonly bytes: number;
  usedMs: number;
};

/** One question, for all who asked it before it went to a thread: what is read then is new enough for each of them. */
type Job = {
  readonly zone: string;
  readonly result: Promise<ZoneForTransfer>;
  readonly settle: (result: ZoneForTransfer) => void;
  /** What was kept when it was asked: the answer may be that it holds. */
  known: Kept | undefined;
};

type Encoder = { readonly worker: Worker; job: Job | undefined; timer: NodeJS.Timeout | undefined };

type State = {
  readonly options: Required<TransferPoolOptions>;
  readonly encoders: Set<Encoder>;
  readonly waiting: Map<string, Job>;
  /** The one that was used the longest ago first. */
  readonly kept: Map<string, Kept>;
  readonly counts: { encoded: number; reused: number; patched: number };
  keptBytes: number;
  isWarm: boolean;
  isClosed: boolean;
};

/** Starts nothing yet. */
export function createTransferPool(options: TransferPoolOptions): TransferPool {
  const state: State = {
    options: {
      heapMb: ENCODER_HEAP_MB,
      idleMs: ENCODER_IDLE_MS,
      encodingMs: ENCODING_MS,
      keptBytesMax: ENCODED_BYTES_MAX,
      keptMs: ENCODED_KEPT_MS,
      ...options,
    },
    encoders: new Set(),
    waiting: new Map(),
    kept: new Map(),
    counts: { encoded: 0, reused: 0, patched: 0 },
    keptBytes: 0,
    isWarm: false,
    isClosed: false,
  };
  const sweeper = setInterval(() => forgetOld(state), state.options.keptMs / 2);
  sweeper.unref();
  return {
    encode: (zone) => encode(state, nameToText(zone)),
    prepare: (zone) => void encode(state, zone),
    keepWarm: (isWanted) => keepWarm(state, isWanted),
    stats: () => ({
      threads: state.encoders.size,
      keptZones: state.kept.size,
      keptBytes: state.keptBytes,
      ...state.counts,
    }),
    [Symbol.asyncDispose]: async () => {
      state.isClosed = true;
      clearInterval(sweeper);
      for (const job of state.waiting.values()) job.settle(STOPPING);
      state.waiting.clear();
      await Promise.all([...state.encoders].map((encoder) => endEncoder(state, encoder)));
    },
  };
}

const STOPPING: ZoneForTransfer = { kind: "failed", detail: "the node is stopping" };

function encode(state: State, zone: string): Promise<ZoneForTransfer> {
  if (state.isClosed) return Promise.resolve(STOPPING);
  const waiting = state.waiting.get(zone);
  if (waiting !== undefined) return waiting.result;
  if (state.waiting.size >= ENCODING_WAITING_MAX) {
    return Promise.resolve({ kind: "failed", detail: "too many zones wait to be encoded" });
  }
  const { promise: result, resolve: settle } = Promise.withResolvers<ZoneForTransfer>();
  state.waiting.set(zone, { zone, result, settle, known: undefined });
  pump(state);
  return result;
}

/** Gives the oldest questions to threads that are free. */
function pump(state: State): void {
  for (const job of state.waiting.values()) {
    const encoder = freeEncoder(state);
    if (encoder === undefined) return;
    state.waiting.delete(job.zone);
    job.known = state.kept.get(job.zone);
    encoder.job = job;
    const question: TransferQuestion = { zone: job.zone, known: job.known?.version };
    clearTimeout(encoder.timer);
    // The thread looks at the time itself; this is for one that does not answer any more.
    encoder.timer = setTimeout(() => void encoder.worker.terminate(), state.options.encodingMs + ENCODER_SILENT_MS);
    encoder.worker.postMessage(question);
  }
}

function freeEncoder(state: State): Encoder | undefined {
  for (const encoder of state.encoders) if (encoder.job === undefined) return encoder;
  return state.encoders.size < ENCODERS_MAX ? startEncoder(state) : undefined;
}

function startEncoder(state: State): Encoder {
  const { directory, heapMb, encodingMs } = state.options;
  const worker = new Worker(new URL("./transfer-entry.ts", import.meta.url), {
    name: "transfer",
    workerData: { directory, encodingMs },
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
  });
  worker.unref();
  const encoder: Encoder = { worker, job: undefined, timer: undefined };
  state.encoders.add(encoder);
  let failure: unknown;
  worker.on("message", (answer: TransferAnswer) => {
    const { job } = encoder;
    encoder.job = undefined;
    startIdleTimer(state, encoder);
    if (job !== undefined) job.settle(resultOf(state, job, answer));
    pump(state);
  });
  worker.once("error", (error) => {
    failure = error;
  });
  worker.once("exit", () => {
    clearTimeout(encoder.timer);
    state.encoders.delete(encoder);
    const detail = failure === undefined ? "the thread that encodes has ended" : errorText(failure);
    encoder.job?.settle(state.isClosed ? STOPPING : { kind: "failed", detail });
    if (!state.isClosed) pump(state);
  });
  return encoder;
}

function keepWarm(state: State, isWanted: boolean): void {
  if (state.isClosed) return;
  state.isWarm = isWanted;
  if (isWanted && state.encoders.size === 0) startEncoder(state);
  for (const encoder of state.encoders) if (encoder.job === undefined) startIdleTimer(state, encoder);
}

function startIdleTimer(state: State, encoder: Encoder): void {
  clearTimeout(encoder.timer);
  const [first] = state.encoders;
  if (state.isWarm && encoder === first) return;
  encoder.timer = setTimeout(() => void endEncoder(state, encoder), state.options.idleMs);
  encoder.timer.unref();
}

/** The thread closes its store and ends by itself; one that is at work is not waited for. */
async function endEncoder(state: State, encoder: Encoder): Promise<void> {
  clearTimeout(encoder.timer);
  state.encoders.delete(encoder);
  const { worker } = encoder;
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  worker.ref();
  if (encoder.job === undefined) worker.postMessage("end");
  else void worker.terminate();
  await exited;
}

function resultOf(state: State, { zone, known }: Job, answer: TransferAnswer): ZoneForTransfer {
  switch (answer.kind) {
    case "zone":
      state.counts.encoded += 1;
      keep(state, zone, answer);
      return { kind: "zone", transfer: answer.transfer };
    case "same":
      if (known === undefined) return { kind: "failed", detail: "the thread that encodes knows of nothing kept" };
      state.counts.reused += 1;
      touch(state, zone, known);
      return { kind: "zone", transfer: known.transfer };
    case "absent":
      forget(state, zone);
      return answer;
    case "failed":
      return answer;
  }
}

function keep(state: State, zone: string, { transfer, version }: Extract<TransferAnswer, { kind: "zone" }>): void {
  forget(state, zone);
  const bytes = bytesOf(transfer);
  if (bytes > state.options.keptBytesMax) return;
  state.kept.set(zone, { transfer, version, bytes, usedMs: performance.now() });
  state.keptBytes += bytes;
  for (const oldest of state.kept.keys()) {
    if (state.keptBytes <= state.options.keptBytesMax) return;
    forget(state, oldest);
  }
}

/** Roughly: of an ALIAS more is kept than its names. */
function bytesOf({ messages, aliases }: EncodedTransfer): number {
  const ofMessages = messages.reduce((sum, { length }) => sum + length, 0);
  return aliases.reduce((sum, { owner, target }) => sum + owner.length + target.length + ALIAS_BYTES, ofMessages);
}

const ALIAS_BYTES = 300;

function touch(state: State, zone: string, kept: Kept): void {
  kept.usedMs = performance.now();
  if (state.kept.get(zone) !== kept) return;
  state.kept.delete(zone);
  state.kept.set(zone, kept);
}

function forget(state: State, zone: string): void {
  const kept = state.kept.get(zone);
  if (kept === undefined) return;
  state.kept.delete(zone);
  state.keptBytes -= kept.bytes;
}

function forgetOld(state: State): void {
  const sinceMs = performance.now() - state.options.keptMs;
  for (const [zone, { usedMs }] of state.kept) {
    if (usedMs > sinceMs) return;
    forget(state, zone);
  }
}
