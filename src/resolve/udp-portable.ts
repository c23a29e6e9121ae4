/** Sockets for exchanges from Node's own, where no better ones can be had: a fresh one for each, bound and connected. */
import { createSocket, type Socket } from "node:dgram";
import { ipToText } from "../base/ip.ts";
import { BIND_ATTEMPTS, type UdpSockets, type UdpSocketsOptions } from "../base/udp-sockets.ts";

type Open = {
  readonly socket: Socket;
  readonly isV4: boolean;
  /** 0 until it is bound. */
  port: number;
  isEnded: boolean;
};

/** Binding and connecting end later than `open`; an address that the system refuses is told by `onError`. */
export function openPortableUdpSockets({ events, randomPort, capacity }: UdpSocketsOptions): UdpSockets {
  const open: (Open | undefined)[] = new Array(capacity).fill(undefined);
  const free = Array.from({ length: capacity }, (_, index) => capacity - 1 - index);
  const byPort = new Map<number, number>();

  const end = (index: number): void => {
    const entry = open[index];
    if (entry === undefined) return;
    open[index] = undefined;
    free.push(index);
    entry.isEnded = true;
    byPort.delete(portKey(entry.port, entry.isV4));
    entry.socket.close();
  };
  return {
    capacity,
    open: (address, port, bytes) => {
      const index = free.pop();
      if (index === undefined) return -1;
      const isV4 = address.length === 4;
      const entry: Open = { socket: createSocket(isV4 ? "udp4" : "udp6"), isV4, port: 0, isEnded: false };
      open[index] = entry;
      start(entry, ipToText(address), port, bytes.slice(), randomPort, {
        onBound: (bound) => {
          entry.port = bound;
          byPort.set(portKey(bound, isV4), index);
        },
        onDatagram: (datagram) => events.onDatagram(index, datagram),
        onError: () => events.onError(index),
      });
      return index;
    },
    close: end,
    socketAt: (port, addressBytes) => byPort.get(portKey(port, addressBytes === 4)) ?? -1,
    end: () => {
      for (let index = 0; index < capacity; index++) end(index);
    },
  };
}

function portKey(port: number, isV4: boolean): number {
  return isV4 ? port : -port;
}

type Calls = {
  readonly onBound: (port: number) => void;
  readonly onDatagram: (bytes: Uint8Array) => void;
  readonly onError: () => void;
};

function start(
  entry: Open,
  host: string,
  port: number,
  bytes: Uint8Array,
  randomPort: () => number,
  calls: Calls,
): void {
  const { socket } = entry;
  let attempts = 0;
  let isBound = false;
  const bind = (): void => {
    attempts++;
    socket.bind({ port: randomPort(), exclusive: true });
  };
  socket.on("error", () => {
    if (entry.isEnded) return;
    if (!isBound && attempts < BIND_ATTEMPTS) bind();
    else calls.onError();
  });
  socket.on("listening", () => {
    isBound = true;
    if (entry.isEnded) return;
    calls.onBound(socket.address().port);
    socket.connect(port, host);
  });
  socket.on("connect", () => {
    if (!entry.isEnded) socket.send(bytes, () => {});
  });
  socket.on("message", (datagram) => {
    if (!entry.isEnded) calls.onDatagram(datagram);
  });
  bind();
}
