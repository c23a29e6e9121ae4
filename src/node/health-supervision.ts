/** The health thread as the supervisor has it: started first, replaced when it dies, and joined with control by a channel. */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { EPOCH_STRIDE, EPOCHS_AT, type SharedImage } from "../image/shared.ts";
import type { Config } from "./config.ts";
import type { HealthCommand, HealthData, HealthThreadMessage } from "./health-thread.ts";
import { HEALTH_HEAP_MB } from "./limits.ts";
import { countRestart, giveLifeSign, lifeSignAgeMs, type NodeStatus, setRunning } from "./status.ts";
import { type SupervisedThread, superviseThread } from "./supervised-thread.ts";

export type HealthSupervisionOptions = {
  readonly entry: URL;
  /** Without a sign of life for this long, the thread is ended and replaced. */
  readonly lifelessMs: number;
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  readonly config: Pick<Config, "node.data_dir" | "cloud.metadata_url">;
  readonly nodeId: string;
  /** Of the runner of scripts; undefined where scripts are not enabled. */
  readonly runnerSocket: string | undefined;
  /** Its place among the readers of the image. */
  readonly thread: number;
  readonly log: Log;
};

export type HealthSupervision = {
  readonly thread: SupervisedThread<HealthCommand>;
  /** The way to it for a control thread that is about to start. */
  readonly connect: () => MessagePort;
  /** The thread was replaced: the port is the new way to it of the control thread that runs. */
  readonly onReplaced: (listener: (port: MessagePort) => void) => void;
};

export function startHealth(options: HealthSupervisionOptions): HealthSupervision {
  const { entry, shared, status, config, nodeId, thread, log } = options;
  /** The way to the thread that starts; a control thread that starts first takes it, for those that run it is sent. */
  let unused: MessagePort | undefined;
  let isFirst = true;
  let tellReplaced = (_: MessagePort): void => {};
  const supervised = superviseThread<HealthThreadMessage, HealthCommand>({
    name: "health",
    entry,
    log,
    isAlive: () => lifeSignAgeMs(status, "health") < options.lifelessMs,
    workerOptions: () => {
      giveLifeSign(status, "health");
      const { port1, port2 } = new MessageChannel();
      const workerData: HealthData = {
        shared,
        status,
        thread,
        nodeId,
        dataDirectory: config["node.data_dir"],
        metadataUrl: config["cloud.metadata_url"],
        runnerSocket: options.runnerSocket,
        isFirst,
        port: port1,
      };
      if (isFirst) unused = port2;
      else tellReplaced(port2);
      isFirst = false;
      return { workerData, transferList: [port1], resourceLimits: { maxOldGenerationSizeMb: HEALTH_HEAP_MB } };
    },
    onMessage: (message) => {
      if (message.kind === "log") return log(message.line.level, message.line.message, message.line.fields);
      setRunning(status, "health", true);
    },
    onDeath: () => {
      setRunning(status, "health", false);
      countRestart(status, "health");
      Atomics.store(new Int32Array(shared.control), EPOCHS_AT + thread * EPOCH_STRIDE, 0);
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
