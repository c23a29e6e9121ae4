/** What the API shows of the cluster: members as they live, joined with what the streams and the store know of them. */
import type { Member, Membership } from "../cluster/member.ts";
import type { ClusterPort } from "../cluster/sockets.ts";
import { systemTimers } from "../cluster/system-timers.ts";
import type { ClusterNode, ClusterView, NodeStanding } from "../commands/cluster-view.ts";
import type { ZoneActivator } from "../commands/zone-activation.ts";
import type { NodeBody } from "../model/objects.ts";
import type { PeerFigures } from "../replication/figures.ts";
import type { Standing } from "../replication/messages.ts";
import type { Peers } from "../replication/peers.ts";
import type { Replicator } from "../replication/replicator.ts";
import type { NodeStore } from "../store/open-store.ts";
import type { ItemRef } from "../store/replica.ts";
import { addressOf, decodeMeta } from "./cluster-members.ts";

/** What runs of the cluster in this node. */
export type ClusterParts = {
  readonly port: ClusterPort;
  readonly membership: Membership;
  readonly peers: Peers;
  readonly replicator: Replicator;
  readonly activator: ZoneActivator;
};

export type ClusterViewParts = {
  readonly store: Pick<NodeStore, "nodeId" | "get" | "serialOf" | "zoneDigest" | "count">;
  readonly self: NodeBody;
  readonly parts: Pick<ClusterParts, "membership" | "replicator" | "activator">;
  readonly refsOfZone: (zone: string) => readonly ItemRef[];
};

export function createClusterView({ store, self, parts, refsOfZone }: ClusterViewParts): ClusterView {
  const { membership, replicator, activator } = parts;
  const alive = () => membership.members().filter(({ name, state }) => name !== store.nodeId && state === "alive");
  return {
    isEnabled: true,
    nodes: () => nodesOf(store, self, membership.members(), replicator.peers()),
    peersAlive: () => alive().length,
    join: async (addresses) => {
      const result = await membership.join(addresses);
      // A node that nobody answered has joined nobody, and is no less ready for it.
      if (result.joined > 0) replicator.expectFirstSync();
      return result;
    },
    forget: (id) => membership.forget(id),
    announceZone: (zone) => {
      replicator.announce(refsOfZone(zone));
      activator.announced(zone);
    },
    holdsTheSame: (id) => replicator.holdsTheSame(id),
    standings: async (zones) => standingsOf(store, replicator, zones, await replicator.standings(zones)),
  };
}

function nodesOf(
  store: ClusterViewParts["store"],
  self: NodeBody,
  members: readonly Member[],
  peers: readonly PeerFigures[],
): readonly ClusterNode[] {
  const figures = new Map(peers.map((peer) => [peer.nodeId, peer]));
  return members.map((member) => nodeOf(store, self, member, figures.get(member.name)));
}

function nodeOf(
  store: ClusterViewParts["store"],
  self: NodeBody,
  member: Member,
  peer: PeerFigures | undefined,
): ClusterNode {
  const { name: id, state, meta, sinceMs } = member;
  const isSelf = id === store.nodeId;
  const told = decodeMeta(meta);
  const isConnected = peer?.isConnected === true;
  return {
    ...{ id, state, isSelf, region: told.region, version: told.version },
    address: isSelf ? self.address : addressOf(member, store.get("node", [id])?.body.address),
    since: new Date(Date.now() - (systemTimers.now() - sinceMs)).toISOString(),
    queuedChanges: isConnected ? peer.queued : undefined,
    lagMs: isConnected ? peer.lagMs : undefined,
    skewMs: isConnected ? peer.skewMs : undefined,
    lastAgreement: peer === undefined || peer.lastAgreementMs === 0 ? undefined : timeText(peer.lastAgreementMs),
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** What this node has of those zones; one that it does not hold is left out. */
export function standingOf(
  store: Pick<NodeStore, "serialOf" | "zoneDigest" | "count">,
  root: string | undefined,
  zones: readonly string[],
): Standing {
  const held = zones.flatMap((zone) => {
    const serial = store.serialOf(zone);
    const digest = store.zoneDigest(zone);
    return serial === undefined || digest === undefined
      ? []
      : [[zone, { serial, digest, records: store.count("record", zone) }] as const];
  });
  return { digest: root ?? null, zones: Object.fromEntries(held) };
}

function standingsOf(
  store: ClusterViewParts["store"],
  replicator: Pick<ClusterParts["replicator"], "root" | "peers">,
  zones: readonly string[],
  told: ReadonlyMap<string, Standing>,
): readonly NodeStanding[] {
  const own = standingOf(store, replicator.root(), zones);
  const self: NodeStanding = {
    id: store.nodeId,
    ...{ digest: own.digest ?? undefined, zones: own.zones, lagMs: undefined, skewMs: undefined },
  };
  const others = replicator.peers().map((peer): NodeStanding => {
    const standing = told.get(peer.nodeId);
    return {
      id: peer.nodeId,
      ...{ digest: standing?.digest ?? undefined, zones: standing?.zones },
      ...{ lagMs: peer.isConnected ? peer.lagMs : undefined, skewMs: peer.skewMs },
    };
  });
  return [self, ...others];
}
