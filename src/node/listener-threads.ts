/** The threads that listen, as the supervisor has them. */
import type { WorkerOptions } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { EPOCH_STRIDE, EPOCHS_AT, type SharedImage } from "../image/shared.ts";
import { STREAM_LIMITS } from "../listen/limits.ts";
import type { Listener } from "../listen/sockets.ts";
import type {
  AnswerOptions,
  ListenerThreadData,
  ListenerThreadMessage,
  LoopThreadData,
  SupervisorMessage,
  ThreadSocket,
} from "../listen/threads.ts";
import type { Config } from "./config.ts";
import { LISTENER_HEAP_MB } from "./limits.ts";
import type { ResolveSupervision } from "./resolve-supervision.ts";
import { countRestart, type NodeStatus, setRunning } from "./status.ts";
import { type SupervisedThread, superviseThread } from "./supervised-thread.ts";

export type ListenerThread = SupervisedThread<SupervisorMessage>;

/** A listener thread: its place among the threads is that in the plan. */
export type ListenerPlan = {
  readonly name: string;
  readonly kind: "batch" | "dgram" | "stream";
  readonly sockets: readonly ThreadSocket[];
};

export function planListeners(
  udp: "batch" | "dgram",
  listeners: readonly Listener[],
  answerNames: readonly string[],
): readonly ListenerPlan[] {
  const answering = answerNames.map((name, thread) => {
    const sockets = listeners.map((one) => ({ address: one.address, descriptor: one.udp[thread % one.udp.length] }));
    return { name, kind: udp, sockets };
  });
  const tcp = listeners.map((one) => ({ address: one.address, descriptor: one.tcp }));
  return [...answering, { name: "stream", kind: "stream", sockets: tcp }];
}

export function answerOptions(
  config: Pick<Config, "node.id" | "dns.max_udp_size" | "dns.client_subnet_sources">,
): AnswerOptions {
  return {
    nodeId: config["node.id"],
    maxUdpSize: config["dns.max_udp_size"],
    tcpIdleSeconds: STREAM_LIMITS.idleMs / 1000,
    clientSubnetSources: config["dns.client_subnet_sources"],
  };
}

/** What all of them are built from. */
export type ListenerFrame = {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  readonly options: AnswerOptions;
  readonly entries: { readonly batch: URL; readonly dgram: URL; readonly stream: URL };
  readonly resolve: Pick<ResolveSupervision, "connectListener">;
  readonly log: Log;
};

/** Starts a listener thread and waits until it serves for the first time. */
export function startListener(
  frame: ListenerFrame,
  { name, kind, sockets }: ListenerPlan,
  thread: number,
): Promise<ListenerThread> {
  const { options, log, shared, status, entries, resolve: resolver } = frame;
  const data: ListenerThreadData = { shared, thread, sockets, options };
  const resourceLimits = { maxOldGenerationSizeMb: LISTENER_HEAP_MB };
  let start = 0;
  const workerOptions = (post: ListenerThread["post"]): WorkerOptions => {
    // A batch thread hears nothing: its answers leave by its sockets.
    if (kind === "batch") return { workerData: data, resourceLimits };
    const resolvePort = resolver.connectListener(thread, (port) => post({ kind: "resolve-port", port }, [port]));
    const workerData: LoopThreadData = { ...data, start, resolvePort };
    start += 1;
    return { workerData, transferList: [resolvePort], resourceLimits };
  };
  return new Promise((resolve) => {
    const supervised: ListenerThread = superviseThread<ListenerThreadMessage, SupervisorMessage>({
      name,
      entry: entries[kind],
      log,
      workerOptions: () => workerOptions((command, transfer) => supervised.post(command, transfer)),
      onMessage: (message) => {
        switch (message.kind) {
          case "serving":
            setRunning(status, name, true);
            return resolve(supervised);
          case "log":
            return log(message.line.level, message.line.message, message.line.fields);
          case "failure":
            return log("error", `answering a query failed: ${message.detail}`, {
              thread: name,
              query: Buffer.from(message.query).toString("hex"),
            });
        }
      },
      onDeath: () => {
        setRunning(status, name, false);
        countRestart(status, name);
        clearEpoch(shared, thread);
      },
    });
  });
}

/** Nothing of a dead thread reads the image any more; its epoch would keep freed blocks for ever. */
export function clearEpoch(shared: SharedImage, thread: number): void {
  Atomics.store(new Int32Array(shared.control), EPOCHS_AT + thread * EPOCH_STRIDE, 0);
}
