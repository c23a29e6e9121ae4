/** What of the replication makes a node ready or not: a node that is not is drained, and DNS answers on all the while. */
import type { ConfigSettings } from "../model/config-schemas.ts";
import { READYZ_QUEUE_THRESHOLD } from "../model/limits.ts";
import type { Config } from "./config.ts";
import type { Component } from "./management.ts";

export type ReplicationFigures = {
  /** Whether this node has once agreed with another one on everything, or began the cluster itself. */
  readonly hasSynced: boolean;
  /** Whether what a first sync brought answers. */
  readonly isPublished: boolean;
  /** Items that the first sync has brought so far. */
  readonly syncedItems: number;
  /** The greater of the changes received and not yet applied, and the smallest backlog over the peers that are alive. */
  readonly queueDepth: number;
  /** Since the last exchange that was completed, or since the start; milliseconds. */
  readonly sinceExchangeMs: number;
  /** Measured: from the arrival of a change until it is applied; milliseconds. */
  readonly applyMs: number;
  /** All that are alive, and those of them that have no first sync before them: others cannot be exchanged with. */
  readonly peersAlive: number;
  readonly peersComplete: number;
};

export type ReplicationSettings = {
  readonly pushPullIntervalMs: number;
  /** Changes; 0: READYZ_QUEUE_THRESHOLD. */
  readonly queueThreshold: number;
};

const FRESHNESS_INTERVALS = 5;
const FRESHNESS_MAX_MS = 30 * 60_000;

/** How old the last exchange may be: five of the longer interval, and 30 minutes at most. Milliseconds. */
export function freshnessWindowMs(pushPullIntervalMs: number, applyMs: number): number {
  return Math.min(FRESHNESS_MAX_MS, FRESHNESS_INTERVALS * Math.max(pushPullIntervalMs, applyMs));
}

/**
 * The components `initial_sync`, `replication_queue` and `replication_freshness`. Clocks that differ are no reason to drain
 * a node: `/nodes` and the metrics show them.
 */
export function replicationReadiness(
  figures: ReplicationFigures,
  { pushPullIntervalMs, queueThreshold }: ReplicationSettings,
): Readonly<Record<"initial_sync" | "replication_queue" | "replication_freshness", Component>> {
  const { queueDepth, sinceExchangeMs, peersComplete } = figures;
  const threshold = queueThreshold === 0 ? READYZ_QUEUE_THRESHOLD : queueThreshold;
  const windowMs = freshnessWindowMs(pushPullIntervalMs, figures.applyMs);
  return {
    initial_sync: {
      ready: figures.hasSynced && figures.isPublished,
      detail: syncText(figures),
    },
    replication_queue: {
      ready: queueDepth <= threshold,
      detail: `${queueDepth} changes wait; up to ${threshold} may`,
    },
    replication_freshness:
      peersComplete === 0
        ? { ready: true, detail: "no other node that has all is alive" }
        : {
            ready: sinceExchangeMs <= windowMs,
            detail: `last exchange ${seconds(sinceExchangeMs)} s ago; up to ${seconds(windowMs)} s may pass`,
          },
  };
}

function syncText({ hasSynced, isPublished, peersAlive, syncedItems }: ReplicationFigures): string {
  if (hasSynced) return isPublished ? "done" : "all has come and is being published";
  if (peersAlive === 0) return "no other node has been reached yet";
  return `${syncedItems} objects so far; the node has not yet agreed with another one`;
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

/**
 * What this node's own configuration says of the timing, which holds where /config/replication says nothing: the `zeros` of
 * readConfig(store, "replication", zeros), whose `effective` is what a node starts with.
 */
export function replicationTiming(config: Config): ConfigSettings<"replication"> {
  return {
    push_pull_interval_seconds: config["replication.push_pull_interval_seconds"],
    readyz_queue_threshold: config["replication.readyz_queue_threshold"] || READYZ_QUEUE_THRESHOLD,
  };
}
