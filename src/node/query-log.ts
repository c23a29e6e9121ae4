/**
 * The query log and debug capture in the control thread: what the answering threads are to tell, the thread that writes it
 * down while anybody wants that, and the lines that are kept.
 */
import { Worker } from "node:worker_threads";
import { Counter } from "prom-client";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { followConfig } from "../commands/config-documents.ts";
import type { DebugView } from "../commands/debug.ts";
import { COUNTER, sumCounter } from "../image/counters.ts";
import { CONTROL, type SharedImage } from "../image/shared.ts";
import type { Store } from "../store/store.ts";
import type { Config } from "./config.ts";
import { createDebugCapture, type DebugCapture } from "./debug-capture.ts";
import { QUERY_LOG_HEAP_MB, QUERY_LOG_IDLE_MS, QUERY_LOG_RESTART_MS, QUERY_LOG_STOP_MS } from "./limits.ts";
import type { NodeMetrics } from "./metrics.ts";
import { type FromQueryLog, QUERY_LOG_FIGURE, type QueryLogData, type ToQueryLog } from "./query-log-messages.ts";

export type QueryLogOptions = {
  readonly store: Pick<Store, "get" | "onChange">;
  readonly shared: SharedImage;
  readonly config: Pick<Config, "query_log.file" | "query_log.dnstap_socket">;
  readonly nodeId: string;
  readonly version: string;
  readonly metrics: Pick<NodeMetrics, "registry">;
  readonly log: Log;
};

export type QueryLog = AsyncDisposable & {
  readonly debug: DebugView;
  /** The file was moved away: it is opened anew. */
  readonly reopen: () => void;
};

type State = {
  readonly options: QueryLogOptions;
  readonly control: Int32Array;
  readonly figures: SharedArrayBuffer;
  readonly capture: DebugCapture;
  /** One in so many queries, 0: none. */
  readonly sampleRate: () => number;
  worker: Worker | undefined;
  timer: NodeJS.Timeout | undefined;
  /** A ring has one reader: no thread begins while another one ends. */
  isEnding: boolean;
  isClosed: boolean;
};

export function openQueryLog(options: QueryLogOptions): QueryLog {
  const { store, shared, nodeId } = options;
  const settings = followConfig(store, "query-log");
  const state: State = {
    options,
    control: new Int32Array(shared.control),
    figures: new SharedArrayBuffer(QUERY_LOG_FIGURE.COUNT * 8),
    capture: createDebugCapture({
      nodeId,
      nowMs: Date.now,
      eventsDropped: () => sumCounter(shared, COUNTER.EVENTS_DROPPED),
      onChange: () => apply(state),
    }),
    sampleRate() {
      const { enabled, sample_rate } = settings().effective;
      return enabled ? sample_rate : 0;
    },
    worker: undefined,
    timer: undefined,
    isEnding: false,
    isClosed: false,
  };
  // It hears of a change after `settings`, which listens since before.
  const end = store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "config" && key[0] === "query-log")) apply(state);
  });
  registerFigures(state);
  apply(state);
  return {
    debug: state.capture.view,
    reopen: () => send(state, { kind: "reopen" }),
    [Symbol.asyncDispose]: async () => {
      end();
      state.isClosed = true;
      state.capture[Symbol.dispose]();
      tellThreads(state, 0, false);
      clearTimeout(state.timer);
      await stopWorker(state);
    },
  };
}

function tellThreads({ control, options }: State, every: number, isCaptured: boolean): void {
  const wantsMessages = options.config["query_log.dnstap_socket"] !== undefined;
  Atomics.store(control, CONTROL.LOG_MESSAGES, wantsMessages ? 1 : 0);
  Atomics.store(control, CONTROL.LOG_EVERY, every);
  Atomics.store(control, CONTROL.CAPTURE, isCaptured ? 1 : 0);
}

/** Brings what is wanted to the threads, and begins or ends the one that writes it down. */
function apply(state: State): void {
  if (state.isClosed) return;
  const every = state.sampleRate();
  const isCaptured = state.capture.isOpen();
  tellThreads(state, every, isCaptured);
  clearTimeout(state.timer);
  if (state.isEnding) return;
  if (every !== 0 || isCaptured) {
    if (state.worker === undefined) startWorker(state);
  } else if (state.worker !== undefined) {
    state.timer = setTimeout(() => void stopWorker(state), QUERY_LOG_IDLE_MS).unref();
  }
}

function startWorker(state: State): void {
  const { options } = state;
  const { shared, nodeId, version, config, log } = options;
  const dnstapSocket = config["query_log.dnstap_socket"];
  const file = config["query_log.file"] ?? (dnstapSocket === undefined ? "" : undefined);
  const workerData: QueryLogData = { shared, nodeId, version, file, dnstapSocket, figures: state.figures };
  const worker = new Worker(new URL("./query-log-entry.ts", import.meta.url), {
    name: "query-log",
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: QUERY_LOG_HEAP_MB },
  });
  worker.unref();
  worker.on("message", (message: FromQueryLog) => hear(state, worker, message));
  worker.once("error", (error) => log("error", `the thread of the query log failed: ${errorText(error)}`));
  worker.once("exit", () => {
    if (state.worker !== worker) return;
    state.worker = undefined;
    clearTimeout(state.timer);
    if (!state.isClosed) state.timer = setTimeout(() => apply(state), QUERY_LOG_RESTART_MS).unref();
  });
  state.worker = worker;
}

function hear(state: State, worker: Worker, message: FromQueryLog): void {
  if (message.kind === "log") state.options.log(message.level, message.message);
  else {
    state.capture.take(message.lines, message.lost);
    worker.postMessage({ kind: "taken" } satisfies ToQueryLog);
  }
}

function send({ worker }: State, message: ToQueryLog): void {
  worker?.postMessage(message);
}

/** Lets the thread write what there is. One that does not end in time is ended. */
async function stopWorker(state: State): Promise<void> {
  const { worker } = state;
  if (worker === undefined) return;
  state.worker = undefined;
  state.isEnding = true;
  const { promise, resolve } = Promise.withResolvers<void>();
  worker.once("exit", () => resolve());
  const timer = setTimeout(() => {
    void worker.terminate();
    resolve();
  }, QUERY_LOG_STOP_MS);
  worker.postMessage({ kind: "stop" } satisfies ToQueryLog);
  await promise;
  clearTimeout(timer);
  state.isEnding = false;
  // Perhaps it is wanted again.
  apply(state);
}

function registerFigures({ figures, options }: State): void {
  const values = new Float64Array(figures);
  const registers = [options.metrics.registry];
  const places = [
    ["svc_query_log_written_total", "Events written, by sink.", QUERY_LOG_FIGURE.LINES, QUERY_LOG_FIGURE.DNSTAP],
    [
      "svc_query_log_lost_total",
      "Events that a sink did not take.",
      QUERY_LOG_FIGURE.LINES_LOST,
      QUERY_LOG_FIGURE.DNSTAP_LOST,
    ],
  ] as const;
  for (const [name, help, lines, dnstap] of places) {
    new Counter({
      name,
      help,
      labelNames: ["sink"],
      registers,
      collect() {
        this.reset();
        this.inc({ sink: "lines" }, values[lines] ?? 0);
        this.inc({ sink: "dnstap" }, values[dnstap] ?? 0);
      },
    });
  }
}
