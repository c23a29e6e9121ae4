/**
 * The port of a member: UDP for packets, and TCP on the same number for exchanges of membership and for the TLS streams of
 * whoever else lives there. All of it is Node's sockets, in one thread.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { errorCode, errorText, OperatorError } from "../base/errors.ts";
import { IPV4_BYTES, IPV6_BYTES, ipFromText, ipToText } from "../base/ip.ts";
import type { Endpoint } from "./messages.ts";
import { type AcceptCounts, type AcceptLimits, createAcceptor, remoteEndpoint } from "./sockets-accept.ts";
import type { Exchange, Transport, TransportHandlers } from "./transport.ts";
import {
  CONNECTIONS_MAX,
  CONNECTIONS_PER_ADDRESS_MAX,
  EXCHANGE_MS,
  FIRST_BYTE_MS,
  MEMBER_CONNECTIONS_MAX,
  RECEIVE_BUFFER_BYTES,
  SEND_QUEUE_BYTES_MAX,
  UNREAD_BYTES_MAX,
} from "./wire-limits.ts";

export type ClusterPortOptions = {
  /** An IPv4 or IPv6 address; "::" takes both families, where the machine has them. Port 0: one that is free for UDP and TCP. */
  readonly listen: { readonly host: string; readonly port: number };
  /**
   * Takes a connection that begins with a TLS hello, which is pushed back: `new TLSSocket(socket, { isServer: true })` reads it.
   * The socket is the taker's, with its limits, also when the port is disposed of.
   */
  readonly onTls: (socket: Socket) => void;
  /** Whether a member is at that address, whatever the port; nobody is where it is left out. */
  readonly isMember?: (from: Endpoint) => boolean;
  readonly limits?: Partial<AcceptLimits>;
};

export type PortFigures = Readonly<AcceptCounts> & {
  readonly packetsIn: number;
  readonly packetsOut: number;
  readonly packetBytesIn: number;
  readonly packetBytesOut: number;
  /** Packets that could not be sent: no way to the address, or too many before it. */
  readonly packetsUnsent: number;
};

export type ClusterPort = Transport & { readonly figures: () => PortFigures };

/** Bytes in and out of exchanges are `bytesIn` and `bytesOut`. */
type Counts = { -readonly [Name in keyof PortFigures]: number };

/** So many pairs are tried for a port that is free for both. */
const PORT_ATTEMPTS = 50;

function noCounts(): Counts {
  const packets = { packetsIn: 0, packetsOut: 0, packetBytesIn: 0, packetBytesOut: 0, packetsUnsent: 0 };
  const connections = { refused: 0, silent: 0, foreign: 0, cut: 0, overdue: 0, unframed: 0 };
  return { ...packets, ...connections, exchangesIn: 0, exchangesOut: 0, tlsHandedOver: 0, bytesIn: 0, bytesOut: 0 };
}

function bindFailure(protocol: string, { host, port }: ClusterPortOptions["listen"], thrown: unknown): OperatorError {
  const place = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const fault = errorCode(thrown) === "EADDRINUSE" ? "another program uses this address and port" : errorText(thrown);
  return new OperatorError(`cannot listen on ${place} (${protocol}, cluster): ${fault}`);
}

async function listenTcp(listen: ClusterPortOptions["listen"], ipv6Only: boolean): Promise<Server> {
  // A peer may end its half once it has asked: the answer still goes out.
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  server.listen({ ...listen, ipv6Only, exclusive: true });
  await once(server, "listening");
  return server;
}

async function listenUdp(listen: ClusterPortOptions["listen"], ipv6Only: boolean): Promise<UdpSocket> {
  const socket = createSocket({ type: listen.host.includes(":") ? "udp6" : "udp4", ipv6Only });
  socket.bind({ address: listen.host, port: listen.port, exclusive: true });
  try {
    await once(socket, "listening");
  } catch (error) {
    socket.close();
    throw error;
  }
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  } catch {
    // A system that refuses as much keeps what it gives by default.
  }
  return socket;
}

function portOf(server: Server): number {
  const bound = server.address();
  return bound !== null && typeof bound === "object" ? bound.port : 0;
}

type Pair = { readonly server: Server; readonly udp: UdpSocket; readonly port: number };

/** Both sockets on one port. Throws OperatorError, with nothing left open. */
async function openPair(listen: ClusterPortOptions["listen"], attemptsLeft = PORT_ATTEMPTS): Promise<Pair> {
  // Only the wildcard stands for both families.
  const ipv6Only = listen.host.includes(":") && !isWildcard(listen.host);
  const server = await listenTcp(listen, ipv6Only).catch((error: unknown) => {
    throw bindFailure("TCP", listen, error);
  });
  const port = portOf(server);
  try {
    return { server, udp: await listenUdp({ host: listen.host, port }, ipv6Only), port };
  } catch (error) {
    server.close();
    const isRetried = listen.port === 0 && errorCode(error) === "EADDRINUSE" && attemptsLeft > 1;
    if (!isRetried) throw bindFailure("UDP", { host: listen.host, port }, error);
  }
  return await openPair(listen, attemptsLeft - 1);
}

function isWildcard(host: string): boolean {
  return ipFromText(host)?.every((byte) => byte === 0) ?? false;
}

/** How a socket of that family is told an address; undefined where it cannot reach it. */
function addressText({ address }: Endpoint, isIpv6: boolean): string | undefined {
  if (address.length === IPV4_BYTES) return isIpv6 ? `::ffff:${ipToText(address)}` : ipToText(address);
  return isIpv6 && address.length === IPV6_BYTES ? ipToText(address) : undefined;
}

/** Sends packets, and loses without a word what cannot be sent. */
function createPacketSender(udp: UdpSocket, isIpv6: boolean, counts: Counts): Transport["sendPacket"] {
  return (packet, to) => {
    const host = addressText(to, isIpv6);
    if (host === undefined || to.port === 0 || udp.getSendQueueSize() + packet.length > SEND_QUEUE_BYTES_MAX) {
      counts.packetsUnsent += 1;
      return;
    }
    udp.send(packet, to.port, host, (error) => {
      if (error !== null) counts.packetsUnsent += 1;
      else {
        counts.packetsOut += 1;
        counts.packetBytesOut += packet.length;
      }
    });
  };
}

/** Connects within the time, which goes on to bound the exchange. `dialling` has the socket until then. */
async function dialTcp(
  to: Endpoint,
  timeoutMs: number,
  localAddress: string | undefined,
  dialling: Set<Socket>,
): Promise<{ readonly socket: Socket; readonly leftMs: number }> {
  const startedMs = performance.now();
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ host: ipToText(to.address), port: to.port, ...from, allowHalfOpen: true, noDelay: true });
  dialling.add(socket);
  const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs);
  // It stays when this is over: an error that nobody listens to would end the process.
  socket.on("error", () => socket.destroy());
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the connection is closed")));
    });
    return { socket, leftMs: Math.max(1, timeoutMs - (performance.now() - startedMs)) };
  } finally {
    clearTimeout(timer);
    dialling.delete(socket);
  }
}

/**
 * Opens the port; what comes before `start` is lost, except TLS. Rejects with OperatorError where it cannot be had. Disposed of,
 * it ends its exchanges and rejects whoever waits for one.
 */
export async function openClusterPort(options: ClusterPortOptions): Promise<ClusterPort> {
  const { listen, onTls, isMember = () => false, limits } = options;
  const address = ipFromText(listen.host);
  if (address === undefined) throw new OperatorError(`the cluster's listen address is no IP address: "${listen.host}"`);
  const { server, udp, port } = await openPair(listen);
  const isIpv6 = address.length === IPV6_BYTES;
  const localAddress = isWildcard(listen.host) ? undefined : listen.host;
  const counts = noCounts();
  const dialling = new Set<Socket>();
  const send = createPacketSender(udp, isIpv6, counts);
  let handlers: TransportHandlers | undefined;
  let isOpen = true;

  const acceptor = createAcceptor({
    limits: {
      connections: CONNECTIONS_MAX,
      memberConnections: MEMBER_CONNECTIONS_MAX,
      connectionsPerAddress: CONNECTIONS_PER_ADDRESS_MAX,
      unreadBytes: UNREAD_BYTES_MAX,
      firstByteMs: FIRST_BYTE_MS,
      exchangeMs: EXCHANGE_MS,
      ...limits,
    },
    counts,
    ...{ onTls, isMember },
    onExchange: (exchange, from) => {
      if (handlers === undefined) exchange.close();
      else handlers.onExchange(exchange, from);
    },
  });
  server.on("connection", acceptor.accept);
  // Out of descriptors, or a peer that is gone before it was accepted: the next may be accepted again.
  server.on("error", () => {});
  udp.on("error", () => {});
  udp.on("message", (packet, { address: text, port: fromPort }) => {
    const from = remoteEndpoint(text, fromPort);
    counts.packetsIn += 1;
    counts.packetBytesIn += packet.length;
    if (from !== undefined) handlers?.onPacket(packet, from);
  });

  const dial = async (to: Endpoint, timeoutMs: number): Promise<Exchange> => {
    if (!isOpen) throw new Error("this member ends");
    const { socket, leftMs } = await dialTcp(to, timeoutMs, localAddress, dialling);
    return acceptor.adopt(socket, leftMs);
  };
  return {
    local: { address, port },
    start: (given) => {
      handlers = given;
    },
    sendPacket: (packet, to) => {
      if (isOpen) send(packet, to);
    },
    dial,
    figures: () => ({ ...counts }),
    [Symbol.asyncDispose]: async () => {
      if (!isOpen) return;
      isOpen = false;
      handlers = undefined;
      // Connections that were handed over go on: they are not waited for.
      server.close();
      for (const socket of dialling) socket.destroy();
      acceptor.end();
      const closed = once(udp, "close");
      udp.close();
      await closed;
    },
  };
}
