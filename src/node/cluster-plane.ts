/**
 * This node as one of a cluster: the port, who else is there (src/cluster), the streams to them and what goes over these
 * (src/replication), and what the API shows of it. Without a cluster's key nothing of it is opened.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { createCodec } from "../cluster/codec.ts";
import type { Delegate, Member, Membership } from "../cluster/member.ts";
import { createMembership } from "../cluster/membership.ts";
import type { Endpoint } from "../cluster/messages.ts";
import { type ClusterPort, openClusterPort } from "../cluster/sockets.ts";
import { systemTimers } from "../cluster/system-timers.ts";
import type { ClusterView } from "../commands/cluster-view.ts";
import { readConfig } from "../commands/config-documents.ts";
import { announceSelf, followRemovedNodes, knownPeers } from "../commands/nodes.ts";
import type { CommandContext } from "../commands/run.ts";
import { createZoneActivator } from "../commands/zone-activation.ts";
import { addressToText, hostText } from "../listen/address.ts";
import type { NodeBody } from "../model/objects.ts";
import type { Emit } from "../notify/event.ts";
import { clockAheadMs } from "../replication/identity.ts";
import { createPeers, type Peers } from "../replication/peers.ts";
import { createReplicator, type Replicator } from "../replication/replicator.ts";
import type { NodeStore } from "../store/open-store.ts";
import { objectRef, zoneRef } from "../store/refs.ts";
import type { ItemRef } from "../store/replica.ts";
import { LEAVE_MS, RETURN_MS, SETTLING_MS } from "./cluster-limits.ts";
import {
  decodeMeta,
  decodeRoot,
  encodeMeta,
  encodeRoot,
  endpointText,
  joinsOthers,
  otherAddress,
  otherInstance,
  resolveHost,
} from "./cluster-members.ts";
import { type ClusterParts, createClusterView, standingOf } from "./cluster-view.ts";
import type { Config } from "./config.ts";
import type { NodeKeys } from "./keys.ts";
import { createPartLog } from "./part-log.ts";
import {
  type ReplicationFigures,
  type ReplicationSettings,
  replicationReadiness,
  replicationTiming,
} from "./replication-readiness.ts";

export type ClusterPlaneOptions = {
  readonly config: Config;
  readonly keys: NonNullable<NodeKeys["cluster"]>;
  readonly store: NodeStore;
  readonly context: CommandContext;
  readonly version: string;
  readonly emit: Emit;
  /** Resolves when this node answers what the store has. */
  readonly published: () => Promise<void>;
  readonly log: Log;
};

export type ClusterPlane = AsyncDisposable & {
  readonly view: ClusterView;
  /** Where peers reach it, with the port in use. */
  readonly listens: string;
  readonly readiness: () => ReturnType<typeof replicationReadiness>;
  /** Whether this node holds what the cluster holds; one that joins nobody does from the start. */
  readonly isComplete: () => boolean;
  /** Resolves once it does. */
  readonly complete: Promise<void>;
  /** Resolves when the peers that are alive have what this node has committed up to now, or after the time. */
  readonly settled: (timeoutMs: number) => Promise<void>;
  /** Resolves when it has been compared with those that it found at its start, at once where it found none, or after the time. */
  readonly caughtUp: (timeoutMs: number) => Promise<void>;
  /** How far this node's clock is ahead of the cluster's, milliseconds. */
  readonly clockAheadMs: () => number;
  readonly parts: ClusterParts;
};

/** Throws OperatorError where the port cannot be opened. */
export async function openClusterPlane(given: ClusterPlaneOptions): Promise<ClusterPlane> {
  const options = bounded(given);
  const { config, keys, store, context, published, log } = options;
  const closing = new AsyncDisposableStack();
  const settings = settingsOf(config, store);
  const { promise: complete, resolve } = Promise.withResolvers<void>();
  let isPublished = true;
  const onComplete = () => {
    isPublished = false;
    const shown = published().finally(() => {
      isPublished = true;
    });
    shown.catch((error: unknown) => log("error", `zones cannot be published: ${errorText(error)}`));
    resolve();
    if (!closing.disposed) onReturn();
  };
  const onReturn = () => announce(context, self.body, log);
  const replicator: Replicator = closing.use(
    createReplicator({
      ...{ store, timers: systemTimers, random: Math.random, nowMs: Date.now, log },
      settings: { pushPullIntervalMs: settings.pushPullIntervalMs, isJoining: isJoining(config, store) },
      standing: (zones) => standingOf(store, replicator.root(), zones),
      ...{ onComplete, published },
    }),
  );
  const peers = closing.use(
    createPeers({
      ...{ root: keys.streams, timers: systemTimers, log },
      self: () => ({
        ...{ nodeId: store.nodeId, instanceId: store.instanceId, abilities: [], address: endpointText(self.endpoint) },
        ...{ collectedUpToMs: store.collectedUpToMs(), lastAgreementMs: store.lastAgreementMs() },
      }),
      refusal: (hello) =>
        otherInstance(membership.members(), hello.nodeId, hello.instanceId) ??
        otherAddress(membership.members(), hello),
      onOutgoing: (channel) => replicator.attach(channel, true),
      onIncoming: (channel) => replicator.attach(channel, false),
      onReset: (nodeId) => membership.probeNow(nodeId),
    }),
  );
  const port = closing.use(await openPort(config, peers));
  const self = await selfOf(options, port.local);
  const membership = openMembership({ ...options, peers, replicator, port, self });
  const activator = createZoneActivator({
    ...{ context, timers: systemTimers, isComplete: replicator.isComplete },
    announce: (zone) => replicator.announce(refsOfZone(zone)),
    acknowledged: async (zone, timeoutMs) => (await replicator.acknowledgedBy(refsOfZone(zone), timeoutMs)).isComplete,
    aliveNodes: () =>
      membership
        .members()
        .filter(isThere)
        .map(({ name }) => name),
  });
  closing.defer(activator.close);
  closing.defer(followRemovedNodes(store, membership.forget, returning(closing, replicator, onReturn)));
  // Before all of this ends the others hear that this node leaves.
  closing.use(membership);
  closing.defer(() => membership.leave(LEAVE_MS));
  if (replicator.isComplete()) onComplete();
  // Those that it was told of, and those that it knew when it ended.
  const joined = membership.join([...new Set([...config["replication.join"], ...knownPeers(store)])]);
  const settled = async (timeoutMs: number) => void (await replicator.acknowledgedBy([], timeoutMs));
  log("info", `cluster on ${endpointText(port.local)}, UDP and TCP`, { advertise: self.body.address });
  const parts: ClusterParts = { port, membership, peers, replicator, activator };
  return {
    listens: endpointText(port.local),
    view: createClusterView({ store, self: self.body, parts, refsOfZone }),
    readiness: () => replicationReadiness(figuresOf(parts, isPublished), settings),
    isComplete: replicator.isComplete,
    complete,
    settled,
    // Who has just been met has acknowledged nothing before both are found to agree.
    caughtUp: (timeoutMs) => joined.then(() => settled(timeoutMs)),
    clockAheadMs: () =>
      clockAheadMs(peers.states().flatMap(({ outgoing, incoming }) => (outgoing ?? incoming)?.skewMs ?? [])),
    parts,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function openPort(config: Config, { accept, isMemberAt }: Peers): Promise<ClusterPort> {
  const listen = config["replication.listen"];
  return openClusterPort({
    listen: { host: hostText(listen), port: listen.port },
    onTls: accept,
    isMember: ({ address }) => isMemberAt(address),
  });
}

/** What other nodes say and do makes lines of their own choice. */
function bounded(options: ClusterPlaneOptions): ClusterPlaneOptions {
  const log = createPartLog(options.log, "the cluster");
  return { ...options, log, context: { ...options.context, log } };
}

/** What was put by the API holds from the next start on, and before the file; 0 is the file's. */
function settingsOf(config: Config, store: NodeStore): ReplicationSettings {
  const { effective } = readConfig(store, "replication", replicationTiming(config));
  const { push_pull_interval_seconds: intervalSeconds, readyz_queue_threshold: queueThreshold } = effective;
  return { pushPullIntervalMs: intervalSeconds * 1_000, queueThreshold };
}

/** A node that has never synced waits for others where it was told of any, or was in the midst of a first sync when it ended. */
function isJoining(config: Config, store: NodeStore): boolean {
  const { "replication.join": join, "replication.advertise": advertise, "replication.listen": listen } = config;
  return joinsOthers(join, [advertise ?? "", addressToText(listen)]) || knownPeers(store).length > 0;
}

function announce(context: CommandContext, self: NodeBody, log: Log): void {
  announceSelf(context, self).catch((error: unknown) =>
    log("error", `this node could not write itself into the store: ${errorText(error)}`),
  );
}

/** What to do where this node is removed while it lives: a store that begins anew loses it too, and writes it when it is complete. */
function returning(
  closing: AsyncDisposableStack,
  { isComplete }: Pick<Replicator, "isComplete">,
  onReturn: () => void,
): () => void {
  let cancel: (() => void) | undefined;
  closing.defer(() => cancel?.());
  return () => {
    cancel ??= systemTimers.after(RETURN_MS, () => {
      cancel = undefined;
      if (!closing.disposed && isComplete()) onReturn();
    });
  };
}

/** What a peer has to have to answer for the zone at all. */
function refsOfZone(zone: string): readonly ItemRef[] {
  return [zoneRef(zone), objectRef("zone", [zone])];
}

function figuresOf({ replicator }: ClusterParts, isPublished: boolean): ReplicationFigures {
  return {
    ...replicator.freshness(),
    hasSynced: replicator.isComplete(),
    isPublished,
    syncedItems: replicator.counters().firstSyncItems,
    queueDepth: replicator.queueDepth(),
  };
}

type Self = { readonly endpoint: Endpoint; readonly body: NodeBody };

/** Where the others reach this node: what the settings say, else where it listens. */
async function selfOf({ config, store, version }: ClusterPlaneOptions, local: Endpoint): Promise<Self> {
  const advertise = config["replication.advertise"];
  const body = { id: store.nodeId, region: config["node.region"] ?? "", version };
  if (advertise === undefined) return { endpoint: local, body: { ...body, address: endpointText(local) } };
  const colon = advertise.lastIndexOf(":");
  const port = Number(advertise.slice(colon + 1));
  const [address] = await resolveHost(advertise.slice(0, colon).replace(/[[\]]/g, ""));
  if (address === undefined) throw new Error(`replication.advertise ${advertise} has no address`);
  return { endpoint: { address, port }, body: { ...body, address: advertise } };
}

type MembershipParts = ClusterPlaneOptions & {
  readonly peers: Peers;
  readonly replicator: Replicator;
  readonly port: ClusterPort;
  readonly self: Self;
};

const isThere = ({ state }: Member) => state === "alive" || state === "suspect";

function openMembership(parts: MembershipParts): Membership {
  const { config, keys, store, version, emit, log, peers, replicator, port, self } = parts;
  const settledAt = systemTimers.now() + SETTLING_MS;
  /** Of that time alone, which bounds it. */
  const seenGoing = new Set<string>();
  const follow = () => {
    const others = membership.members().filter((member) => member.name !== store.nodeId && isThere(member));
    peers.setPeers(others.map(({ name, endpoint }) => ({ nodeId: name, endpoint })));
    replicator.setPeers(others.map(({ name }) => name));
  };
  const tell = (type: "cluster.node_joined" | "cluster.node_left", member: Member) => {
    const address = endpointText(member.endpoint);
    const isNew = type === "cluster.node_joined";
    log("info", `node ${member.name} ${isNew ? "joined" : member.state === "left" ? "left" : "is unreachable"}`, {
      ...{ node: member.name, address },
    });
    // Those who were here before this node did not join when it came; whoever it has seen go, did.
    if (systemTimers.now() < settledAt) {
      if (!isNew) seenGoing.add(member.name);
      else if (!seenGoing.has(member.name)) return;
    }
    emit({ type, subject: member.name, data: { node_id: member.name, address, status: member.state } });
  };
  const delegate: Delegate = {
    onJoin: (member) => {
      follow();
      peers.hurry(member.name);
      tell("cluster.node_joined", member);
    },
    onLeave: (member) => {
      follow();
      tell("cluster.node_left", member);
    },
    onSuspect: ({ name }) => log("info", `node ${name} is suspected to be unreachable`, { node: name }),
    onUpdate: follow,
    onUserMessage: () => undefined,
    localState: () => encodeRoot(store.nodeId, replicator.root() ?? ""),
    mergeState: (state) => {
      const told = decodeRoot(state);
      if (told !== undefined) replicator.noteRoot(told.nodeId, told.root);
    },
    refusal: ({ name, meta }) => otherInstance(membership.members(), name, decodeMeta(meta).instance),
  };
  const membership = createMembership({
    ...{ name: store.nodeId, advertise: self.endpoint, transport: port, timers: systemTimers, random: Math.random },
    ...{ delegate, log, resolveHost, codec: createCodec({ key: keys.membership }) },
    meta: encodeMeta({
      ...{ instance: store.instanceId, region: config["node.region"] ?? "", version },
      address: self.body.address === endpointText(self.endpoint) ? "" : self.body.address,
    }),
    settings: { pushPullIntervalMs: settingsOf(config, store).pushPullIntervalMs },
  });
  return membership;
}
