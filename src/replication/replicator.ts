/**
 * Replication: what this node's store writes goes to all peers, what they write comes into it, and comparing mends what was
 * lost on the way. The node layer says who is alive (`setPeers`) and hands over channels; nothing here waits for the slowest.
 */
import { errorText } from "../base/errors.ts";
import type { RawItem } from "../store/raw-items.ts";
import type { AuditVector, ItemRef } from "../store/replica.ts";
import { type Acknowledgement, acknowledgedBy } from "./acknowledgements.ts";
import { createAuditSync } from "./audit-sync.ts";
import type { Channel, ChannelHandlers } from "./channel.ts";
import { askRoot, exchangeWith, holdsTheSame, staleWith, takeFrom } from "./comparing.ts";
import { type Conductor, createConductor } from "./conductor.ts";
import { type Counters, type PeerFigures, zeroCounters } from "./figures.ts";
import type { FirstSyncProgress } from "./first-sync.ts";
import { createInbox } from "./inbox.ts";
import { PEERS_MAX } from "./limits.ts";
import { createLongAnswers } from "./long-answers.ts";
import { type Ask, encodeMessage, type Questions, type Standing } from "./messages.ts";
import { OUTBOX_LIMITS } from "./outbox.ts";
import { askOnce, createPeer, type Peer, preferredWay, tellMet, type Way } from "./peer.ts";
import { createSender, type Sender } from "./sender.ts";
import { answer, rootOf, type ServingParts } from "./serving.ts";
import { endWay, openWay, type WayParts } from "./ways.ts";
import { alivePeers, type ReplicatorOptions, statusOf, type World } from "./world.ts";

export type Freshness = {
  /** Since the last complete comparison, or since there is anybody to compare with; milliseconds, as `applyMs`. */
  readonly sinceExchangeMs: number;
  /** From arriving to being on the disk. */
  readonly applyMs: number;
  readonly peersAlive: number;
  /** Without those that have said that they have their first sync before them. */
  readonly peersComplete: number;
};

export type Replicator = AsyncDisposable & {
  /** All members that are alive, without this node. Others are forgotten, and what waits for them too. */
  readonly setPeers: (nodeIds: readonly string[]) => void;
  /** Takes over a channel that is open. One of a node that is not alive yet counts once `setPeers` names it. */
  readonly attach: (channel: Channel, isDialed: boolean) => ChannelHandlers;
  /** A peer's root digest, as its gossip told. */
  readonly noteRoot: (nodeId: string, root: string) => void;
  /** Of this store; undefined while it is being made. */
  readonly root: () => string | undefined;
  /** Sends these items to all peers again. */
  readonly announce: (refs: readonly ItemRef[]) => void;
  /** See acknowledgements.ts; `timeoutMs` bounds it. */
  readonly acknowledgedBy: (refs: readonly ItemRef[], timeoutMs: number) => Promise<Acknowledgement>;
  /** What the peers that answer have of those zones, by node id. */
  readonly standings: (zones: readonly string[]) => Promise<ReadonlyMap<string, Standing>>;
  /** Whether that peer's store is the same but for what is under way. Rejects where it does not answer. */
  readonly holdsTheSame: (nodeId: string) => Promise<boolean>;
  readonly isComplete: () => boolean;
  /** This node has been told to join others. */
  readonly expectFirstSync: () => void;
  /** The greater of what has arrived and is not applied, and the least that any peer alive has not acknowledged. */
  readonly queueDepth: () => number;
  readonly freshness: () => Freshness;
  readonly peers: () => readonly PeerFigures[];
  readonly counters: () => Readonly<Counters>;
};

/** While a peer compares itself with us, this node leaves it the lead for so long. */
const LEAD_MS = 3_000;
/** A gossiped root that differs is looked into at most that late, so that not all do so at once. */
const NOTED_ROOT_MS = 2_000;

export function createReplicator(options: ReplicatorOptions): Replicator {
  const world = createWorld(options);
  const { store, timers } = options;
  const { sender, conductor, peers } = world;
  const stopListening = store.onItems((refs) => sender.add(refs));
  return {
    setPeers: (nodeIds) => setPeers(world, nodeIds),
    attach: (channel, isDialed) => attach(world, channel, isDialed),
    noteRoot: (nodeId, root) => noteRoot(world, nodeId, root),
    root: () => (store.digest.isReady() ? store.digest.root() : undefined),
    announce: (refs) => sender.add(refs),
    acknowledgedBy: (refs, timeoutMs) => acknowledgedBy({ sender, timers, peers }, refs, timeoutMs),
    standings: (zones) => standings(world, zones),
    holdsTheSame: async (nodeId) => {
      const peer = peers.get(nodeId);
      return peer !== undefined && (await holdsTheSame(world, peer));
    },
    isComplete: conductor.isComplete,
    expectFirstSync: conductor.expectFirstSync,
    queueDepth: () => queueDepth(world),
    freshness: () => ({
      sinceExchangeMs: timers.now() - Math.max(conductor.lastExchangeMs(), world.inCompanySinceMs),
      applyMs: world.inbox.applyMs(),
      peersAlive: alivePeers(world).length,
      peersComplete: alivePeers(world).filter(({ status }) => status?.isComplete !== false).length,
    }),
    peers: () => [...peers.values()].map((peer) => figuresOf(peer, timers.now())),
    counters: () => ({ ...world.counters }),
    [Symbol.asyncDispose]: async () => {
      stopListening();
      await stop(world);
    },
  };
}

/** The parts, each given what it needs of the others. */
function createWorld(options: ReplicatorOptions): World {
  const { store, timers, log } = options;
  const peers = new Map<string, Peer>();
  const counters = zeroCounters();
  const apply = (items: readonly RawItem[]) => store.applyRemote(items, conductor.merging());
  const inbox = createInbox({ apply, now: timers.now });
  const sender: Sender = createSender({
    store,
    timers,
    log,
    peers,
    onBehind: (peer, dropped) => onBehind(world, peer, dropped),
    onSent: (items) => {
      counters.itemsSent += items;
    },
  });
  const audit = createAuditSync({
    store,
    timers,
    log,
    ask: async (nodeId, vector) => {
      const peer = peers.get(nodeId);
      if (peer === undefined) throw new Error("not connected");
      return askOnce(peer, "audit", { vector });
    },
    tell: (vector) => tellAll(world, vector),
    onTaken: (entries) => {
      counters.auditEntriesReceived += entries;
    },
  });
  const progress: FirstSyncProgress = { cursor: null, activations: [], routes: [] };
  const conductor: Conductor = createConductor(
    {
      ...options,
      intervalMs: options.settings.pushPullIntervalMs,
      peers,
      counters,
      exchange: (peer, isFirstSync) => exchangeWith(world, peer, isFirstSync),
      takeEverything: (peer) => takeFrom(world, peer, progress),
      askStatus: async (peer) => (await askRoot(world, peer)).status,
      staleSide: (theirs, nodeId) => staleWith(world, theirs, nodeId),
      onCompared: ({ nodeId }) => audit.pullFrom(nodeId),
      onComplete: () => options.onComplete?.(),
    },
    options.settings.isJoining,
  );
  const world: World = {
    options,
    peers,
    counters,
    inbox,
    sender,
    conductor,
    audit,
    longAnswers: createLongAnswers(timers),
    pauses: new Set(),
    inCompanySinceMs: timers.now(),
    isStopped: false,
  };
  return world;
}

function wayPartsOf(world: World): WayParts {
  const { options, counters, inbox, audit, sender } = world;
  const serving: ServingParts = {
    store: options.store,
    status: () => statusOf(world),
    standing: options.standing,
    onRoot: (nodeId, asked) => onRoot(world, nodeId, asked),
  };
  return {
    inbox,
    timers: options.timers,
    log: options.log,
    answer: (nodeId, question) => {
      leaveLead(world, nodeId, question.ask);
      const make = () => answer(serving, nodeId, question);
      return question.ask === "versions" ? world.longAnswers.inTurn(nodeId, make) : make();
    },
    onAuditNotice: ({ nodeId }, vector) => audit.onVector(nodeId, vector),
    onOpen: (peer, way) => onOpen(world, peer, way),
    onClosed: (peer) => forgetUnused(world, peer),
    onRoom: () => sender.wake(),
    count: (what, by) => {
      counters[what] += by;
    },
  };
}

function setPeers(world: World, nodeIds: readonly string[]): void {
  const alive = new Set(nodeIds);
  if (alivePeers(world).length === 0 && alive.size > 0) world.inCompanySinceMs = world.options.timers.now();
  for (const nodeId of alive) {
    const peer = peerOf(world, nodeId);
    if (peer === undefined || peer.isAlive) continue;
    peer.isAlive = true;
    if (peer.ways.length > 0) meet(world, peer);
  }
  for (const peer of [...world.peers.values()]) {
    if (!peer.isAlive || alive.has(peer.nodeId)) continue;
    peer.isAlive = false;
    peer.outbox.drop();
    tellMet(peer);
    forgetUnused(world, peer);
  }
}

/** The peer of that name, made where there is room for it. */
function peerOf({ peers, options }: World, nodeId: string): Peer | undefined {
  const known = peers.get(nodeId);
  if (known !== undefined || nodeId === options.store.nodeId || peers.size >= PEERS_MAX) return known;
  const peer = createPeer(nodeId, options.queueLimits ?? OUTBOX_LIMITS);
  peers.set(nodeId, peer);
  return peer;
}

function forgetUnused({ peers }: World, peer: Peer): void {
  if (!peer.isAlive && peer.ways.length === 0) peers.delete(peer.nodeId);
}

function attach(world: World, channel: Channel, isDialed: boolean): ChannelHandlers {
  const peer = peerOf(world, channel.peer.nodeId);
  if (peer === undefined || world.isStopped) {
    channel.close(world.isStopped ? "this node stops" : "too many peers");
    return { onMessage: () => undefined, onDrain: () => undefined, onClose: () => undefined };
  }
  const { instanceId } = channel.peer;
  if (peer.instanceId !== instanceId) {
    // Another store under that name: nothing is known of it.
    for (const way of [...peer.ways]) way.channel.close("another instance of this node has connected");
    peer.instanceId = instanceId;
    peer.status = undefined;
    // The last of its ways may have taken it along.
    world.peers.set(peer.nodeId, peer);
  }
  return openWay(wayPartsOf(world), peer, channel, isDialed);
}

function onOpen(world: World, peer: Peer, { channel }: Way): void {
  channel.send(encodeMessage({ type: "audit-notice", vector: world.options.store.auditVector() }));
  if (peer.ways.length === 1 && peer.isAlive) meet(world, peer);
  world.sender.wake();
}

/** What was written while the peer was away it may lack: one of the two compares at once, the other where that does not. */
function meet({ conductor, options }: World, peer: Peer): void {
  if (peer.needs === "nothing") peer.needs = "meeting";
  peer.fruitless = 0;
  peer.notBeforeMs = 0;
  conductor.compare(peer, options.store.nodeId < peer.nodeId ? 0 : LEAD_MS);
}

function onBehind({ counters, conductor, options }: World, peer: Peer, dropped: number): void {
  counters.behindEvents++;
  peer.needs = "behind";
  peer.dropped += dropped;
  peer.droppedSinceMs ??= options.timers.now();
  peer.fruitless = 0;
  peer.notBeforeMs = 0;
  options.log("warn", "too many changes wait for a peer: it is compared with this node instead", {
    peer: peer.nodeId,
    changes: dropped,
  });
  conductor.compare(peer, 0);
}

/** A peer that compares itself with this node has the lead for as long as it asks. */
function leaveLead({ peers, options }: World, nodeId: string, ask: Ask): void {
  const peer = peers.get(nodeId);
  const isComparing = ask !== "audit" && ask !== "standing" && ask !== "page";
  if (peer !== undefined && isComparing && !peer.isExchanging) peer.comparesUntilMs = options.timers.now() + LEAD_MS;
}

function onRoot(world: World, nodeId: string, { root, status }: Questions["root"]): { readonly queued: number } {
  const peer = world.peers.get(nodeId);
  if (peer === undefined) return { queued: 0 };
  peer.status = status;
  if (root !== null && root === rootOf(world.options.store)) world.conductor.agreed(peer);
  return { queued: peer.outbox.size() + world.sender.waiting() + world.inbox.depth() };
}

function noteRoot({ peers, options, conductor, sender, inbox }: World, nodeId: string, root: string): void {
  const peer = peers.get(nodeId);
  const { digest } = options.store;
  if (peer === undefined || !digest.isReady() || digest.root() === root) return;
  if (peer.outbox.size() + sender.waiting() + inbox.depth() > 0) return;
  conductor.compare(peer, options.random() * NOTED_ROOT_MS);
}

async function standings({ peers, options }: World, zones: readonly string[]): Promise<ReadonlyMap<string, Standing>> {
  const found = new Map<string, Standing>();
  const ask = async (peer: Peer) => {
    try {
      found.set(peer.nodeId, await askOnce(peer, "standing", { zones }));
    } catch (thrown) {
      options.log("debug", "a peer did not say what it has", { peer: peer.nodeId, detail: errorText(thrown) });
    }
  };
  await Promise.all([...peers.values()].filter(({ isAlive }) => isAlive).map(ask));
  return found;
}

function tellAll({ peers }: World, vector: AuditVector): void {
  for (const peer of peers.values()) {
    preferredWay(peer)?.channel.send(encodeMessage({ type: "audit-notice", vector }));
  }
}

function queueDepth(world: World): number {
  const { inbox, sender } = world;
  const backlogs = alivePeers(world).map(({ outbox, dropped }) => outbox.size() + dropped);
  const least = backlogs.length === 0 ? 0 : Math.min(...backlogs) + sender.waiting();
  return Math.max(inbox.depth(), least);
}

function figuresOf(peer: Peer, nowMs: number): PeerFigures {
  const oldestMs = peer.droppedSinceMs ?? peer.outbox.oldestMs();
  return {
    nodeId: peer.nodeId,
    isConnected: peer.ways.length > 0,
    queued: peer.outbox.size() + peer.dropped,
    lagMs: oldestMs === undefined ? 0 : nowMs - oldestMs,
    skewMs: preferredWay(peer)?.channel.skewMs(),
    lastAgreementMs: peer.agreedAtMs,
    isBehind: peer.needs === "behind",
  };
}

async function stop(world: World): Promise<void> {
  world.isStopped = true;
  for (const { ways } of world.peers.values()) {
    for (const way of [...ways]) endWay(way, "this node stops");
  }
  world.audit.stop();
  setPeers(world, []);
  world.sender.stop();
  const stopped = world.conductor.stop();
  for (const end of [...world.pauses]) end();
  await stopped;
  await world.inbox.idle();
}
