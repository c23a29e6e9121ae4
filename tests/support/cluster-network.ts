/**
 * A network of members in virtual time: latency, loss by link, partitions, TCP and UDP apart, processes that stand still or are
 * killed. What happens follows from the seed alone.
 */
import type { Codec } from "../../src/cluster/codec.ts";
import type { Endpoint, PacketMessage, StreamMessage } from "../../src/cluster/messages.ts";
import type { Exchange, Timers, Transport, TransportHandlers } from "../../src/cluster/transport.ts";
import { seededChance } from "./chance.ts";

/** What one run of a member has of the world; a restart is another one. */
export type SimulatedProcess = {
  readonly endpoint: Endpoint;
  readonly transport: Transport;
  readonly timers: Timers;
  readonly random: () => number;
  /** From now on it neither runs nor answers; its address refuses TCP. */
  readonly kill: () => void;
  /** It does nothing for so long, and then first what is overdue; what was sent to it waits. */
  readonly stall: (ms: number) => void;
};

export type Carrier = "udp" | "tcp";

export type SimulatedNetwork = {
  readonly now: () => number;
  readonly random: () => number;
  /** A process at an address that nobody else has; "10.0.0.N", port 7946. */
  readonly open: (host: number) => SimulatedProcess;
  /** The chance that what is sent between two hosts is lost; 1 cuts them off. Undefined: nothing is. */
  readonly setLoss: (loss: ((from: number, to: number, carrier: Carrier) => number) | undefined) => void;
  /** "host-N" is the host of that number. */
  readonly resolveHost: (host: string) => Promise<readonly Uint8Array[]>;
  /** Lets time pass, with everything that is due in it, in order. */
  readonly pass: (ms: number) => Promise<void>;
  /** Packets that were sent. */
  readonly packets: () => number;
};

const PORT = 7946;
const LATENCY_MIN_MS = 0.2;
const LATENCY_SPREAD_MS = 2;
const ACCEPTED_EXCHANGE_MS = 10_000;
/** Of messages in a packet: real ones hold as many of the usual size. */
const PACKET_MESSAGES = 14;

type Event = {
  atMs: number;
  rank: number;
  readonly order: number;
  owner: Host | undefined;
  run: (() => void) | undefined;
};
type Host = {
  readonly host: number;
  readonly endpoint: Endpoint;
  handlers: TransportHandlers | undefined;
  isDead: boolean;
  stalledUntilMs: number;
};

const TIMER = 0;
const ARRIVAL = 1;

/** The first of all events by time; among equals what is a timer, then what came first. */
function isBefore(one: Event, other: Event): boolean {
  if (one.atMs !== other.atMs) return one.atMs < other.atMs;
  return one.rank === other.rank ? one.order < other.order : one.rank < other.rank;
}

/** A binary heap. */
function createEventQueue() {
  const events: Event[] = [];
  return {
    first: () => events[0],
    push: (event: Event): void => {
      let at = events.push(event) - 1;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (!isBefore(event, events[parent]!)) break;
        events[at] = events[parent]!;
        at = parent;
      }
      events[at] = event;
    },
    shift: (): void => {
      const last = events.pop();
      if (last === undefined || events.length === 0) return;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= events.length) break;
        if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child++;
        if (!isBefore(events[child]!, last)) break;
        events[at] = events[child]!;
        at = child;
      }
      events[at] = last;
    },
  };
}

type World = {
  readonly now: () => number;
  readonly random: () => number;
  readonly schedule: (owner: Host | undefined, delayMs: number, rank: number, run: () => void) => () => void;
  readonly isLost: (from: Host, to: Host, carrier: Carrier) => boolean;
  readonly hostAt: (endpoint: Endpoint) => Host | undefined;
  /** Promises are to run before time goes on. */
  readonly settle: () => void;
  readonly onPacket: () => void;
};

function latencyMs({ random }: World): number {
  return LATENCY_MIN_MS + random() * LATENCY_SPREAD_MS;
}

/** One end of an exchange; frames arrive by `deliver`. */
function createEnd(world: World, own: Host, other: Host, timeoutMs: number) {
  const inbox: Uint8Array[] = [];
  let fault: Error | undefined;
  let waiting: { readonly resolve: (frame: Uint8Array) => void; readonly reject: (error: Error) => void } | undefined;
  let deliverToPeer: ((frame: Uint8Array) => void) | undefined;
  let failPeer: (() => void) | undefined;
  const fail = (text: string): void => {
    fault ??= new Error(text);
    waiting?.reject(fault);
    waiting = undefined;
    world.settle();
  };
  const cancel = world.schedule(own, timeoutMs, TIMER, () => fail("it took too long"));
  const exchange: Exchange = {
    send: (frame) => {
      if (!world.isLost(own, other, "tcp")) {
        world.schedule(other, latencyMs(world), ARRIVAL, () => deliverToPeer?.(frame));
      }
    },
    receive: () => {
      const frame = inbox.shift();
      if (frame !== undefined) return Promise.resolve(frame);
      if (fault !== undefined) return Promise.reject(fault);
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
      });
    },
    close: () => {
      cancel();
      fail("it is closed");
      // What was sent arrives before the end.
      world.schedule(other, 2 * LATENCY_SPREAD_MS, ARRIVAL, () => failPeer?.());
    },
  };
  const deliver = (frame: Uint8Array): void => {
    world.settle();
    if (waiting === undefined) inbox.push(frame);
    else waiting.resolve(frame);
    waiting = undefined;
  };
  return {
    exchange,
    deliver,
    fail,
    connect: (peerDeliver: (frame: Uint8Array) => void, peerFail: () => void) => {
      deliverToPeer = peerDeliver;
      failPeer = peerFail;
    },
  };
}

function dial(world: World, own: Host, to: Endpoint, timeoutMs: number): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const after = (ms: number, run: () => void): void => {
      world.schedule(own, ms, ARRIVAL, () => {
        world.settle();
        run();
      });
    };
    const peer = world.hostAt(to);
    const roundTripMs = 2 * latencyMs(world);
    if (peer === undefined || world.isLost(own, peer, "tcp")) {
      return after(timeoutMs, () => reject(new Error("nobody answers")));
    }
    if (peer.isDead || peer.handlers === undefined) return after(roundTripMs, () => reject(new Error("refused")));
    const ours = createEnd(world, own, peer, timeoutMs);
    const theirs = createEnd(world, peer, own, ACCEPTED_EXCHANGE_MS);
    ours.connect(theirs.deliver, () => theirs.fail("the peer ended it"));
    theirs.connect(ours.deliver, () => ours.fail("the peer ended it"));
    // The kernel accepts for a process that stands still.
    world.schedule(peer, roundTripMs / 2, ARRIVAL, () => {
      world.settle();
      peer.handlers?.onExchange(theirs.exchange, { address: own.endpoint.address, port: 40_000 });
    });
    after(roundTripMs, () => resolve(ours.exchange));
  });
}

function openProcess(world: World, own: Host): SimulatedProcess {
  const transport: Transport = {
    local: own.endpoint,
    start: (handlers) => {
      own.handlers = handlers;
    },
    sendPacket: (packet, to) => {
      world.onPacket();
      const peer = world.hostAt(to);
      if (peer === undefined || world.isLost(own, peer, "udp")) return;
      world.schedule(peer, latencyMs(world), ARRIVAL, () => peer.handlers?.onPacket(packet, own.endpoint));
    },
    dial: (to, timeoutMs) => dial(world, own, to, timeoutMs),
    [Symbol.asyncDispose]: async () => {
      own.isDead = true;
    },
  };
  return {
    endpoint: own.endpoint,
    transport,
    timers: { now: world.now, after: (delayMs, run) => world.schedule(own, delayMs, TIMER, run) },
    random: world.random,
    kill: () => {
      own.isDead = true;
    },
    stall: (ms) => {
      own.stalledUntilMs = world.now() + ms;
    },
  };
}

/** The address of a host; its last byte is the host's number. */
export function simulatedEndpoint(host: number): Endpoint {
  return { address: Uint8Array.of(10, 0, 0, host), port: PORT };
}

export function createSimulatedNetwork(seed: number): SimulatedNetwork {
  const chance = seededChance(seed);
  const random = (): number => chance.below(2 ** 30) / 2 ** 30;
  const queue = createEventQueue();
  const hosts = new Map<number, Host>();
  let nowMs = 1_000;
  let order = 0;
  let packets = 0;
  let hasToSettle = false;
  let lossOf: ((from: number, to: number, carrier: Carrier) => number) | undefined;
  const world: World = {
    now: () => nowMs,
    random,
    schedule: (owner, delayMs, rank, run) => {
      const event: Event = { atMs: nowMs + Math.max(0, delayMs), rank, order: order++, owner, run };
      queue.push(event);
      return () => {
        event.run = undefined;
      };
    },
    isLost: ({ host: from }, { host: to }, carrier) => {
      const loss = lossOf?.(from, to, carrier) ?? 0;
      return loss > 0 && random() < loss;
    },
    hostAt: ({ address, port }) => (port === PORT ? hosts.get(address[3] ?? 0) : undefined),
    settle: () => {
      hasToSettle = true;
    },
    onPacket: () => {
      packets++;
    },
  };
  const runOne = (event: Event): void => {
    const { owner, run } = event;
    if (run === undefined || owner?.isDead === true) return;
    nowMs = event.atMs;
    if (owner !== undefined && owner.stalledUntilMs > nowMs) {
      event.atMs = owner.stalledUntilMs;
      queue.push(event);
    } else run();
  };
  return {
    now: world.now,
    random,
    open: (host) => {
      const own: Host = {
        host,
        endpoint: simulatedEndpoint(host),
        handlers: undefined,
        isDead: false,
        stalledUntilMs: 0,
      };
      hosts.set(host, own);
      return openProcess(world, own);
    },
    setLoss: (loss) => {
      lossOf = loss;
    },
    resolveHost: (host) => {
      hasToSettle = true;
      return Promise.resolve([simulatedEndpoint(Number(host.replace("host-", ""))).address]);
    },
    pass: async (ms) => {
      const untilMs = nowMs + ms;
      hasToSettle = true;
      for (;;) {
        if (hasToSettle) await new Promise<void>((resolve) => setImmediate(resolve));
        hasToSettle = false;
        const event = queue.first();
        if (event === undefined || event.atMs > untilMs) break;
        queue.shift();
        runOne(event);
      }
      nowMs = untilMs;
    },
    packets: () => packets,
  };
}

/** Values travel as they are, for speed; who has another key can read nothing. */
export function createSimulatedCodec(key: number): Codec {
  const pack = (content: readonly PacketMessage[] | StreamMessage): Uint8Array => {
    const bytes = new Uint8Array(100);
    contents.set(bytes, { key, content });
    return bytes;
  };
  return {
    packPacket: (messages) => {
      const taken = messages.slice(0, PACKET_MESSAGES);
      return { packet: pack(taken), count: taken.length };
    },
    unpackPacket: (packet) => {
      const sent = contents.get(packet);
      if (sent === undefined || !Array.isArray(sent.content)) return { fault: "malformed" };
      return sent.key === key ? { messages: sent.content, malformed: 0 } : { fault: "sealed" };
    },
    packFrame: (message) => pack(message),
    unpackFrame: (frame) => {
      const sent = contents.get(frame);
      if (sent === undefined || !("type" in sent.content)) return { fault: "malformed" };
      return sent.key === key ? { message: sent.content } : { fault: "sealed" };
    },
  };
}

const contents = new WeakMap<
  Uint8Array,
  { readonly key: number; readonly content: readonly PacketMessage[] | StreamMessage }
>();
