/**
 * Zones encoded for transfer by threads of their own: a large zone takes longer than any answer may wait. One thread is there while
 * transfers are on, another comes when it is needed and ends when idle. What was encoded is kept (transfer-kept.ts).
 */
import { Worker } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { nameToText } from "../dns/name.ts";
import type { ZoneForTransfer } from "../primary/axfr.ts";
import type { Store } from "../store/store.ts";
import { createKeptZones, type KeptZones, type Watch } from "./transfer-kept.ts";
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
import type { TransferAnswer, TransferQuestion } from "./transfer-messages.ts";

export type TransferPool = AsyncDisposable & {
  /** The zone with that lower-case wire name as the store has it now, or later. Never rejects. */
  readonly encode: (zone: Uint8Array) => Promise<ZoneForTransfer>;
  /** Somebody will soon ask for the zone with that canonical name. Resolves when it is ready, or cannot be. */
  readonly prepare: (zone: string) => Promise<void>;
  /** Nothing is encoded any more. */
  readonly isClosed: () => boolean;
  /** Whether a thread is to be there before anybody asks: its start takes longer than many a transfer. */
  readonly keepWarm: (isWanted: boolean) => void;
  readonly stats: () => TransferPoolStats;
};

export type TransferPoolStats = {
  readonly threads: number;
  readonly keptZones: number;
  readonly keptBytes: number;
  /** Since the start: zones read and encoded whole, transfers that were given what was kept, */
  readonly encoded: number;
  readonly reused: number;
  /** and those among them for which it was brought up to date. */
  readonly patched: number;
};

export type TransferPoolOptions = {
  /** The node's data directory. */
  readonly directory: string;
  readonly store: Pick<Store, "onChange">;
  readonly heapMb?: number;
  readonly idleMs?: number;
  readonly encodingMs?: number;
  readonly keptBytesMax?: number;
  readonly keptMs?: number;
};

/** One question, for all who asked it before it went to a thread: what is read then is new enough for each of them. */
type Job = {
  readonly zone: string;
  readonly result: Promise<ZoneForTransfer>;
  readonly settle: (result: ZoneForTransfer) => void;
  /** Of what changes while the thread reads. */
  watch: Watch | undefined;
};

type Encoder = { readonly worker: Worker; job: Job | undefined; timer: NodeJS.Timeout | undefined };

type State = {
  readonly options: Required<TransferPoolOptions>;
  readonly encoders: Set<Encoder>;
  readonly waiting: Map<string, Job>;
  readonly kept: KeptZones;
  readonly counts: { encoded: number; reused: number; patched: number };
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
    kept: createKeptZones(options.store, options.keptBytesMax ?? ENCODED_BYTES_MAX),
    counts: { encoded: 0, reused: 0, patched: 0 },
    isWarm: false,
    isClosed: false,
  };
  const { keptMs } = state.options;
  const sweeper = setInterval(() => state.kept.forgetUnused(performance.now() - keptMs), keptMs / 2);
  sweeper.unref();
  return {
    encode: (zone) => encode(state, nameToText(zone)),
    prepare: async (zone) => void (await encode(state, zone)),
    isClosed: () => state.isClosed,
    keepWarm: (isWanted) => keepWarm(state, isWanted),
    stats: () => ({
      threads: state.encoders.size,
      keptZones: state.kept.stats().zones,
      keptBytes: state.kept.stats().bytes,
      ...state.counts,
    }),
    [Symbol.asyncDispose]: async () => {
      state.isClosed = true;
      clearInterval(sweeper);
      state.kept[Symbol.dispose]();
      for (const job of state.waiting.values()) job.settle(STOPPING);
      state.waiting.clear();
      await Promise.all([...state.encoders].map((encoder) => endEncoder(state, encoder)));
    },
  };
}

const STOPPING: ZoneForTransfer = { kind: "failed", detail: "the node is stopping" };

async function encode(state: State, zone: string): Promise<ZoneForTransfer> {
  const kept = await state.kept.get(zone);
  if (state.isClosed) return STOPPING;
  if (kept === undefined) return await encodeAnew(state, zone);
  state.counts.reused += 1;
  if (kept.isPatched) state.counts.patched += 1;
  return { kind: "zone", transfer: kept.transfer };
}

function encodeAnew(state: State, zone: string): Promise<ZoneForTransfer> {
  const waiting = state.waiting.get(zone);
  if (waiting !== undefined) return waiting.result;
  if (state.waiting.size >= ENCODING_WAITING_MAX) {
    return Promise.resolve({ kind: "failed", detail: "too many zones wait to be encoded" });
  }
  const { promise: result, resolve: settle } = Promise.withResolvers<ZoneForTransfer>();
  state.waiting.set(zone, { zone, result, settle, watch: undefined });
  pump(state);
  return result;
}

/** Gives the oldest questions to threads that are free. */
function pump(state: State): void {
  for (const job of state.waiting.values()) {
    const encoder = freeEncoder(state);
    if (encoder === undefined) return;
    state.waiting.delete(job.zone);
    job.watch = state.kept.watch(job.zone);
    encoder.job = job;
    const question: TransferQuestion = { zone: job.zone };
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
    job?.watch?.end();
    if (job !== undefined) job.settle(resultOf(state, job, answer));
    pump(state);
  });
  worker.once("error", (error) => {
    failure = error;
  });
  worker.once("exit", () => {
    clearTimeout(encoder.timer);
    state.encoders.delete(encoder);
    encoder.job?.watch?.end();
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

function resultOf({ counts, kept }: State, { zone, watch }: Job, answer: TransferAnswer): ZoneForTransfer {
  if (answer.kind === "absent") kept.forget(zone);
  if (answer.kind !== "zone") return answer;
  if (watch === undefined) throw new Error(`nobody asked for ${zone}`);
  counts.encoded += 1;
  try {
    return { kind: "zone", transfer: kept.keep(answer.zone, watch) };
  } catch (error) {
    return { kind: "failed", detail: errorText(error) };
  }
}
