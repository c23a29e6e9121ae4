/** Accepts TCP connections within the limits, and tells by their first byte what they are. */
import type { Socket } from "node:net";
import { IPV4_BYTES, ipFromText, unmappedIp } from "../base/ip.ts";
import type { Endpoint } from "./messages.ts";
import { createSocketExchange, type ExchangeCounts, type SocketExchange } from "./sockets-exchange.ts";
import type { Exchange } from "./transport.ts";
import { MESSAGE_TYPE } from "./wire.ts";

/** The type of a TLS record with a handshake message (RFC 8446 section 5.1): a hello. */
const TLS_HANDSHAKE = 0x16;

/** Bytes of an IPv6 address that tell hosts apart: whoever has one address of a /64 has all of them. */
const IPV6_HOST_BYTES = 8;

export type AcceptLimits = {
  /** Connections of which the first byte has not come, and exchanges, at once: of strangers, and of one address (an IPv6 /64). */
  readonly connections: number;
  /** The same of members' addresses, which have places of their own: no flood from elsewhere keeps them out. */
  readonly memberConnections: number;
  readonly connectionsPerAddress: number;
  /** Bytes of frames that have not come whole, over all exchanges. */
  readonly unreadBytes: number;
  readonly firstByteMs: number;
  /** Of an exchange that the peer began. */
  readonly exchangeMs: number;
};

export type AcceptCounts = ExchangeCounts & {
  /** Connections that were too many. */
  refused: number;
  /** Connections that said nothing within the time. */
  silent: number;
  /** Connections that began with neither a frame nor TLS. */
  foreign: number;
  /** Exchanges ended because all together held too much. */
  cut: number;
  exchangesIn: number;
  exchangesOut: number;
  tlsHandedOver: number;
};

export type AcceptOptions = {
  readonly limits: AcceptLimits;
  readonly counts: AcceptCounts;
  readonly onTls: (socket: Socket) => void;
  readonly onExchange: (exchange: Exchange, from: Endpoint) => void;
  readonly isMember: (from: Endpoint) => boolean;
};

export type Acceptor = {
  readonly accept: (socket: Socket) => void;
  /** Makes an exchange of a connection that was dialled; it counts for the bytes that all hold, not for the places. */
  readonly adopt: (socket: Socket, timeoutMs: number) => Exchange;
  /** Ends every connection that is still ours. */
  readonly end: () => void;
};

/** Who is at the other end; undefined where the connection has gone already. A link's zone id says nothing of who it is. */
export function remoteEndpoint(address: string | undefined, port: number | undefined): Endpoint | undefined {
  const bytes = ipFromText((address ?? "").split("%", 1)[0] ?? "");
  return bytes === undefined || port === undefined ? undefined : { address: unmappedIp(bytes), port };
}

function hostKey({ address }: Endpoint): string {
  return Buffer.from(address.length === IPV4_BYTES ? address : address.subarray(0, IPV6_HOST_BYTES)).toString("latin1");
}

/** Places for connections, of strangers and of members, and by host. */
function createPlaces(limits: AcceptLimits, isMember: AcceptOptions["isMember"]) {
  const { connections, memberConnections, connectionsPerAddress } = limits;
  const perHost = new Map<string, number>();
  const taken = { strangers: 0, members: 0 };
  return {
    /** What gives the place back, once however often it is called; undefined where there is none. */
    take: (from: Endpoint): (() => void) | undefined => {
      const host = hostKey(from);
      const ofHost = perHost.get(host) ?? 0;
      const who = isMember(from) ? "members" : "strangers";
      const most = who === "members" ? memberConnections : connections;
      if (taken[who] >= most || ofHost >= connectionsPerAddress) return undefined;
      taken[who] += 1;
      perHost.set(host, ofHost + 1);
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        taken[who] -= 1;
        const left = (perHost.get(host) ?? 1) - 1;
        if (left > 0) perHost.set(host, left);
        else perHost.delete(host);
      };
    },
  };
}

/** Gives what a connection says first and leaves it paused, or ends it: when its peer does so, or when the time has passed. */
function awaitFirstBytes(
  socket: Socket,
  timeoutMs: number,
  onSilence: () => void,
  take: (first: Buffer) => void,
): void {
  const onEnd = () => socket.destroy();
  const timer = setTimeout(() => {
    onSilence();
    socket.destroy();
  }, timeoutMs);
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", onEnd);
  socket.once("data", (first: Buffer) => {
    clearTimeout(timer);
    socket.pause();
    socket.off("end", onEnd);
    take(first);
  });
}

export function createAcceptor({ limits, counts, onTls, onExchange, isMember }: AcceptOptions): Acceptor {
  const places = createPlaces(limits, isMember);
  const waiting = new Set<Socket>();
  const exchanges = new Set<SocketExchange>();
  let heldBytes = 0;

  /** Whoever holds most makes room: a large frame of somebody without the key keeps no small ones out. */
  const cutLargest = () => {
    const [largest] = [...exchanges].sort((one, other) => other.heldBytes() - one.heldBytes());
    counts.cut += 1;
    largest?.cut("frames of all exchanges hold too much");
  };
  const onHeld = (change: number) => {
    heldBytes += change;
    if (change > 0 && heldBytes > limits.unreadBytes) cutLargest();
  };
  const begin = (socket: Socket, timeoutMs: number): SocketExchange => {
    const made = createSocketExchange(socket, { timeoutMs, counts, onHeld });
    exchanges.add(made);
    socket.once("close", () => exchanges.delete(made));
    return made;
  };

  const begun = (socket: Socket, from: Endpoint, first: Buffer, release: () => void) => {
    if (first[0] === TLS_HANDSHAKE) {
      // From here on it is another's, with its limits; and as Node makes one, where it does not end by halves.
      release();
      counts.tlsHandedOver += 1;
      socket.allowHalfOpen = false;
      socket.unshift(first);
      onTls(socket);
    } else if (first[0] === MESSAGE_TYPE.ENCRYPTED || first[0] === MESSAGE_TYPE.LABEL) {
      counts.exchangesIn += 1;
      const made = begin(socket, limits.exchangeMs);
      made.feed(first);
      onExchange(made.exchange, from);
    } else {
      counts.foreign += 1;
      socket.destroy();
    }
  };

  return {
    accept: (socket) => {
      // A reset at any time is no more than an end.
      socket.on("error", () => socket.destroy());
      const from = remoteEndpoint(socket.remoteAddress, socket.remotePort);
      if (from === undefined) return void socket.destroy();
      const release = places.take(from);
      if (release === undefined) {
        counts.refused += 1;
        return void socket.destroy();
      }
      waiting.add(socket);
      socket.once("close", () => {
        waiting.delete(socket);
        release();
      });
      const onSilence = () => {
        counts.silent += 1;
      };
      awaitFirstBytes(socket, limits.firstByteMs, onSilence, (first) => {
        waiting.delete(socket);
        begun(socket, from, first, release);
      });
    },
    adopt: (socket, timeoutMs) => {
      counts.exchangesOut += 1;
      return begin(socket, timeoutMs).exchange;
    },
    end: () => {
      for (const socket of waiting) socket.destroy();
      for (const { cut } of exchanges) cut("this member ends");
    },
  };
}
