/** What the replication counts, since it was created. */
export type Counters = {
  /** Comparisons of root digests, and of versions in leaves. */
  rootComparisons: number;
  leafComparisons: number;
  itemsSent: number;
  itemsReceived: number;
  /** Refused by this node, and by peers. */
  itemsRefusedHere: number;
  itemsRefusedThere: number;
  behindEvents: number;
  exchanges: number;
  failedExchanges: number;
  firstSyncItems: number;
  auditEntriesReceived: number;
  malformedMessages: number;
};

export function zeroCounters(): Counters {
  return {
    rootComparisons: 0,
    leafComparisons: 0,
    itemsSent: 0,
    itemsReceived: 0,
    itemsRefusedHere: 0,
    itemsRefusedThere: 0,
    behindEvents: 0,
    exchanges: 0,
    failedExchanges: 0,
    firstSyncItems: 0,
    auditEntriesReceived: 0,
    malformedMessages: 0,
  };
}

export type PeerFigures = {
  readonly nodeId: string;
  readonly isConnected: boolean;
  /** Refs that it has not acknowledged, with those that its queue lost and that no comparison has brought yet. */
  readonly queued: number;
  /** Age of the oldest of them, milliseconds; 0 without any. */
  readonly lagMs: number;
  /** Its clock less ours as its connection tells, milliseconds; undefined without one. */
  readonly skewMs: number | undefined;
  /** Milliseconds since 1970; 0: never since the start of this node. */
  readonly lastAgreementMs: number;
  readonly isBehind: boolean;
};
