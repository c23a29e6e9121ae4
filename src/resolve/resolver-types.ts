/** What the resolver is asked and what it says, for the thread that composes it. */

/** Where a name is routed to, by the same rules by which answers route it. */
export type Routed =
  /** To a route: its number, ROUTE.DELEGATED among them. */
  | { readonly kind: "route"; readonly number: number }
  /** An override or a zone of ours answers for it. */
  | { readonly kind: "own" }
  | { readonly kind: "blocked" }
  /** Nobody: the default forwarder is disabled. */
  | { readonly kind: "none" };

/** `name` is an uncompressed wire name, in any case. */
export type RouteName = (name: Uint8Array, type: number) => Routed;

/** Name servers of a zone cut of ours: names, and those addresses that our zone has for them. */
export type Delegation = {
  /** Lower-case wire name of the cut. */
  readonly cut: Uint8Array;
  readonly servers: readonly { readonly name: Uint8Array; readonly addresses: readonly Uint8Array[] }[];
};
/** The zone cut of ours that the name lies at or below; undefined: there is none any more. */
export type FindDelegation = (name: Uint8Array) => Delegation | undefined;

/** A question that the cache cannot answer. */
export type Asked = {
  /** Lower-case wire name. */
  readonly name: Uint8Array;
  readonly type: number;
  /** Bits of QUESTION_FLAG. */
  readonly flags: number;
  readonly route: number;
};

export type Resolved =
  /** The cache has an answer, perhaps one that nobody but those who waited may use, or a failure to be told. */
  | { readonly kind: "stored" }
  /** Nothing was stored. `extendedError` is of EDE. */
  | { readonly kind: "failed"; readonly extendedError: number };

export type Resolver = {
  /**
   * Resolves and puts the answer into the cache; `onDone` is called once, never before this returns. Who asks for what is being
   * resolved waits with the others.
   */
  readonly resolve: (asked: Asked, onDone: (resolved: Resolved) => void) => void;
  /** Fetches anew what the cache has at this word, if it is still there; nobody waits for it. */
  readonly refresh: (entry: number) => void;
};
