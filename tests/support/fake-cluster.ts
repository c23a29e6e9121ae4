/** The other nodes as tests tell of them; what is asked of the node layer is written down. */
import type { ClusterNode, ClusterView, JoinResult, NodeStanding } from "../../src/commands/cluster-view.ts";
import type { NodeListeners } from "../../src/model/node.ts";

export type FakeCluster = ClusterView & {
  isEnabled: boolean;
  /** What `nodes` gives, this node among them. */
  members: ClusterNode[];
  /** What dialling comes to. */
  joining: JoinResult;
  told: NodeStanding[];
  /** Nodes that differ from this one in nothing but what is under way. */
  readonly settled: Set<string>;
  readonly joined: (readonly string[])[];
  readonly forgotten: string[];
  readonly announced: string[];
};

/** A member that is alive, but for what is given. */
export function memberOf(id: string, given: Partial<ClusterNode> = {}): ClusterNode {
  return {
    ...{ id, state: "alive", isSelf: false, region: "eu-west", address: `${id}.example:7946`, version: "1.2.3" },
    ...{ since: "2026-01-31T12:00:00.000Z", queuedChanges: 0, lagMs: 0, skewMs: 1 },
    lastAgreement: "2026-01-31T12:00:00.000Z",
    ...given,
  };
}

/** A cluster of this node alone, until a test says otherwise. */
export function createFakeCluster(selfId = "test-node"): FakeCluster {
  const fake: FakeCluster = {
    isEnabled: true,
    members: [
      memberOf(selfId, {
        ...{ isSelf: true, queuedChanges: undefined, lagMs: undefined, skewMs: undefined, lastAgreement: undefined },
      }),
    ],
    joining: { joined: 1, failures: [] },
    told: [],
    settled: new Set(),
    joined: [],
    forgotten: [],
    announced: [],
    nodes: () => fake.members,
    peersAlive: () => fake.members.filter(({ isSelf, state }) => !isSelf && state === "alive").length,
    join: async (addresses) => {
      fake.joined.push(addresses);
      return fake.joining;
    },
    forget: (id) => {
      fake.forgotten.push(id);
      fake.members = fake.members.filter((member) => member.id !== id);
    },
    announceZone: (zone) => {
      fake.announced.push(zone);
    },
    standings: async () => fake.told,
    holdsTheSame: async (id) => fake.settled.has(id),
  };
  return fake;
}

export const TEST_LISTENERS: NodeListeners = {
  dns: ["127.0.0.1:5353"],
  api: "127.0.0.1:8443",
  management: "127.0.0.1:8080",
  replication: "127.0.0.1:7946",
};
