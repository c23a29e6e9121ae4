/** Nodes with real replication streams over loopback, without membership: the test says who is alive. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { Log, LogFields } from "../../src/base/log.ts";
import type { Timers } from "../../src/cluster/transport.ts";
import type { Channel, ChannelHandlers, ChannelOpened } from "../../src/replication/channel.ts";
import { createPeers, type Peers, type PeersOptions } from "../../src/replication/peers.ts";
import type { PeerAddress } from "../../src/replication/peers-outgoing.ts";

export const ROOT = new Uint8Array(32).fill(7);

export const realTimers: Timers = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

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

export async function labNode(id: string, options: LabOptions = {}): Promise<LabNode> {
  const lines: LoggedLine[] = [];
  const outgoing: Heard[] = [];
  const incoming: Heard[] = [];
  const resets: string[] = [];
  const log: Log = (level, message, fields = {}) => void lines.push({ level, message, fields });
  const { instanceId, onIncoming, ...given } = options;
  const peers = createPeers({
    root: ROOT,
    self: () => describeNode(id, instanceId),
    refusal: () => undefined,
    onReset: (nodeId) => resets.push(nodeId),
    timers: realTimers,
    ...given,
    onOutgoing: record(outgoing),
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
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  const address = { nodeId: id, endpoint: { address: new Uint8Array([127, 0, 0, 1]), port: bound.port } };
  const end = async () => {
    server.close();
    await peers[Symbol.asyncDispose]();
    for (const socket of accepted) socket.destroy();
  };
  return { ...{ id, peers, address, outgoing, incoming, resets, lines, accepted }, [Symbol.asyncDispose]: end };
}
