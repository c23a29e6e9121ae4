/**
 * Membership by SWIM with Lifeguard as memberlist speaks it: who else is there, who of them is alive. Everything that is not plain
 * logic is given: the network, time, chance, bytes (codec.ts), and whoever is told (member.ts).
 */
import type { Log } from "../base/log.ts";
import { createAcknowledgements } from "./acknowledgements.ts";
import type { ResolveHost } from "./addresses.ts";
import { createBroadcastQueue } from "./broadcast-queue.ts";
import type { Codec } from "./codec.ts";
import { createCounters } from "./counters.ts";
import { createExchanges } from "./exchanges.ts";
import { jittered, pushPullIntervalMs, retransmitLimit, userTransmitLimit } from "./formulas.ts";
import { createGossip } from "./gossip.ts";
import { createLocalHealth } from "./local-health.ts";
import type { Delegate, Membership } from "./member.ts";
import { createMemberStates, memberOf, VERSIONS } from "./member-states.ts";
import type { Endpoint, PacketMessage } from "./messages.ts";
import { createNodeTable, isReachable, type Node } from "./node-table.ts";
import { createNotes } from "./notes.ts";
import { createPacketGate } from "./packet-gate.ts";
import { createProber } from "./prober.ts";
import { createRejoin } from "./rejoin.ts";
import {
  checkMembershipSettings,
  DEFAULT_MEMBERSHIP_SETTINGS,
  type MembershipSettings,
  USER_PAYLOAD_BYTES_MAX,
} from "./settings.ts";
import { createSteadyTimers } from "./steady-timers.ts";
import type { Timers, Transport } from "./transport.ts";
import { META_BYTES_MAX, NODE_NAME_BYTES_MAX } from "./wire-limits.ts";

export type MembershipOptions = {
  /** Of this node, alone in the cluster; at most 512 bytes of UTF-8. */
  readonly name: string;
  /** At most 512 bytes. */
  readonly meta: Uint8Array;
  /** Where the others reach this node. */
  readonly advertise: Endpoint;
  readonly settings?: Partial<MembershipSettings>;
  readonly codec: Codec;
  /** Begun here, and disposed by who made it. */
  readonly transport: Transport;
  readonly timers: Timers;
  /** From 0 to below 1, as Math.random. */
  readonly random: () => number;
  readonly delegate: Delegate;
  readonly log: Log;
  readonly resolveHost: ResolveHost;
};

function checkMeta(meta: Uint8Array): void {
  if (meta.length > META_BYTES_MAX) throw new RangeError(`meta has at most ${META_BYTES_MAX} bytes`);
}

function checkOptions({ name, meta, advertise }: MembershipOptions): void {
  const bytes = Buffer.byteLength(name);
  if (bytes < 1 || bytes > NODE_NAME_BYTES_MAX) throw new RangeError(`a name has 1 to ${NODE_NAME_BYTES_MAX} bytes`);
  if (!isReachable(advertise)) throw new RangeError("nobody can reach the address that is advertised");
  checkMeta(meta);
}

function createSelf({ name, advertise: endpoint, meta, timers }: MembershipOptions): Node {
  const sinceMs = timers.now();
  return { name, endpoint, meta, versions: VERSIONS, incarnation: 1, state: "alive", sinceMs, suspicion: undefined };
}

function createParts(options: MembershipOptions) {
  const { codec, transport, timers, random, delegate, log, resolveHost } = options;
  const settings: MembershipSettings = { ...DEFAULT_MEMBERSHIP_SETTINGS, ...options.settings };
  checkMembershipSettings(settings);
  const state = { isLeaving: false };
  const counters = createCounters();
  const health = createLocalHealth();
  const acknowledgements = createAcknowledgements(random);
  const table = createNodeTable(createSelf(options), random);
  // Who has stood still itself doubts itself before it doubts others.
  const steadyTimers = createSteadyTimers(timers, () => health.change(1));
  const { retransmitMultiplier } = settings;
  const queue = createBroadcastQueue(({ about }) =>
    about === undefined
      ? userTransmitLimit(table.count(), retransmitMultiplier)
      : retransmitLimit(table.count(), retransmitMultiplier),
  );
  const gossip = createGossip({ table, queue, codec, transport, timers, settings, random, counters });
  const shared = { table, settings, timers: steadyTimers, random, health, counters, delegate, gossip };
  const states = createMemberStates({
    ...shared,
    note: createNotes(log, timers).note,
    isLeaving: () => state.isLeaving,
    onDoubt: ({ name }) => prober.probe(name, true),
    onGone: () => rejoin.wake(),
    onNameTaken: () => rejoin.renew(),
  });
  const exchanges = createExchanges({
    ...{ selfName: options.name, codec, transport, settings, counters, states, delegate },
    // Apart from the notes on members: anybody can bring it about, without the key.
    notes: createNotes(log, timers),
  });
  const prober = createProber({
    ...shared,
    acknowledgements,
    source: { endpoint: options.advertise, node: options.name },
    pingByStream: exchanges.ping,
    onSilent: states.accuse,
    onStranger: (endpoint) => rejoin.renew(endpoint),
  });
  const rejoin = createRejoin({ table, exchanges, settings, timers, random, resolveHost });
  return {
    settings,
    state,
    counters,
    health,
    acknowledgements,
    table,
    queue,
    gossip,
    states,
    exchanges,
    prober,
    rejoin,
  };
}

type Parts = ReturnType<typeof createParts>;

/** What one message of a packet does. */
function createReceiver(parts: Parts, delegate: Delegate): (message: PacketMessage, from: Endpoint) => void {
  const { states, prober, acknowledgements } = parts;
  return (message, from) => {
    switch (message.type) {
      case "ping":
        return prober.onPing(message, from);
      case "indirect-ping":
        return prober.onIndirectPing(message, from);
      case "ack":
        return acknowledgements.ack(message.sequence);
      case "nack":
        return acknowledgements.nack(message.sequence);
      case "suspect":
        return states.suspect(message);
      case "alive":
        return states.alive(message);
      case "dead":
        return states.dead(message);
      case "user":
        return delegate.onUserMessage(message.payload);
    }
  };
}

/** The first pause before a push/pull; each is twice as long as the one before, until they have their interval. */
const FIRST_PUSH_PULL_MS = 1_000;

/** Push/pull with one member by chance, again and again: often at first, because others join at the same time. */
function startPushPulls({ table, settings, exchanges }: Parts, { timers, random }: MembershipOptions): () => void {
  let cancel = (): void => undefined;
  const arm = (delayMs: number): void => {
    const intervalMs = pushPullIntervalMs(table.count(), settings.pushPullIntervalMs);
    cancel = timers.after(Math.min(intervalMs, jittered(delayMs, random)), () => {
      const [node] = table.some(1, "");
      // It failed where the member is in trouble, which the prober finds out.
      if (node !== undefined) void exchanges.pushPull(node.endpoint, false).catch(() => undefined);
      // Jitter would make it longer than the interval: twice that is no shorter than it.
      arm(Math.min(2 * delayMs, 2 * intervalMs));
    });
  };
  arm(FIRST_PUSH_PULL_MS);
  return () => cancel();
}

/** Settles when the others have heard that this node leaves, or the time has passed. */
function tellOfLeave({ table, states }: Parts, timers: Timers, timeoutMs: number): Promise<void> {
  const { name: node, incarnation } = table.self;
  const hasOthers = table.live().length > 0;
  return new Promise((resolve) => {
    const cancel = timers.after(hasOthers ? timeoutMs : 0, resolve);
    states.dead({ type: "dead", incarnation, node, from: node }, () => {
      cancel();
      resolve();
    });
  });
}

/** Begins at once; alone until `join`, or until others join this node. Throws RangeError where an option is out of bounds. */
export function createMembership(options: MembershipOptions): Membership {
  checkOptions(options);
  const { codec, transport, timers, delegate } = options;
  const parts = createParts(options);
  const { state, counters, table, gossip, states, exchanges, prober, rejoin } = parts;
  const { self } = table;
  const receive = createReceiver(parts, delegate);
  const gate = createPacketGate({ now: timers.now, members: table.all });
  let isDisposed = false;

  transport.start({
    onPacket: (packet, from) => {
      if (isDisposed) return;
      counters.packetsIn++;
      counters.bytesIn += packet.length;
      if (!gate.isWorthOpening(from)) {
        counters.dropped.flooded++;
        return;
      }
      const unpacked = codec.unpackPacket(packet);
      if ("fault" in unpacked) {
        counters.dropped[unpacked.fault]++;
        gate.failed(from);
        return;
      }
      counters.dropped.malformed += unpacked.malformed;
      for (const message of unpacked.messages) receive(message, from);
    },
    onExchange: (exchange, from) => void exchanges.onExchange(exchange, from),
  });
  prober.start();
  const stopPushPulls = startPushPulls(parts, options);
  const stopAsking = (): void => {
    prober.stop();
    rejoin.stop();
    stopPushPulls();
  };

  return {
    self: () => memberOf(self),
    members: () => Array.from(table.all(), memberOf),
    join: rejoin.join,
    leave: async (timeoutMs) => {
      if (state.isLeaving || isDisposed) return;
      state.isLeaving = true;
      stopAsking();
      await tellOfLeave(parts, timers, timeoutMs);
    },
    setMeta: (meta) => {
      checkMeta(meta);
      self.meta = meta;
      states.announce();
    },
    broadcast: (payload) => {
      if (payload.length > USER_PAYLOAD_BYTES_MAX) {
        throw new RangeError(`a payload of ${payload.length} bytes; at most ${USER_PAYLOAD_BYTES_MAX}`);
      }
      gossip.broadcast({ message: { type: "user", payload }, about: undefined });
    },
    probeNow: (name) => prober.probe(name, false),
    forget: (name) => {
      const endpoint = states.forget(name);
      if (endpoint !== undefined) rejoin.forget(endpoint);
    },
    figures: () => ({
      ...counters,
      dropped: { ...counters.dropped },
      health: parts.health.score(),
      queuedBroadcasts: parts.queue.size(),
    }),
    [Symbol.asyncDispose]: async () => {
      isDisposed = true;
      stopAsking();
      for (const { suspicion } of table.all()) suspicion?.cancel();
      gossip.stop();
      await exchanges.stop();
    },
  };
}
