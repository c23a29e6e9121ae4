/** Packets: every one takes along what is to be gossiped, and ticks send the rest to a few members in turn. */
import type { Broadcast, BroadcastQueue } from "./broadcast-queue.ts";
import type { Codec } from "./codec.ts";
import type { Counters } from "./counters.ts";
import type { Endpoint, PacketMessage } from "./messages.ts";
import { isLive, type Node, type NodeTable, shuffle } from "./node-table.ts";
import { type MembershipSettings, PACKET_MESSAGES_MAX } from "./settings.ts";
import type { Timers, Transport } from "./transport.ts";

/** Changes that come together leave together. */
const FIRST_TICK_MS = 5;

export type Gossip = {
  /** `protocol`: the greatest that the receiver speaks, 0 where that is unknown. */
  readonly send: (to: Endpoint, protocol: number, message: PacketMessage, more?: PacketMessage) => void;
  readonly broadcast: (broadcast: Broadcast, onDone?: () => void) => void;
  readonly stop: () => void;
};

export type GossipOptions = {
  readonly table: NodeTable;
  readonly queue: BroadcastQueue;
  readonly codec: Codec;
  readonly transport: Transport;
  readonly timers: Timers;
  readonly settings: MembershipSettings;
  readonly random: () => number;
  readonly counters: Counters;
};

export function createGossip(options: GossipOptions): Gossip {
  const { table, queue, codec, transport, timers, settings, random, counters } = options;
  let cancel: (() => void) | undefined;
  let lastTickMs = Number.NEGATIVE_INFINITY;
  let isStopped = false;
  let round: Node[] = [];

  const send = (to: Endpoint, protocol: number, own: readonly PacketMessage[]): void => {
    if (isStopped) return;
    const gossip = queue.next(PACKET_MESSAGES_MAX);
    if (own.length === 0 && gossip.length === 0) return;
    const { packet, count } = codec.packPacket([...own, ...gossip.map(({ message }) => message)], protocol);
    queue.sent(gossip, count - own.length);
    counters.packetsOut++;
    counters.bytesOut += packet.length;
    transport.sendPacket(packet, to);
  };
  const hears = (node: Node): boolean =>
    isLive(node) || (node.state === "dead" && timers.now() - node.sinceMs < settings.gossipToDeadMs);
  /** Everybody's turn comes before anybody's second one. */
  const targets = (): readonly Node[] => {
    const chosen = new Set<Node>();
    for (let rounds = 0; rounds < 2 && chosen.size < settings.gossipNodes; rounds++) {
      for (let node = round.pop(); node !== undefined; node = round.pop()) {
        if (table.get(node.name) === node && hears(node)) chosen.add(node);
        if (chosen.size === settings.gossipNodes) return [...chosen];
      }
      round = [...table.all()].filter((node) => node !== table.self && hears(node));
      shuffle(round, random);
    }
    return [...chosen];
  };
  const arm = (): void => {
    if (cancel !== undefined || isStopped || queue.size() === 0) return;
    const delayMs = Math.max(FIRST_TICK_MS, lastTickMs + settings.gossipIntervalMs - timers.now());
    cancel = timers.after(delayMs, () => {
      cancel = undefined;
      lastTickMs = timers.now();
      const nodes = targets();
      for (const { endpoint, versions } of nodes) send(endpoint, versions[1], []);
      // Where there is nobody, what waits is sent as soon as there is something new to say.
      if (nodes.length > 0) arm();
    });
  };

  return {
    send: (to, protocol, message, more) => send(to, protocol, more === undefined ? [message] : [message, more]),
    broadcast: (broadcast, onDone) => {
      queue.add(broadcast, onDone);
      arm();
    },
    stop: () => {
      isStopped = true;
      cancel?.();
    },
  };
}
