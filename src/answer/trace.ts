/**
 * What an answerer tells of its way to an answer, to whoever explains it. It is told by the code that answers, and only where
 * a trace was given: a listener's answerer has none. Names are in lower-case wire form; candidates are told by their place
 * in the order of the RRset's RRs, from 0 on.
 */

export type TraceEvent =
  /** A name of the chain begins; `hops` CNAMEs led to it. */
  | { readonly kind: "name"; readonly name: Uint8Array; readonly hops: number }
  /**
   * Who answers for it. `zone` is the name of our zone, the listed name, that of the route of a forwarder or stub zone, or the
   * zone cut of ours, whose zone was told of before. "not-offered": others would, but not for this client.
   */
  | {
      readonly kind: "route";
      readonly stage: "override" | "own" | "blocklist" | "route" | "default" | "delegation" | "not-offered" | "none";
      readonly zone: Uint8Array | undefined;
    }
  /** The cache has an answer for a name that is routed elsewhere: what an upstream has said so long ago. */
  | { readonly kind: "cache"; readonly isStale: boolean; readonly ageSeconds: number }
  /** It has none, and whoever sends queries would be asked for one. */
  | { readonly kind: "lack"; readonly type: number }
  /** What the zone has for it; `owner` is the name that has the records, such as the wildcard or the cut. */
  | { readonly kind: "found"; readonly found: "node" | "wildcard" | "cut" | "nothing"; readonly owner: Uint8Array }
  /**
   * Records of the name `owner`, in the answer section or beside it. What comes before the next of these is about them. The
   * owner is the name that was looked for, where a wildcard stands for it too.
   */
  | {
      readonly kind: "rrset";
      readonly section: "answer" | "additional";
      readonly owner: Uint8Array;
      readonly type: number;
      readonly ttl: number;
      readonly isSelected: boolean;
      /** The rdata of those that are selected among, in the order of the RRs, names written out. */
      readonly rdata: readonly Uint8Array[];
    }
  /** The selection from the RRset told of before begins: who of the candidates is healthy, and who is left. */
  | {
      readonly kind: "select";
      readonly method: number;
      readonly hasAffinity: boolean;
      readonly isSingle: boolean;
      /** HEALTH of health.ts for each candidate; slot 0 is not probed. */
      readonly candidates: readonly TraceCandidate[];
      readonly failOpen: boolean;
      readonly left: readonly number[];
    }
  /** The region that the client is taken for, and why; 0 for none. */
  | { readonly kind: "client"; readonly region: number; readonly source: "mapping" | "node" | "none" }
  /** A step narrowed the candidates down, or left them as they were where none of them fits (`left` is empty then). */
  | {
      readonly kind: "step";
      readonly step: "client-region" | "preferred-region" | "any-region" | "first" | "nearest" | "kept" | "unmeasured";
      readonly region: number;
      readonly left: readonly number[];
    }
  /** Chance decides: the share of each candidate that is left, in the order of `left`. */
  | { readonly kind: "chance"; readonly left: readonly number[]; readonly shares: readonly number[] }
  /** The client's own draw of this period decides, until `untilSeconds` (since 1970). */
  | {
      readonly kind: "affinity";
      readonly left: readonly number[];
      readonly period: number;
      readonly periodSeconds: number;
      readonly untilSeconds: number;
    }
  /** The candidates that the answer has, in its order. */
  | { readonly kind: "chosen"; readonly chosen: readonly number[] }
  /** The chain goes on at this name. */
  | { readonly kind: "follow"; readonly by: "cname" | "alias"; readonly target: Uint8Array }
  /** The chain ends with what it has so far: it came to where it was before, or it is too long. */
  | { readonly kind: "stopped"; readonly why: "loop" | "length" }
  /** A zone changed meanwhile: all that was told since the last "again" or the beginning does not count. */
  | { readonly kind: "again" }
  | { readonly kind: "result"; readonly rcode: number; readonly isTruncated: boolean; readonly answers: number };

export type TraceCandidate = {
  readonly health: number;
  readonly slot: number;
  readonly latencyUs: number;
  readonly region: number;
  readonly weight: number;
};

export type Trace = (event: TraceEvent) => void;
