/** Figures of the cluster: who is there, what waits for whom, and what the streams and packets cost. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { ClusterParts } from "./cluster-view.ts";
import { registerCounters } from "./counters.ts";

const STATES = ["alive", "suspect", "dead", "left"] as const;

export function registerCluster(
  { membership, peers, replicator, port, activator }: ClusterParts,
  registry: Registry,
): void {
  const registers = [registry];
  new Gauge({
    ...{ name: "svc_cluster_members", help: "Members by state, this node among them.", registers },
    labelNames: ["state"],
    collect() {
      this.reset();
      const members = membership.members();
      for (const state of STATES) this.set({ state }, members.filter((member) => member.state === state).length);
    },
  });
  new Gauge({
    ...{ name: "svc_cluster_zones_pending", help: "Zones that wait for the acknowledgement of all nodes.", registers },
    collect() {
      this.set(activator.waiting());
    },
  });
  registerPeers(replicator, registers);
  registerGauges({ membership, replicator }, registers);
  registerCounters(registry, [...membershipTotals(membership, port), ...replicationTotals(replicator, peers)]);
  new Counter({
    ...{ name: "svc_replication_stream_failures_total", help: "Streams that could not be opened, by why.", registers },
    labelNames: ["reason"],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(peers.figures().failures)) this.inc({ reason }, count);
    },
  });
  new Counter({
    ...{
      name: "svc_cluster_messages_dropped_total",
      help: "Packets and frames that were not taken, by why.",
      registers,
    },
    labelNames: ["reason"],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(membership.figures().dropped)) this.inc({ reason }, count);
    },
  });
}

/** By peer; those that are no longer alive are no longer shown. */
function registerPeers(replicator: ClusterParts["replicator"], registers: Registry[]): void {
  const ofPeers = (name: string, help: string, read: (peer: ReturnType<typeof replicator.peers>[number]) => number) =>
    new Gauge({
      ...{ name, help, registers, labelNames: ["peer"] },
      collect() {
        this.reset();
        for (const peer of replicator.peers()) this.set({ peer: peer.nodeId }, read(peer));
      },
    });
  ofPeers("svc_replication_connected", "1 while there is a stream to the peer.", ({ isConnected }) =>
    Number(isConnected),
  );
  ofPeers("svc_replication_queue", "Changes that the peer has not acknowledged.", ({ queued }) => queued);
  ofPeers("svc_replication_lag_seconds", "Age of the oldest of them.", ({ lagMs }) => lagMs / 1_000);
  ofPeers("svc_replication_skew_seconds", "The peer's clock less this node's.", ({ skewMs = 0 }) => skewMs / 1_000);
  ofPeers("svc_replication_behind", "1 while the peer has to be compared as a whole.", ({ isBehind }) =>
    Number(isBehind),
  );
}

function registerGauges(
  { membership, replicator }: Pick<ClusterParts, "membership" | "replicator">,
  registers: Registry[],
) {
  const gauges: readonly (readonly [string, string, () => number])[] = [
    ["svc_cluster_health_score", "Local health by Lifeguard, 0 (good) to 7.", () => membership.figures().health],
    [
      "svc_cluster_broadcasts_queued",
      "Broadcasts that are still gossiped.",
      () => membership.figures().queuedBroadcasts,
    ],
    [
      "svc_replication_initial_sync_done",
      "1 once this node holds what the cluster holds.",
      () => Number(replicator.isComplete()),
    ],
    ["svc_replication_queue_depth", "What readiness looks at: see docs/cluster.md.", () => replicator.queueDepth()],
    [
      "svc_replication_exchange_age_seconds",
      "Since the last complete comparison with a peer.",
      () => replicator.freshness().sinceExchangeMs / 1_000,
    ],
    [
      "svc_replication_apply_seconds",
      "From the arrival of changes until they are durable.",
      () => replicator.freshness().applyMs / 1_000,
    ],
  ];
  for (const [name, help, read] of gauges) {
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(read());
      },
    });
  }
}

type Totals = readonly (readonly [name: string, help: string, read: () => number])[];

function membershipTotals(membership: ClusterParts["membership"], port: ClusterParts["port"]): Totals {
  const of = (name: "probes" | "failedProbes" | "suspicions" | "refutations" | "pushPulls" | "failedPushPulls") => () =>
    membership.figures()[name];
  return [
    ["svc_cluster_probes_total", "Probes of members.", of("probes")],
    ["svc_cluster_probes_failed_total", "Probes without an answer.", of("failedProbes")],
    ["svc_cluster_suspicions_total", "Members that were suspected.", of("suspicions")],
    ["svc_cluster_refutations_total", "Suspicions of this node that it refuted.", of("refutations")],
    ["svc_cluster_push_pulls_total", "Exchanges of the list of members.", of("pushPulls")],
    ["svc_cluster_push_pulls_failed_total", "Those that failed.", of("failedPushPulls")],
    ["svc_cluster_packets_received_total", "Packets received.", () => port.figures().packetsIn],
    ["svc_cluster_packets_sent_total", "Packets sent.", () => port.figures().packetsOut],
    ["svc_cluster_connections_refused_total", "Connections refused for too many.", () => port.figures().refused],
    ["svc_cluster_connections_foreign_total", "Connections that spoke nothing known.", () => port.figures().foreign],
  ];
}

function replicationTotals({ counters }: ClusterParts["replicator"], { figures }: ClusterParts["peers"]): Totals {
  return [
    ["svc_replication_digest_comparisons_total", "Comparisons of root digests.", () => counters().rootComparisons],
    ["svc_replication_leaf_comparisons_total", "Comparisons of versions.", () => counters().leafComparisons],
    ["svc_replication_items_sent_total", "Items sent to peers.", () => counters().itemsSent],
    ["svc_replication_items_received_total", "Items received.", () => counters().itemsReceived],
    [
      "svc_replication_items_refused_total",
      "Items of peers that this node refused.",
      () => counters().itemsRefusedHere,
    ],
    ["svc_replication_items_refused_by_peers_total", "Items that peers refused.", () => counters().itemsRefusedThere],
    ["svc_replication_behind_total", "Queues that were dropped for their length.", () => counters().behindEvents],
    ["svc_replication_exchanges_total", "Complete comparisons.", () => counters().exchanges],
    ["svc_replication_exchanges_failed_total", "Comparisons that were not finished.", () => counters().failedExchanges],
    ["svc_replication_first_sync_items_total", "Items that a first sync brought.", () => counters().firstSyncItems],
    [
      "svc_replication_audit_entries_total",
      "Entries of the audit log received.",
      () => counters().auditEntriesReceived,
    ],
    [
      "svc_replication_messages_malformed_total",
      "Messages that broke the protocol.",
      () => counters().malformedMessages,
    ],
    ["svc_replication_streams_opened_total", "Streams opened, either way.", () => figures().opened],
    ["svc_replication_streams_reset_total", "Streams that broke or went silent.", () => figures().resets],
    ["svc_replication_bytes_received_total", "Bytes received over streams.", () => figures().bytesIn],
    ["svc_replication_bytes_sent_total", "Bytes sent over streams.", () => figures().bytesOut],
  ];
}
