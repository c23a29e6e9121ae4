/** Accepts stream connections within the limits and ends those that overstay. */
import type { Socket } from "node:net";
import { COUNTER, type Transport } from "../image/counters.ts";
import { clientAddress } from "./address.ts";
import { type Connection, createOutput, type StreamContext, serveConnection } from "./stream-connection.ts";

export type StreamService = {
  /** Takes a new connection: serves it, or refuses it where there are too many. */
  readonly accept: (socket: Socket, transport: Transport) => void;
  /** Lets the connections finish what is under way and ends them; settles when none is left. */
  readonly drain: () => Promise<void>;
};

/** Bytes of an IPv6 address that tell clients apart: whoever has one address of a /64 has all of them. */
const IPV6_CLIENT_BYTES = 8;

/** Of the bytes that all may have waiting: so many more, and it is looked at who has most of them. */
const QUEUED_LOOK_SHARE = 1 / 8;

/** What tells one client from another. */
export function clientKey(address: Uint8Array): string {
  return Buffer.from(address.length === 4 ? address : address.subarray(0, IPV6_CLIENT_BYTES)).toString("latin1");
}

/** Cuts the connections with most answers waiting, until no more than `bytesMax` wait in all. */
export function cutLargest(connections: ReadonlySet<Pick<Connection, "queuedBytes" | "cut">>, bytesMax: number): void {
  let queued = 0;
  for (const connection of connections) queued += connection.queuedBytes();
  if (queued <= bytesMax) return;
  const bySize = [...connections].sort((a, b) => b.queuedBytes() - a.queuedBytes());
  for (const connection of bySize) {
    if (queued <= bytesMax) return;
    queued -= connection.queuedBytes();
    connection.cut();
  }
}

export function createStreamService(options: Omit<StreamContext, "output" | "onQueued">): StreamService {
  const { limits, counters, now } = options;
  const connections = new Set<Connection>();
  let queuedSinceLook = 0;
  // Within the pause of the sweeps many clients at once could be given far more than all of them may hold.
  const onQueued = (bytes: number) => {
    queuedSinceLook += bytes;
    if (queuedSinceLook < limits.maxQueuedBytesOfAll * QUEUED_LOOK_SHARE) return;
    queuedSinceLook = 0;
    cutLargest(connections, limits.maxQueuedBytesOfAll);
  };
  const context: StreamContext = { ...options, onQueued, output: createOutput() };
  const perClient = new Map<string, number>();
  let drainingSinceMs: number | undefined;
  let onDrained = () => {};
  counters[COUNTER.CONNECTIONS_OPEN] = 0;

  const sweep = () => {
    const nowMs = now();
    const mustEnd = drainingSinceMs !== undefined && nowMs - drainingSinceMs >= limits.drainMs;
    const idleMs = drainingSinceMs === undefined ? limits.idleMs : limits.drainIdleMs;
    for (const connection of connections) {
      if (mustEnd) connection.destroy();
      else connection.sweep(nowMs, idleMs);
    }
    cutLargest(connections, limits.maxQueuedBytesOfAll);
  };
  const timer = setInterval(sweep, limits.sweepMs);
  timer.unref();

  return {
    accept: (socket, transport) => {
      const address = clientAddress(socket.remoteAddress ?? "");
      // It has gone already, between the kernel's accept and ours.
      if (address === undefined) return void socket.destroy();
      const client = clientKey(address);
      const ofClient = perClient.get(client) ?? 0;
      const isFull = connections.size >= limits.maxConnections || ofClient >= limits.maxConnectionsPerClient;
      if (isFull || drainingSinceMs !== undefined) {
        counters[COUNTER.CONNECTIONS_REFUSED]! += 1;
        return void socket.destroy();
      }
      perClient.set(client, ofClient + 1);
      counters[COUNTER.CONNECTIONS_ACCEPTED]! += 1;
      counters[COUNTER.CONNECTIONS_OPEN]! += 1;
      const connection = serveConnection(context, socket, transport, address);
      connections.add(connection);
      socket.once("close", () => {
        connections.delete(connection);
        counters[COUNTER.CONNECTIONS_OPEN]! -= 1;
        const left = (perClient.get(client) ?? 1) - 1;
        if (left > 0) perClient.set(client, left);
        else perClient.delete(client);
        if (drainingSinceMs !== undefined && connections.size === 0) onDrained();
      });
    },
    drain: async () => {
      drainingSinceMs = now();
      clearInterval(timer);
      if (connections.size === 0) return;
      const drainTimer = setInterval(sweep, limits.drainIdleMs / 4);
      await new Promise<void>((resolve) => {
        onDrained = resolve;
      });
      clearInterval(drainTimer);
    },
  };
}
