/** Nodes with real replication streams over loopback, without membership: the test says who is alive. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Log, LogFields } from "../../src/base/log.ts";
import { systemTimers } from "../../src/cluster/system-timers.ts";
import type { Channel, ChannelHandlers, ChannelOpened } from "../../src/replication/channel.ts";
import type { ProofKeys } from "../../src/replication/identity.ts";
import { createPeers, type Peers, type PeersOptions } from "../../src/replication/peers.ts";
import type { PeerAddress } from "../../src/replication/peers-outgoing.ts";
import { createWire, type Wire } from "../../src/replication/peers-wire.ts";
import { createStreamTls, exportedSecret, type HandshakeFault, replicationKey } from "../../src/replication/tls.ts";

export const ROOT = new Uint8Array(32).fill(7);

/** A channel and what it has heard. */
export type Heard = {
  readonly channel: Channel;
  readonly messages: Uint8Array[];
  drains: number;
  closed: string | undefined;
};

export type LoggedLine = { readonly level: string; readonly message: string; readonly fields: LogFields };

export type LabNode = AsyncDisposable & {
  readonly id: string;
  readonly peers: Peers;
  readonly address: PeerAddress;
  readonly outgoing: Heard[];
  readonly incoming: Heard[];
  readonly resets: string[];
  readonly lines: LoggedLine[];
  /** The raw ends of connections that others opened. */
  readonly accepted: Set<Socket>;
};

export type LabOptions = Partial<Pick<PeersOptions, "root" | "self" | "limits" | "versions" | "wallMs" | "refusal">> & {
  readonly instanceId?: string;
  /** Hears a channel in place of the record. */
  readonly onIncoming?: ChannelOpened;
  readonly onOutgoing?: ChannelOpened;
  readonly random?: () => number;
};

export function describeNode(nodeId: string, instanceId = `${nodeId}-1`) {
  return { nodeId, instanceId, abilities: ["a"], collectedUpToMs: 1, lastAgreementMs: 2 };
}

function record(into: Heard[]): ChannelOpened {
  return (channel): ChannelHandlers => {
    const heard: Heard = { channel, messages: [], drains: 0, closed: undefined };
    into.push(heard);
    return {
      onMessage: (message) => heard.messages.push(message),
      onDrain: () => {
        heard.drains++;
      },
      onClose: (reason) => {
        heard.closed = reason;
      },
    };
  };
}

function portOf(server: Server): number {
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  return bound.port;
}

export async function labNode(id: string, options: LabOptions = {}): Promise<LabNode> {
  const lines: LoggedLine[] = [];
  const outgoing: Heard[] = [];
  const incoming: Heard[] = [];
  const resets: string[] = [];
  const log: Log = (level, message, fields = {}) => void lines.push({ level, message, fields });
  const { instanceId, onIncoming, onOutgoing, ...given } = options;
  const peers = createPeers({
    root: ROOT,
    self: () => describeNode(id, instanceId),
    refusal: () => undefined,
    onReset: (nodeId) => resets.push(nodeId),
    timers: systemTimers,
    ...given,
    onOutgoing: onOutgoing ?? record(outgoing),
    onIncoming: onIncoming ?? record(incoming),
    log,
  });
  const accepted = new Set<Socket>();
  // As whoever owns the port does it: the first byte is looked at and pushed back.
  const server = createServer((socket) => {
    accepted.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => accepted.delete(socket));
    socket.once("readable", () => {
      const first = socket.read(1);
      if (first === null) return;
      socket.unshift(first);
      peers.accept(socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = { nodeId: id, endpoint: { address: new Uint8Array([127, 0, 0, 1]), port: portOf(server) } };
  const end = async () => {
    server.close();
    await peers[Symbol.asyncDispose]();
    for (const socket of accepted) socket.destroy();
  };
  return { ...{ id, peers, address, outgoing, incoming, resets, lines, accepted }, [Symbol.asyncDispose]: end };
}

/** Knows each other: all of them dial all others. */
export function introduce(nodes: readonly LabNode[]): void {
  for (const { peers } of nodes) peers.setPeers(nodes.map(({ address }) => address));
}

export type Relay = AsyncDisposable & {
  readonly address: PeerAddress;
  /** Passes nothing on any more, in either direction, and keeps the connections. */
  readonly stall: () => void;
  readonly resume: () => void;
  /** Connects those that dial from now on to nobody. */
  readonly stallNew: () => void;
  /** Resets both sides of all connections. */
  readonly reset: () => void;
  /** How many bytes have gone from the dialers' side to the node. */
  readonly forwarded: () => number;
};

/** A network between whoever dials its address and `node`. */
export async function relayTo(node: LabNode): Promise<Relay> {
  const sockets = new Set<Socket>();
  const pairs: (readonly [Socket, Socket])[] = [];
  let forwarded = 0;
  let isStalled = false;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    if (isStalled) return;
    const far = connect(node.address.endpoint.port, "127.0.0.1");
    keep(far);
    pairs.push([near, far]);
    near.on("data", (chunk) => {
      forwarded += chunk.length;
    });
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const end = async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: { ...node.address, endpoint: { ...node.address.endpoint, port: portOf(server) } },
    stall: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    resume: () => {
      for (const [near, far] of pairs) near.pipe(far).pipe(near);
    },
    stallNew: () => {
      isStalled = true;
    },
    reset: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    forwarded: () => forwarded,
    [Symbol.asyncDispose]: end,
  };
}

/** A peer's end of a connection as a test plays it: the key is right, the rest is the test's. */
export type PlayedPeer = {
  readonly socket: TLSSocket;
  readonly keys: ProofKeys;
  readonly wire: Wire;
  readonly frames: { readonly kind: number; readonly body: Uint8Array }[];
  /** Why it ended. */
  ended: string | undefined;
};

/** Opens a connection to the node and says nothing. */
export async function playPeer(node: LabNode): Promise<PlayedPeer> {
  const { port } = node.address.endpoint;
  const socket = await new Promise<TLSSocket>((resolve, reject) => {
    const onFault = (fault: HandshakeFault) => reject(new Error(`${fault.kind}: ${fault.detail}`));
    createStreamTls(ROOT).dial({ host: "127.0.0.1", port }, { onSecure: resolve, onFault, onGone: () => {} });
  });
  const keys = { key: replicationKey(ROOT, "identity"), exported: exportedSecret(socket) };
  const frames: PlayedPeer["frames"] = [];
  let played: PlayedPeer | undefined;
  const wire = createWire(socket, systemTimers, () => ({
    bodyBytesMax: 2 ** 24,
    onFrame: (kind, body) => frames.push({ kind, body }),
    onDrain: () => {},
    onEnd: (_, detail) => {
      if (played !== undefined) played.ended = detail;
    },
  }));
  played = { socket, keys, wire, frames, ended: undefined };
  return played;
}
