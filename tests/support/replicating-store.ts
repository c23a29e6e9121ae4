/** A store that replicates over real streams on loopback with one other, without membership: the test says where that is. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { systemTimers } from "../../src/cluster/system-timers.ts";
import { createPeers } from "../../src/replication/peers.ts";
import { createReplicator, type Replicator } from "../../src/replication/replicator.ts";
import type { ReplicatedStore } from "../../src/replication/world.ts";

export type Replica = AsyncDisposable & {
  readonly port: number;
  readonly replicator: Replicator;
  /** The other is alive, and is dialed where its port is known. */
  readonly meet: (nodeId: string, port?: number) => void;
  /** The other is dead. */
  readonly part: () => void;
};

const ROOT = new Uint8Array(32).fill(9);
const LOOPBACK = new Uint8Array([127, 0, 0, 1]);

export async function startReplica(store: ReplicatedStore): Promise<Replica> {
  const log = () => undefined;
  const replicator = createReplicator({
    ...{ store, timers: systemTimers, random: Math.random, nowMs: Date.now, log },
    settings: { pushPullIntervalMs: 1_000, isJoining: false },
    standing: () => ({ digest: null, zones: {} }),
  });
  const peers = createPeers({
    ...{ root: ROOT, timers: systemTimers, log, refusal: () => undefined, onReset: () => undefined },
    self: () => ({
      ...{ nodeId: store.nodeId, instanceId: store.instanceId, abilities: [] },
      ...{ collectedUpToMs: store.collectedUpToMs(), lastAgreementMs: store.lastAgreementMs() },
    }),
    onOutgoing: (channel) => replicator.attach(channel, true),
    onIncoming: (channel) => replicator.attach(channel, false),
  });
  const accepted = new Set<Socket>();
  const server = createServer((socket) => {
    accepted.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => accepted.delete(socket));
    peers.accept(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("no port");
  return {
    port: bound.port,
    replicator,
    meet: (nodeId, port) => {
      if (port !== undefined) peers.setPeers([{ nodeId, endpoint: { address: LOOPBACK, port } }]);
      replicator.setPeers([nodeId]);
    },
    part: () => {
      peers.setPeers([]);
      replicator.setPeers([]);
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      await replicator[Symbol.asyncDispose]();
      await peers[Symbol.asyncDispose]();
      for (const socket of accepted) socket.destroy();
    },
  };
}
