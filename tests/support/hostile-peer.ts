/** Nodes that replicate over real connections, and peers with the cluster's key that answer as a test likes. */
import type { Timers } from "../../src/cluster/transport.ts";
import type { Channel, ChannelOpened } from "../../src/replication/channel.ts";
import { type AnswerMessage, decodeMessage, encodeMessage, type Question } from "../../src/replication/messages.ts";
import { createReplicator, type Replicator } from "../../src/replication/replicator.ts";
import type { ReplicatedStore } from "../../src/replication/world.ts";
import { type LabNode, labNode } from "./stream-lab.ts";

export type ReplicatingNode = AsyncDisposable & {
  readonly lab: LabNode;
  readonly replicator: Replicator;
  /** Knows all of these, and dials them. */
  readonly meet: (others: readonly { readonly lab: LabNode }[]) => void;
};

/** Time that passes so many times as fast. */
export function hastyTimers(factor: number): Timers {
  return {
    now: () => performance.now() * factor,
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs / factor);
      return () => clearTimeout(timer);
    },
  };
}

export async function replicatingNode(
  store: ReplicatedStore,
  { timers, isJoining = false }: { readonly timers: Timers; readonly isJoining?: boolean },
): Promise<ReplicatingNode> {
  const replicator = createReplicator({
    ...{ store, timers, random: Math.random, nowMs: Date.now },
    settings: { pushPullIntervalMs: 30_000, isJoining },
    log: (level, message, fields = {}) => void lab.lines.push({ level, message, fields }),
    standing: () => ({ digest: null, zones: {} }),
  });
  const lab: LabNode = await labNode(store.nodeId, {
    instanceId: store.instanceId,
    onIncoming: (channel) => replicator.attach(channel, false),
    onOutgoing: (channel) => replicator.attach(channel, true),
  });
  return {
    ...{ lab, replicator },
    meet: (others) => {
      replicator.setPeers(others.map(({ lab: { id } }) => id));
      lab.peers.setPeers(others.map(({ lab: { address } }) => address));
    },
    [Symbol.asyncDispose]: async () => {
      await lab[Symbol.asyncDispose]();
      await replicator[Symbol.asyncDispose]();
    },
  };
}

export type HostilePeer = AsyncDisposable & {
  readonly lab: LabNode;
  readonly asked: Question["ask"][];
  /** Why its connections ended. */
  readonly closed: string[];
  readonly channels: Channel[];
};

/** What it sends of an answer, now or later. */
export type Reply = (answer: Omit<AnswerMessage, "type" | "id" | "fault">) => void;

/** Answers questions by `onQuestion` and takes no notice of anything else. */
export async function hostilePeer(
  id: string,
  onQuestion: (question: Question, reply: Reply) => void,
): Promise<HostilePeer> {
  const asked: Question["ask"][] = [];
  const closed: string[] = [];
  const channels: Channel[] = [];
  const opened: ChannelOpened = (channel) => {
    channels.push(channel);
    return {
      onMessage: (bytes) => {
        const message = decodeMessage(bytes);
        if (message.type !== "question") return;
        asked.push(message.ask);
        onQuestion(message, (answer) =>
          channel.send(encodeMessage({ type: "answer", id: message.id, fault: undefined, ...answer })),
        );
      },
      onDrain: () => {},
      onClose: (reason) => closed.push(reason),
    };
  };
  const lab = await labNode(id, { onIncoming: opened, onOutgoing: opened });
  return { ...{ lab, asked, closed, channels }, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
}
