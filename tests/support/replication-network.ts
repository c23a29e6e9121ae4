/**
 * Nodes that replicate over channels in memory, in time that passes when a test says so: with latency, stalls, and
 * connections that break. What a store does on a real disk takes no time here: the clock waits for it.
 */
import type { Timers } from "../../src/cluster/transport.ts";
import type { Channel, ChannelHandlers, Peer } from "../../src/replication/channel.ts";
import { createReplicator, type Replicator } from "../../src/replication/replicator.ts";
import type { ReplicatedStore } from "../../src/replication/world.ts";
import type { Chance } from "./chance.ts";

export type VirtualTime = {
  readonly timers: Timers;
  /** Time does not pass while this is not settled. */
  readonly track: <Value>(work: Promise<Value>) => Promise<Value>;
  readonly pass: (ms: number) => Promise<void>;
  /** Lets time pass until `condition` holds; throws after `limitMs` of it, with what was waited for. */
  readonly until: (what: string, limitMs: number, condition: () => boolean) => Promise<void>;
};

type Due = { readonly atMs: number; readonly order: number; readonly run: () => void };

export function createVirtualTime(): VirtualTime {
  let nowMs = 1_000;
  let order = 0;
  const due = new Set<Due>();
  const working = new Set<Promise<unknown>>();
  const next = () => {
    let first: Due | undefined;
    for (const each of due) {
      if (first === undefined || each.atMs < first.atMs || (each.atMs === first.atMs && each.order < first.order))
        first = each;
    }
    return first;
  };
  const settle = async () => {
    do {
      while (working.size > 0) await Promise.allSettled(working);
      // Whoever waited for it goes on, and may begin something else.
      await new Promise((resolve) => setImmediate(resolve));
    } while (working.size > 0);
  };
  /** Runs what is due first, where that is not later. */
  const step = async (untilMs: number): Promise<boolean> => {
    await settle();
    const first = next();
    if (first === undefined || first.atMs > untilMs) return false;
    due.delete(first);
    nowMs = Math.max(nowMs, first.atMs);
    first.run();
    return true;
  };
  return {
    timers: {
      now: () => nowMs,
      after: (delayMs, run) => {
        const entry = { atMs: nowMs + Math.max(0, delayMs), order: order++, run };
        due.add(entry);
        return () => void due.delete(entry);
      },
    },
    track: (work) => {
      const settled = work.then(
        () => undefined,
        () => undefined,
      );
      working.add(settled);
      settled.finally(() => working.delete(settled)).catch(() => undefined);
      return work;
    },
    pass: async (ms) => {
      const untilMs = nowMs + ms;
      while (await step(untilMs));
      nowMs = untilMs;
    },
    until: async (what, limitMs, condition) => {
      const untilMs = nowMs + limitMs;
      while (!condition()) {
        if (!(await step(untilMs))) throw new Error(`${what}: not within ${limitMs} ms`);
      }
    },
  };
}

export type NetworkNode = {
  readonly nodeId: string;
  readonly store: ReplicatedStore;
  readonly replicator: Replicator;
};

type Pipe = { deliverMs: number; untaken: number; wasFull: boolean };
type Connection = { readonly from: string; readonly to: string; readonly close: (reason: string) => void };

export type ReplicationNetwork = {
  readonly time: VirtualTime;
  readonly nodes: ReadonlyMap<string, NetworkNode>;
  readonly log: readonly string[];
  /** Starts a node; it is dialed by all that can reach it. */
  readonly start: (
    store: ReplicatedStore,
    options?: { readonly isJoining?: boolean; readonly clockOffsetMs?: number },
  ) => NetworkNode;
  readonly stop: (nodeId: string) => Promise<void>;
  /** Nodes of different groups lose their connections, and take each other for dead. No groups: all reach all. */
  readonly partition: (...groups: readonly (readonly string[])[]) => void;
  /** Breaks the connections between two nodes, which are made anew. */
  readonly breakConnections: (left: string, right: string) => void;
  /** What is sent to it is taken no more, until it is told otherwise. */
  readonly stall: (nodeId: string, isStalled: boolean) => void;
  readonly isConnected: (left: string, right: string) => boolean;
  readonly stopAll: () => Promise<void>;
};

export type NetworkOptions = {
  readonly chance: Chance;
  readonly pushPullIntervalMs?: number;
  readonly latencyMs?: number;
  /** Refs that wait for one peer. */
  readonly queueRefs?: number;
};

const REDIAL_MS = 200;
/** A node is taken for dead or alive so long after it is. */
const DETECTION_MS = 1_000;
const EPOCH_MS = 1_800_000_000_000;

export function wallMs(time: VirtualTime, offsetMs = 0): number {
  return EPOCH_MS + time.timers.now() + offsetMs;
}

type Net = {
  readonly options: NetworkOptions;
  readonly time: VirtualTime;
  readonly nodes: Map<string, NetworkNode>;
  readonly connections: Set<Connection>;
  readonly stalled: Map<string, (() => void)[]>;
  readonly log: string[];
  groups: readonly (readonly string[])[];
};

export function createReplicationNetwork(options: NetworkOptions, time = createVirtualTime()): ReplicationNetwork {
  const net: Net = { options, time, nodes: new Map(), connections: new Set(), stalled: new Map(), log: [], groups: [] };
  return {
    time,
    nodes: net.nodes,
    log: net.log,
    start: (store, given = {}) => start(net, store, given),
    stop: async (nodeId) => {
      const node = net.nodes.get(nodeId);
      net.nodes.delete(nodeId);
      detect(net);
      await node?.replicator[Symbol.asyncDispose]();
      closeWhere(net, ({ from, to }) => from === nodeId || to === nodeId, "the node has stopped");
    },
    partition: (...groups) => {
      net.groups = groups;
      closeWhere(net, ({ from, to }) => !reaches(net, from, to), "a partition");
      detect(net);
      dialAll(net);
    },
    breakConnections: (left, right) => {
      closeWhere(net, ({ from, to }) => [left, right].includes(from) && [left, right].includes(to), "reset");
      dialAll(net);
    },
    stall: (nodeId, isStalled) => {
      if (isStalled) net.stalled.set(nodeId, net.stalled.get(nodeId) ?? []);
      else {
        const held = net.stalled.get(nodeId) ?? [];
        net.stalled.delete(nodeId);
        for (const deliver of held) deliver();
      }
    },
    isConnected: (left, right) => [...net.connections].some(({ from, to }) => from === left && to === right),
    stopAll: async () => {
      for (const { replicator } of [...net.nodes.values()]) await replicator[Symbol.asyncDispose]();
      net.nodes.clear();
    },
  };
}

function start(
  net: Net,
  store: ReplicatedStore,
  given: { readonly isJoining?: boolean; readonly clockOffsetMs?: number },
): NetworkNode {
  const { chance, pushPullIntervalMs = 30_000 } = net.options;
  const { nodeId } = store;
  const replicator = createReplicator({
    store: tracked(net.time, store),
    timers: net.time.timers,
    random: () => chance.below(1 << 20) / (1 << 20),
    nowMs: () => wallMs(net.time, given.clockOffsetMs),
    settings: { pushPullIntervalMs, isJoining: given.isJoining === true },
    log: (level, message, fields) => net.log.push(`${nodeId} ${level} ${message} ${JSON.stringify(fields ?? {})}`),
    ...(net.options.queueRefs !== undefined && { queueLimits: { refs: net.options.queueRefs, bytes: 2 ** 26 } }),
    standing: () => ({ digest: store.digest.isReady() ? store.digest.root() : null, zones: {} }),
  });
  const node = { nodeId, store, replicator };
  net.nodes.set(nodeId, node);
  detect(net);
  dialAll(net);
  return node;
}

/** The clock waits for the store. */
function tracked(time: VirtualTime, store: ReplicatedStore): ReplicatedStore {
  const { digest } = store;
  return {
    ...store,
    applyRemote: (items, options) => time.track(store.applyRemote(items, options)),
    applyAudit: (entries) => time.track(store.applyAudit(entries)),
    renewAuditInstance: (instance) => time.track(store.renewAuditInstance(instance)),
    setAgreement: (atMs, agreements) => time.track(store.setAgreement(atMs, agreements)),
    startOver: (knownMs) => time.track(store.startOver(knownMs)),
    digest: {
      ...digest,
      ready: () => time.track(digest.ready()),
      versions: (leaves) => time.track(digest.versions(leaves)),
    },
  };
}

function reaches({ groups }: Net, from: string, to: string): boolean {
  return groups.length === 0 || groups.some((group) => group.includes(from) && group.includes(to));
}

/** Membership, a while later. */
function detect(net: Net): void {
  net.time.timers.after(DETECTION_MS, () => {
    for (const { nodeId, replicator } of net.nodes.values()) {
      replicator.setPeers([...net.nodes.keys()].filter((other) => other !== nodeId && reaches(net, nodeId, other)));
    }
  });
}

function closeWhere({ connections }: Net, isMeant: (connection: Connection) => boolean, reason: string): void {
  for (const connection of [...connections]) if (isMeant(connection)) connection.close(reason);
}

function dialAll(net: Net): void {
  for (const from of net.nodes.keys()) {
    for (const to of net.nodes.keys()) {
      if (from !== to)
        net.time.timers.after(REDIAL_MS + net.options.chance.below(REDIAL_MS), () => dial(net, from, to));
    }
  }
}

function dial(net: Net, from: string, to: string): void {
  const [dialer, acceptor] = [net.nodes.get(from), net.nodes.get(to)];
  if (dialer === undefined || acceptor === undefined || !reaches(net, from, to)) return;
  if ([...net.connections].some((each) => each.from === from && each.to === to)) return;
  connect(net, dialer, acceptor);
}

function connect(net: Net, dialer: NetworkNode, acceptor: NetworkNode): void {
  let isOpen = true;
  const handlers: { [Side in "dialer" | "acceptor"]?: ChannelHandlers } = {};
  const close = (reason: string) => {
    if (!isOpen) return;
    isOpen = false;
    net.connections.delete(connection);
    handlers.dialer?.onClose(reason);
    handlers.acceptor?.onClose(reason);
    net.time.timers.after(REDIAL_MS, () => dial(net, dialer.nodeId, acceptor.nodeId));
  };
  const connection: Connection = { from: dialer.nodeId, to: acceptor.nodeId, close };
  net.connections.add(connection);
  const channelTo = (to: NetworkNode, side: "dialer" | "acceptor"): Channel => {
    const pipe: Pipe = { deliverMs: 0, untaken: 0, wasFull: false };
    const own = side === "dialer" ? "acceptor" : "dialer";
    return {
      peer: peerOf(to),
      send: (message) => {
        if (isOpen)
          transmit(
            net,
            to.nodeId,
            pipe,
            message,
            () => (isOpen ? handlers[side] : undefined),
            () => handlers[own],
          );
      },
      untakenBytes: () => pipe.untaken,
      skewMs: () => 0,
      close,
    };
  };
  handlers.dialer = dialer.replicator.attach(channelTo(acceptor, "acceptor"), true);
  if (isOpen) handlers.acceptor = acceptor.replicator.attach(channelTo(dialer, "dialer"), false);
}

/** Brings a message to the other side after the latency, behind all that were sent before. */
function transmit(
  net: Net,
  to: string,
  pipe: Pipe,
  message: Uint8Array,
  receiver: () => ChannelHandlers | undefined,
  sender: () => ChannelHandlers | undefined,
): void {
  const { timers } = net.time;
  const latencyMs = net.options.latencyMs ?? 1 + net.options.chance.below(5);
  pipe.untaken += message.length;
  if (pipe.untaken > DRAIN_BYTES) pipe.wasFull = true;
  pipe.deliverMs = Math.max(pipe.deliverMs, timers.now() + latencyMs);
  const copy = Uint8Array.from(message);
  const deliver = () => {
    const held = net.stalled.get(to);
    if (held !== undefined) {
      held.push(deliver);
      return;
    }
    pipe.untaken -= copy.length;
    const taker = receiver();
    taker?.onMessage(copy);
    if (taker === undefined || !pipe.wasFull || pipe.untaken > DRAIN_BYTES) return;
    pipe.wasFull = false;
    sender()?.onDrain();
  };
  timers.after(pipe.deliverMs - timers.now(), deliver);
}
const DRAIN_BYTES = 65_536;

function peerOf({ nodeId, store }: NetworkNode): Peer {
  const { instanceId } = store;
  return {
    nodeId,
    instanceId,
    version: 1,
    abilities: [],
    collectedUpToMs: store.collectedUpToMs(),
    lastAgreementMs: store.lastAgreementMs(),
    clockSkewMs: 0,
  };
}
