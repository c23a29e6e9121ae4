/**
 * A listener over TLS: who is let in, and how long a handshake may take. What is spoken inside is somebody else's. It can be
 * moved and switched off while it runs, and takes another certificate for the connections that come.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { type Identity, TLS } from "../base/tls.ts";
import { COUNTER } from "../image/counters.ts";
import { type Address, clientAddress, hostText } from "./address.ts";
import { type SecureLimits, TCP_BACKLOG } from "./limits.ts";
import { clientKey } from "./stream.ts";

/** Which of the two it is: what it adds to the places of its counters. */
export const SECURE_KIND = { DOT: 0, DOH: 1 } as const;
export type SecureKind = (typeof SECURE_KIND)[keyof typeof SECURE_KIND];

/** What a thread had open when it died is open no more: `counters` are those of the thread. */
export function clearOpen(counters: Float64Array): void {
  counters[COUNTER.CONNECTIONS_OPEN] = 0;
  for (const kind of Object.values(SECURE_KIND)) {
    counters[COUNTER.SECURE_LISTENING + kind] = 0;
    counters[COUNTER.SECURE_OPEN + kind] = 0;
  }
}

export type SecureServerOptions = {
  readonly kind: SecureKind;
  readonly address: Address;
  readonly identity: Identity;
  /** Names of ALPN (RFC 7301), the best first; a client that names others only is refused. */
  readonly protocols: readonly string[];
  readonly limits: SecureLimits;
  readonly counters: Float64Array;
  /** The handshake is done; `address` is the client's. The socket is destroyed where nobody ends it. */
  readonly onConnection: (socket: TLSSocket, address: Uint8Array) => void;
};

export type SecureServer = {
  /** With the port in use. */
  readonly address: Address;
  readonly setIdentity: (identity: Identity) => void;
  /** Gives up the address at once; what is connected has `drainMs` to end. */
  readonly retire: () => void;
};

/** Listens. Rejects with the system's error where the address cannot be bound. */
export async function openSecureServer(options: SecureServerOptions): Promise<SecureServer> {
  const { kind, address, identity, limits, counters, onConnection } = options;
  const server = createServer({
    ...TLS,
    ...identity,
    ALPNProtocols: [...options.protocols],
    handshakeTimeout: limits.handshakeMs,
    noDelay: true,
  });
  const gate = createGate(kind, limits, counters);
  server.on("connection", gate.enter);
  server.on("secureConnection", (socket) => {
    const client = clientAddress(socket.remoteAddress ?? "");
    socket.on("error", () => socket.destroy());
    if (client === undefined) socket.destroy();
    else onConnection(socket, client);
  });
  server.on("tlsClientError", (_, socket) => {
    counters[COUNTER.HANDSHAKES_FAILED + kind]! += 1;
    socket.destroy();
  });
  server.listen({ host: hostText(address), port: address.port, ipv6Only: true, backlog: TCP_BACKLOG });
  await once(server, "listening");
  // What breaks a listening socket later (no descriptors left, for example) ends that connection only.
  server.on("error", () => {});
  counters[COUNTER.SECURE_LISTENING + kind] = 1;
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : address.port;
  return {
    address: { bytes: address.bytes, port },
    setIdentity: (next) => server.setSecureContext({ ...TLS, ...next }),
    retire: () => {
      counters[COUNTER.SECURE_LISTENING + kind] = 0;
      server.close();
      setTimeout(gate.cut, limits.drainMs).unref();
    },
  };
}

/** Lets in as many connections as the limits have, and knows those that are in. */
function createGate(kind: SecureKind, limits: SecureLimits, counters: Float64Array) {
  const inside = new Set<Socket>();
  const perClient = new Map<string, number>();
  const enter = (socket: Socket) => {
    const address = clientAddress(socket.remoteAddress ?? "");
    // It has gone already, between the kernel's accept and ours.
    if (address === undefined) return void socket.destroy();
    const client = clientKey(address);
    const ofClient = perClient.get(client) ?? 0;
    if (inside.size >= limits.maxConnections || ofClient >= limits.maxConnectionsPerClient) {
      counters[COUNTER.SECURE_REFUSED + kind]! += 1;
      return void socket.destroy();
    }
    inside.add(socket);
    perClient.set(client, ofClient + 1);
    counters[COUNTER.SECURE_ACCEPTED + kind]! += 1;
    counters[COUNTER.SECURE_OPEN + kind]! += 1;
    socket.once("close", () => {
      inside.delete(socket);
      counters[COUNTER.SECURE_OPEN + kind]! -= 1;
      const left = (perClient.get(client) ?? 1) - 1;
      if (left > 0) perClient.set(client, left);
      else perClient.delete(client);
    });
  };
  const cut = () => {
    for (const socket of inside) socket.destroy();
  };
  return { enter, cut };
}
