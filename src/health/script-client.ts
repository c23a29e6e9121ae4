/** The health thread's side of the runner of scripts. Whatever is wrong with the runner, a check fails: it is never passed. */
import { connect, type Socket } from "node:net";
import { errorCode, errorText } from "../base/errors.ts";
import {
  createLineCutter,
  DETAIL_CHARACTERS_MAX,
  lineOf,
  REPLY_BYTES_MAX,
  type RunnerMessage,
  runnerMessageFromLine,
  SCRIPT_PROTOCOL_VERSION,
} from "../base/script-protocol.ts";
import type { ProbeOutcome, ProbeSpec } from "./probe.ts";

export type ScriptClientOptions = {
  /** Path of the runner's socket. */
  readonly socketPath: string;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
};

export type ScriptClient = {
  /**
   * Runs the script of a probe. Never rejects, and settles within `spec.timeoutMs`. A runner that is gone, hangs or talks
   * nonsense is the error "runner".
   */
  readonly run: (spec: ProbeSpec) => Promise<ProbeOutcome>;
  readonly close: () => void;
};

/** Pauses between attempts to reach a runner that is not there; doubled up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** From connecting to the runner's first word. */
const HELLO_MS = 2_000;
/** Scripts that are under way at the runner; further ones fail. */
const PENDING_MAX = 1_024;
/** Bytes of requests that the runner leaves untaken before its connection ends. */
const UNTAKEN_BYTES_MAX = 8 * 2 ** 20;
/** The runner gets less time than the check has, so that its answer, with the reason, comes before the end of it. */
const RESERVED_SHARE = 0.1;
const RESERVED_MS_MAX = 250;

type Settle = (outcome: ProbeOutcome) => void;

/** One that is waited for. To settle it a second time does nothing. */
type Asked = { readonly settle: Settle; onSettled: (() => void) | undefined };

/** A connection to the runner, from the attempt on. */
type Line = {
  readonly socket: Socket;
  /** Settles when the runner has said hello; rejects where it does not. */
  readonly ready: Promise<void>;
  readonly pending: Map<number, Settle>;
};

export function createScriptClient({ socketPath, now }: ScriptClientOptions): ScriptClient {
  let line: Line | undefined;
  let nextId = 1;
  let pauseMs = 0;
  let retryAt = Number.NEGATIVE_INFINITY;
  let lastFault = "";

  const open = (): Line => {
    const opened = openLine(socketPath, (fault) => {
      if (line === opened) line = undefined;
      lastFault = fault;
      retryAt = now() + pauseMs;
      pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, pauseMs * 2));
      for (const settle of opened.pending.values()) settle(runnerFailure(0, fault));
    });
    opened.ready.then(
      () => {
        pauseMs = 0;
      },
      () => {},
    );
    return opened;
  };

  const ask = async (spec: ProbeSpec, timeoutMs: number, asked: Asked): Promise<void> => {
    const { script } = spec;
    if (script === undefined) return asked.settle(runnerFailure(0, "the check names no script"));
    if (line === undefined && now() < retryAt) return asked.settle(runnerFailure(0, lastFault));
    line ??= open();
    const { socket, ready, pending } = line;
    if (pending.size >= PENDING_MAX) return asked.settle(runnerFailure(0, "too many scripts are under way"));
    const id = nextId++;
    const startedAt = now();
    pending.set(id, asked.settle);
    asked.onSettled = () => pending.delete(id);
    try {
      await ready;
    } catch {
      // The end of the line has settled it.
      return;
    }
    if (!pending.has(id)) return;
    const reservedMs = Math.min(RESERVED_MS_MAX, timeoutMs * RESERVED_SHARE);
    const leftMs = Math.max(1, Math.floor(timeoutMs - reservedMs - (now() - startedAt)));
    socket.write(lineOf({ kind: "run", id, command: script.command, args: script.args ?? [], timeoutMs: leftMs }));
    if (socket.writableLength > UNTAKEN_BYTES_MAX) socket.destroy(new Error("it takes no more requests"));
  };

  return {
    run: (spec) => {
      const { timeoutMs } = spec;
      return new Promise((resolve) => {
        const asked: Asked = {
          settle: (outcome) => {
            clearTimeout(timer);
            asked.onSettled?.();
            resolve(outcome);
          },
          onSettled: undefined,
        };
        const onTimeout = () => asked.settle(runnerFailure(timeoutMs * 1000, "it gave no answer in time"));
        const timer = setTimeout(onTimeout, timeoutMs);
        void ask(spec, timeoutMs, asked);
      });
    },
    close: () => line?.socket.destroy(new Error("the service stops")),
  };
}

function runnerFailure(latencyUs: number, fault: string): ProbeOutcome {
  const detail = `the runner of scripts cannot be used: ${fault}`.slice(0, DETAIL_CHARACTERS_MAX);
  return { latencyUs, error: "runner", detail };
}

/** What the operator reads of a socket that cannot be connected: the path would only be noise. */
function faultText(error: Error): string {
  const code = errorCode(error);
  if (code === "ENOENT" || code === "ECONNREFUSED") return "it is not running";
  if (code === "EACCES") return "its socket is not for this user";
  return errorText(error);
}

/** Connects; `onEnd` is called once, when the line is of no use any more. */
function openLine(socketPath: string, onEnd: (fault: string) => void): Line {
  const socket = connect(socketPath);
  const pending = new Map<number, Settle>();
  const hello = Promise.withResolvers<void>();
  let fault = "it ended the connection";
  const deadline = setTimeout(() => socket.destroy(new Error("it does not say hello")), HELLO_MS);
  const take = createLineCutter(REPLY_BYTES_MAX, (text) => {
    const message: RunnerMessage | undefined = runnerMessageFromLine(text);
    if (message === undefined) {
      socket.destroy(new Error("it said what is no answer"));
    } else if (message.kind === "done") {
      pending.get(message.id)?.(message.outcome);
    } else if (message.version === SCRIPT_PROTOCOL_VERSION) {
      clearTimeout(deadline);
      hello.resolve();
    } else {
      socket.destroy(new Error(`it speaks version ${message.version}, not ${SCRIPT_PROTOCOL_VERSION}`));
    }
  });
  socket.on("data", (chunk: Buffer) => {
    if (!take(chunk)) socket.destroy(new Error("it said too long a line"));
  });
  socket.on("error", (error) => {
    fault = faultText(error);
  });
  socket.once("close", () => {
    clearTimeout(deadline);
    hello.reject(new Error(fault));
    onEnd(fault);
  });
  return { socket, ready: hello.promise, pending };
}
