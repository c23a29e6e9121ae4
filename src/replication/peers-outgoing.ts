/** The streams that a node dials: one to each alive member. */
import { ipToText } from "../base/ip.ts";
import type { Endpoint } from "../cluster/messages.ts";
import type { Timers } from "../cluster/transport.ts";
import type { Connections } from "./peers-connections.ts";
import { createDialer, type Dialer } from "./peers-dialer.ts";
import type { Stream } from "./peers-stream.ts";
import type { Handshake } from "./tls.ts";

export type PeerAddress = { readonly nodeId: string; readonly endpoint: Endpoint };

export type OutgoingState = {
  readonly address: string;
  readonly stream: Stream | undefined;
  /** Why the last attempt failed, as long as the stream is not open. */
  readonly lastFailure: string | undefined;
};

export type Outgoing = {
  /** Dials the new ones at once, dials those again whose address is another, and forgets those that are missing, which it gives. */
  readonly setPeers: (peers: readonly PeerAddress[]) => readonly string[];
  readonly hurry: (nodeId: string) => void;
  readonly encourage: (nodeId: string) => void;
  readonly states: () => ReadonlyMap<string, OutgoingState>;
};

type Dialed = {
  endpoint: Endpoint;
  readonly dialer: Dialer;
  stream: Stream | undefined;
  lastFailure: string | undefined;
};

export const REMOVED = "no longer an alive member";

export function createOutgoing(connections: Connections, timers: Timers, random: () => number): Outgoing {
  const dialed = new Map<string, Dialed>();
  const dial = (nodeId: string, entry: Dialed): Handshake => {
    const { endpoint, dialer } = entry;
    const { port } = endpoint;
    const host = ipToText(endpoint.address);
    return connections.begin(
      { role: "dialer", address: addressText(endpoint), nodeId },
      {
        begin: (handlers) => connections.tls.dial({ host, port }, handlers),
        onWelcome: () => {},
        onOpen: (stream) => {
          entry.stream = stream;
          entry.lastFailure = undefined;
          dialer.opened();
        },
        onFailed: ({ detail }) => {
          entry.lastFailure = detail;
          dialer.ended();
        },
        onEnd: () => {
          entry.stream = undefined;
          dialer.ended();
        },
        onGone: () => {},
      },
    );
  };
  const add = (nodeId: string, endpoint: Endpoint) => {
    const dialer = createDialer({ dial: () => dial(nodeId, entry), timers, random });
    const entry: Dialed = { endpoint, dialer, stream: undefined, lastFailure: undefined };
    dialed.set(nodeId, entry);
  };
  const move = (entry: Dialed, endpoint: Endpoint) => {
    if (isSameEndpoint(entry.endpoint, endpoint)) return;
    entry.endpoint = endpoint;
    entry.dialer.hurry();
  };
  return {
    setPeers: (peers) => {
      const wanted = new Map(peers.map((peer) => [peer.nodeId, peer.endpoint]));
      const missing = [...dialed].filter(([nodeId]) => !wanted.has(nodeId));
      for (const [nodeId, entry] of missing) {
        dialed.delete(nodeId);
        entry.dialer.stop();
        entry.stream?.close(REMOVED);
      }
      for (const [nodeId, endpoint] of wanted) {
        const entry = dialed.get(nodeId);
        if (entry === undefined) add(nodeId, endpoint);
        else move(entry, endpoint);
      }
      return missing.map(([nodeId]) => nodeId);
    },
    hurry: (nodeId) => dialed.get(nodeId)?.dialer.hurry(),
    encourage: (nodeId) => dialed.get(nodeId)?.dialer.encourage(),
    states: () => new Map([...dialed].map(([nodeId, entry]) => [nodeId, stateOf(entry)])),
  };
}

function stateOf({ endpoint, stream, lastFailure }: Dialed): OutgoingState {
  return { address: addressText(endpoint), stream, lastFailure };
}

function addressText({ address, port }: Endpoint): string {
  const host = ipToText(address);
  return address.length === 4 ? `${host}:${port}` : `[${host}]:${port}`;
}

function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.port === other.port && Buffer.compare(one.address, other.address) === 0;
}
