/** The health thread as the supervisor has it. */
import type { Log } from "../base/log.ts";
import type { SharedImage } from "../image/shared.ts";
import type { Config } from "./config.ts";
import type { HealthData } from "./health-thread.ts";
import { HEALTH_HEAP_MB } from "./limits.ts";
import { type LinkedThread, superviseLinked } from "./linked-thread.ts";
import type { NodeStatus } from "./status.ts";

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

export type HealthSupervision = LinkedThread<never>;

export function startHealth(options: HealthSupervisionOptions): HealthSupervision {
  const { entry, lifelessMs, shared, status, config, nodeId, runnerSocket, thread, log } = options;
  return superviseLinked({
    name: "health",
    entry,
    heapMb: HEALTH_HEAP_MB,
    lifelessMs,
    shared,
    status,
    threads: [thread],
    start: (port, isFirst) => {
      const workerData: HealthData = {
        shared,
        status,
        thread,
        nodeId,
        dataDirectory: config["node.data_dir"],
        metadataUrl: config["cloud.metadata_url"],
        runnerSocket,
        isFirst,
        port,
      };
      return { workerData };
    },
    log,
  });
}
