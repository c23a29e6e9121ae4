/** What the parts of a replicator share. */
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { RefusedItem, RemoteOptions } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import type { ReplicaStore } from "../store/replica.ts";
import type { AuditSync } from "./audit-sync.ts";
import type { Conductor } from "./conductor.ts";
import type { Counters } from "./figures.ts";
import type { Inbox } from "./inbox.ts";
import type { LongAnswers } from "./long-answers.ts";
import type { Standing, StoreStatus } from "./messages.ts";
import type { OutboxLimits } from "./outbox.ts";
import type { Peer } from "./peer.ts";
import type { Sender } from "./sender.ts";

/** What replication needs of a store; NodeStore has all of it. */
export type ReplicatedStore = ReplicaStore & {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly applyRemote: (items: readonly RawItem[], options?: RemoteOptions) => Promise<readonly RefusedItem[]>;
};

export type ReplicatorOptions = {
  readonly store: ReplicatedStore;
  readonly timers: Timers;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly settings: {
    readonly pushPullIntervalMs: number;
    /** Whether this node joins others: then it is complete only after its first sync. */
    readonly isJoining: boolean;
  };
  readonly log: Log;
  /** What this node has of those zones, for whoever compares the nodes. */
  readonly standing: (zones: readonly string[]) => Standing;
  /** Resolves when this node answers what the store has. */
  readonly published?: () => Promise<void>;
  /** The first sync is over; also where the store had to begin anew. */
  readonly onComplete?: () => void;
  /** Of the queue to each peer. */
  readonly queueLimits?: OutboxLimits;
};

export type World = {
  readonly options: ReplicatorOptions;
  readonly peers: Map<string, Peer>;
  readonly counters: Counters;
  readonly inbox: Inbox;
  readonly sender: Sender;
  readonly conductor: Conductor;
  readonly audit: AuditSync;
  readonly longAnswers: LongAnswers;
  /** Ends the pauses of whoever is in one. */
  readonly pauses: Set<() => void>;
  /** Since when another node is alive: who was alone could not exchange anything. */
  inCompanySinceMs: number;
  isStopped: boolean;
};

export function statusOf({ options, conductor }: World): StoreStatus {
  const { store } = options;
  return {
    isComplete: conductor.isComplete(),
    collectedUpToMs: store.collectedUpToMs(),
    lastAgreementMs: store.lastAgreementMs(),
    agreements: conductor.agreements(),
  };
}

export function alivePeers({ peers }: World): readonly Peer[] {
  return [...peers.values()].filter(({ isAlive }) => isAlive);
}
