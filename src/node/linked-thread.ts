/** A thread that serves the control thread: started before it, replaced when it dies, and joined with it by a channel. */
import { MessageChannel, type MessagePort, type Transferable } from "node:worker_threads";
import type { Log, LogLine } from "../base/log.ts";
import { EPOCH_STRIDE, EPOCHS_AT, type SharedImage } from "../image/shared.ts";
import { countRestart, giveLifeSign, isAlive, type NodeStatus, setRunning } from "./status.ts";
import { type SupervisedThread, superviseThread } from "./supervised-thread.ts";

/** To the supervisor. */
export type LinkedThreadMessage =
  | { readonly kind: "log"; readonly line: LogLine }
  /** It takes what the control thread says. */
  | { readonly kind: "running" };

/** From the supervisor. */
export type LinkedThreadCommand =
  /** The control thread was replaced. */
  { readonly kind: "control-port"; readonly port: MessagePort } | { readonly kind: "stop" };

/** What a start needs besides the port to the control thread. */
export type LinkedStart = { readonly workerData: unknown; readonly transfer?: readonly Transferable[] };

export type LinkedOptions = {
  /** Also the name in the node's status. */
  readonly name: string;
  readonly entry: URL;
  readonly heapMb: number;
  /** Without a sign of life for this long, the thread is ended and replaced. */
  readonly lifelessMs: number;
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  /** Its places among the readers of the image. */
  readonly threads: readonly number[];
  /** `port` leads to the control thread; `isFirst` is false for a replacement. */
  readonly start: (port: MessagePort, isFirst: boolean) => LinkedStart;
  readonly log: Log;
};

export type LinkedThread<Command> = {
  readonly thread: SupervisedThread<Command | LinkedThreadCommand>;
  /** The way to it for a control thread that is about to start. */
  readonly connect: () => MessagePort;
  /** The thread was replaced: the port is the new way to it of the control thread that runs. */
  readonly onReplaced: (listener: (port: MessagePort) => void) => void;
};

export function superviseLinked<Command = never>(options: LinkedOptions): LinkedThread<Command> {
  const { name, entry, shared, status, threads, log } = options;
  /** The way to the thread that starts; a control thread that starts first takes it, for those that run it is sent. */
  let unused: MessagePort | undefined;
  let isFirst = true;
  let tellReplaced = (_: MessagePort): void => {};
  const supervised = superviseThread<LinkedThreadMessage, Command | LinkedThreadCommand>({
    name,
    entry,
    log,
    isAlive: () => isAlive(status, name, options.lifelessMs),
    workerOptions: () => {
      giveLifeSign(status, name);
      const { port1, port2 } = new MessageChannel();
      const { workerData, transfer = [] } = options.start(port1, isFirst);
      if (isFirst) unused = port2;
      else tellReplaced(port2);
      isFirst = false;
      return {
        workerData,
        transferList: [port1, ...transfer],
        resourceLimits: { maxOldGenerationSizeMb: options.heapMb },
      };
    },
    onMessage: (message) => {
      if (message.kind === "log") return log(message.line.level, message.line.message, message.line.fields);
      setRunning(status, name, true);
    },
    onDeath: () => {
      setRunning(status, name, false);
      countRestart(status, name);
      // Nothing of a dead thread reads the image any more; its epoch would keep freed blocks for ever.
      const control = new Int32Array(shared.control);
      for (const thread of threads) Atomics.store(control, EPOCHS_AT + thread * EPOCH_STRIDE, 0);
    },
  });
  const connect = () => {
    if (unused !== undefined) {
      const first = unused;
      unused = undefined;
      return first;
    }
    const { port1, port2 } = new MessageChannel();
    supervised.post({ kind: "control-port", port: port1 }, [port1]);
    return port2;
  };
  const onReplaced = (listener: (port: MessagePort) => void) => {
    tellReplaced = listener;
  };
  return { thread: supervised, connect, onReplaced };
}
