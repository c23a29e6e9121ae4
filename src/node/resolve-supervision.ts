/** The thread that resolves as the supervisor has it, joined with control and with each thread that sends its answers itself. */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import type { SharedImage } from "../image/shared.ts";
import type { AnswerOptions } from "../listen/threads.ts";
import { RESOLVE_HEAP_MB, UPSTREAM_DESCRIPTOR_SHARE, UPSTREAM_SOCKETS_MAX } from "./limits.ts";
import { type LinkedThread, superviseLinked } from "./linked-thread.ts";
import { descriptorLimit } from "./open-files.ts";
import type { ResolveCommand, ResolveData } from "./resolve-thread.ts";
import type { NodeStatus } from "./status.ts";

export type ResolveSupervisionOptions = {
  readonly entry: URL;
  /** Without a sign of life for this long, the thread is ended and replaced. */
  readonly lifelessMs: number;
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  /** See ResolveData. */
  readonly thread: number;
  readonly ownThread: number;
  readonly sockets: ResolveData["sockets"];
  readonly options: AnswerOptions;
  readonly caPem: string | undefined;
  readonly log: Log;
};

export type ResolveSupervision = LinkedThread<ResolveCommand> & {
  /**
   * The way to it for a listener thread that is about to start. `onReplaced` is given the new way whenever the thread that
   * resolves was replaced, until the listener's place is connected again.
   */
  readonly connectListener: (thread: number, onReplaced: (port: MessagePort) => void) => MessagePort;
};

export function startResolve(options: ResolveSupervisionOptions): ResolveSupervision {
  const { shared, status, thread, ownThread, sockets, caPem } = options;
  const listeners = new Map<number, (port: MessagePort) => void>();
  const upstreamSockets = Math.min(UPSTREAM_SOCKETS_MAX, Math.floor(descriptorLimit() * UPSTREAM_DESCRIPTOR_SHARE));
  // Outlives the thread: its replacement closes what it left open.
  const descriptors = new SharedArrayBuffer((upstreamSockets + 1) * Int32Array.BYTES_PER_ELEMENT);
  const linked = superviseLinked<ResolveCommand>({
    ...options,
    name: "resolve",
    heapMb: RESOLVE_HEAP_MB,
    threads: [thread, ownThread],
    start: (port) => {
      const ways = [...listeners].map(([listener, onReplaced]) => {
        const { port1, port2 } = new MessageChannel();
        onReplaced(port2);
        return { thread: listener, port: port1 };
      });
      const workerData: ResolveData = {
        shared,
        status,
        thread,
        ownThread,
        sockets,
        options: options.options,
        caPem,
        descriptors,
        port,
        listenerPorts: ways,
      };
      return { workerData, transfer: ways.map((way) => way.port) };
    },
  });
  return {
    ...linked,
    connectListener: (listener, onReplaced) => {
      listeners.set(listener, onReplaced);
      const { port1, port2 } = new MessageChannel();
      linked.thread.post({ kind: "listener-port", thread: listener, port: port1 }, [port1]);
      return port2;
    },
  };
}
