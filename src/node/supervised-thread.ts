import { type Transferable, Worker, type WorkerOptions } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { FIRST_PAUSE_MS, HEALTHY_AFTER_MS, LIFE_CHECK_MS, LONGEST_PAUSE_MS, STUCK_AFTER_MS } from "./limits.ts";

export type SupervisedOptions<Message> = {
  readonly name: string;
  readonly entry: URL;
  /** Called for every start, so that a replacement can get what has changed. */
  readonly workerOptions: () => WorkerOptions;
  readonly onMessage: (message: Message) => void;
  /** The thread has ended unasked; nothing of it runs any more. */
  readonly onDeath: () => void;
  /** Asked every second; a thread that is not alive any more is ended and replaced. */
  readonly isAlive?: () => boolean;
  /** The thread does not end: native code of it waits for what will never come. */
  readonly onStuck?: () => void;
  readonly log: Log;
};

export type SupervisedThread<Command> = {
  /** `transfer` names what of the command goes over to the thread, ports for example. */
  readonly post: (command: Command, transfer?: readonly Transferable[]) => void;
  /** No replacement from now on; settles when the thread has ended. It is told to end by `post` or the STOP word. */
  readonly ended: () => Promise<void>;
  /** Ends the thread wherever it is. */
  readonly terminate: () => Promise<void>;
};

/** The pause before the nth replacement in a row (n from 1): none, then doubling. */
export function replacementPauseMs(deathsInARow: number): number {
  return deathsInARow <= 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (deathsInARow - 2));
}

/** Ends the thread when it is not alive any more, and says so when even that does not help. */
function watchThread<Message>(worker: Worker, { name, log, isAlive, onStuck }: SupervisedOptions<Message>): Disposable {
  let stuck: NodeJS.Timeout | undefined;
  const look = () => {
    if (stuck !== undefined || isAlive === undefined || isAlive()) return;
    log("error", `thread ${name} gives no sign of life and is ended`);
    stuck = setTimeout(() => onStuck?.(), STUCK_AFTER_MS);
    void worker.terminate();
  };
  const timer = isAlive === undefined ? undefined : setInterval(look, LIFE_CHECK_MS);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      clearTimeout(stuck);
    },
  };
}

/** Starts a thread and starts it again whenever it dies. */
export function superviseThread<Message, Command>(options: SupervisedOptions<Message>): SupervisedThread<Command> {
  const { name, log } = options;
  let isEnding = false;
  let deathsInARow = 0;
  let timer: NodeJS.Timeout | undefined;
  let worker: Worker | undefined;
  let onEnd = () => {};

  const start = () => {
    timer = undefined;
    const startedAt = performance.now();
    const current = new Worker(options.entry, { name, ...options.workerOptions() });
    worker = current;
    current.on("message", options.onMessage);
    current.on("error", (error: Error) => {
      log("error", `thread ${name} failed: ${error.message}`, {
        code: "code" in error ? String(error.code) : undefined,
      });
    });
    const watch = watchThread(current, options);
    current.on("exit", (exitCode) => {
      watch[Symbol.dispose]();
      worker = undefined;
      if (isEnding) return onEnd();
      options.onDeath();
      if (isEnding) return onEnd();
      deathsInARow = performance.now() - startedAt > HEALTHY_AFTER_MS ? 1 : deathsInARow + 1;
      const pauseMs = replacementPauseMs(deathsInARow);
      log("error", `thread ${name} ended and is replaced`, { exit_code: exitCode, pause_ms: pauseMs });
      timer = setTimeout(start, pauseMs);
    });
  };
  start();
  return {
    post: (command, transfer = []) => worker?.postMessage(command, transfer),
    ended: () => {
      isEnding = true;
      clearTimeout(timer);
      return new Promise((resolve) => {
        if (worker === undefined) resolve();
        else onEnd = resolve;
      });
    },
    terminate: async () => {
      isEnding = true;
      await worker?.terminate();
    },
  };
}
