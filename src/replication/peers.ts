/**
 * The streams of a node: one that it dials to each alive member, and those that members dial to it. A stream is open when both
 * ends have proved the cluster's key (tls.ts) and said who they are (identity-exchange.ts).
 */
import type { Socket } from "node:net";
import { ipToText } from "../base/ip.ts";
import {
  type ConnectionsOptions,
  createConnections,
  type PeersFigures,
  STREAM_LIMITS,
  type StreamLimits,
} from "./peers-connections.ts";
import { createGate, GATE_LIMITS, type GateLimits, gateKey } from "./peers-gate.ts";
import { createIncoming } from "./peers-incoming.ts";
import { createOutgoing, type PeerAddress, REMOVED } from "./peers-outgoing.ts";
import type { StreamFigures } from "./peers-stream.ts";

export type PeersLimits = GateLimits & StreamLimits;

export const PEERS_LIMITS: PeersLimits = { ...GATE_LIMITS, ...STREAM_LIMITS };

export type PeersOptions = ConnectionsOptions & {
  /** From 0 to below 1. */
  readonly random?: () => number;
  readonly limits?: Partial<PeersLimits>;
};

/** Of a member, or of a node that has dialed and is none yet. */
export type PeerState = {
  readonly nodeId: string;
  /** Undefined where it is not dialed. */
  readonly address: string | undefined;
  readonly outgoing: StreamFigures | undefined;
  readonly incoming: StreamFigures | undefined;
  /** Why the last attempt to open the outgoing stream failed, as long as it is not open. */
  readonly lastFailure: string | undefined;
};

export type Peers = AsyncDisposable & {
  /** The alive members; oneself is passed over. One that is new is dialed at once, the streams of one that is missing are closed. */
  readonly setPeers: (peers: readonly PeerAddress[]) => void;
  /** Dials now where the next attempt would be later: the member is said to be alive. */
  readonly hurry: (nodeId: string) => void;
  /** Takes a TLS connection that a peer opened, from its first byte on. */
  readonly accept: (socket: Socket) => void;
  /** Whether an alive member has that address (one of the same /64 in IPv6). */
  readonly isMemberAt: (address: Uint8Array) => boolean;
  readonly states: () => readonly PeerState[];
  readonly figures: () => PeersFigures;
};

export function createPeers(options: PeersOptions): Peers {
  const limits = { ...PEERS_LIMITS, ...options.limits };
  const memberKeys = new Set<string>();
  const connections = createConnections(options, limits);
  const outgoing = createOutgoing(connections, options.timers, options.random ?? Math.random);
  const gate = createGate(limits, (key) => memberKeys.has(key));
  // Whoever can reach us can likely be reached again.
  const incoming = createIncoming(connections, gate, outgoing.encourage);
  const setPeers = (peers: readonly PeerAddress[]) => {
    if (connections.isClosed()) return;
    const own = options.self().nodeId;
    const others = peers.filter(({ nodeId }) => nodeId !== own);
    memberKeys.clear();
    for (const { endpoint } of others) memberKeys.add(gateKey(ipToText(endpoint.address)));
    for (const nodeId of outgoing.setPeers(others)) incoming.close(nodeId, REMOVED);
  };
  const states = (): PeerState[] => {
    const dialed = outgoing.states();
    const accepted = incoming.streams();
    return [...new Set([...dialed.keys(), ...accepted.keys()])].map((nodeId) => ({
      nodeId,
      address: dialed.get(nodeId)?.address,
      outgoing: dialed.get(nodeId)?.stream?.figures(),
      incoming: accepted.get(nodeId)?.figures(),
      lastFailure: dialed.get(nodeId)?.lastFailure,
    }));
  };
  return {
    setPeers,
    hurry: outgoing.hurry,
    accept: incoming.accept,
    isMemberAt: (address) => memberKeys.has(gateKey(ipToText(address))),
    states,
    figures: connections.figures,
    [Symbol.asyncDispose]: () => {
      const gone = connections.close(`${options.self().nodeId} is stopping`);
      // Nobody is dialed any more.
      outgoing.setPeers([]);
      return gone;
    },
  };
}
