/** What the API shows of the cluster, and does to it: the node behind it knows the others, the store knows what they wrote. */

export type NodeState = "alive" | "suspect" | "dead" | "left";

export type ClusterNode = {
  readonly id: string;
  readonly state: NodeState;
  readonly isSelf: boolean;
  /** "" where it has none. */
  readonly region: string;
  /** host:port that peers dial; "" where it has no cluster. */
  readonly address: string;
  readonly version: string;
  /** RFC 3339: since when it is in that state, as this node saw it. */
  readonly since: string | undefined;
  /** Changes of this node that it has not acknowledged. Undefined of this node itself and of those that are not connected. */
  readonly queuedChanges: number | undefined;
  /** Age of the oldest of them, milliseconds. */
  readonly lagMs: number | undefined;
  /** Its clock less this node's, milliseconds. */
  readonly skewMs: number | undefined;
  /** RFC 3339: when both last had the same digest. */
  readonly lastAgreement: string | undefined;
};

export type JoinResult = {
  readonly joined: number;
  readonly failures: readonly { readonly address: string; readonly detail: string }[];
};

/** A zone as one node has it. */
export type ZoneStanding = { readonly serial: number; readonly digest: string; readonly records: number };
export type NodeStanding = {
  readonly id: string;
  /** What could not be asked is undefined. */
  readonly digest: string | undefined;
  readonly zones: Readonly<Record<string, ZoneStanding>> | undefined;
  readonly lagMs: number | undefined;
  readonly skewMs: number | undefined;
};

export type ClusterView = {
  /** Without replication.encrypt_key there is no cluster. */
  readonly isEnabled: boolean;
  readonly nodes: () => readonly ClusterNode[];
  readonly peersAlive: () => number;
  /** Dials them now, and again until one of them is a member. */
  readonly join: (addresses: readonly string[]) => Promise<JoinResult>;
  /** Dials a node that was removed no more. */
  readonly forget: (id: string) => void;
  /** Sends a zone to all peers again. */
  readonly announceZone: (zone: string) => void;
  /** What every node that answers has of the zones, this one among them; asks the peers, and waits a few seconds at most. */
  readonly standings: (zones: readonly string[]) => Promise<readonly NodeStanding[]>;
  /** Whether that node holds what this one holds, but for changes that are under way. Rejects where it does not answer. */
  readonly holdsTheSame: (id: string) => Promise<boolean>;
};
