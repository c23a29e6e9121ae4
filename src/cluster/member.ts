/** What a user of the membership protocol sees of it. */
import type { Endpoint } from "./messages.ts";

export type Member = {
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly meta: Uint8Array;
  readonly state: "alive" | "suspect" | "dead" | "left";
  readonly incarnation: number;
  /** Of the timers' clock: when it came into that state. */
  readonly sinceMs: number;
};

/** Who uses the protocol. Nothing of it may throw or wait. */
export type Delegate = {
  /** A member that was unknown, dead or had left is alive; never called for oneself. */
  readonly onJoin: (member: Member) => void;
  /** It is dead or has left. */
  readonly onLeave: (member: Member) => void;
  readonly onSuspect: (member: Member) => void;
  /** It is alive again after a suspicion, or its address or `meta` is another. */
  readonly onUpdate: (member: Member) => void;
  readonly onUserMessage: (payload: Uint8Array) => void;
  /** A few bytes that travel with each push/pull. */
  readonly localState: (isJoin: boolean) => Uint8Array;
  readonly mergeState: (state: Uint8Array, isJoin: boolean, from: Endpoint) => void;
  /** Why a member may not be one (its name belongs to another instance, it was removed), undefined where it may. */
  readonly refusal: (candidate: Pick<Member, "name" | "endpoint" | "meta">) => string | undefined;
};

export type MembershipFigures = {
  /** Lifeguard's local health, 0 (good) to 7. */
  readonly health: number;
  readonly probes: number;
  readonly failedProbes: number;
  readonly suspicions: number;
  readonly refutations: number;
  readonly packetsIn: number;
  readonly packetsOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** By why: "sealed" (a wrong key), "malformed", "oversized", "label". */
  readonly dropped: Readonly<Record<string, number>>;
  readonly pushPulls: number;
  readonly failedPushPulls: number;
  readonly queuedBroadcasts: number;
};

export type JoinOutcome = {
  /** Addresses that answered. */
  readonly joined: number;
  readonly failures: readonly { readonly address: string; readonly detail: string }[];
};

export type Membership = AsyncDisposable & {
  readonly self: () => Member;
  /** All that are known, oneself first; the dead and those that left for as long as they are remembered. */
  readonly members: () => readonly Member[];
  /** Exchanges the lists of members with each address ("host:port"); they are tried again later on, for ever, as long as nobody of them is a member. */
  readonly join: (addresses: readonly string[]) => Promise<JoinOutcome>;
  /** Tells the others, and waits until they have heard or the time has passed. */
  readonly leave: (timeoutMs: number) => Promise<void>;
  readonly setMeta: (meta: Uint8Array) => void;
  /** Gossiped to all, unordered and without a promise. */
  readonly broadcast: (payload: Uint8Array) => void;
  /** Probes a member at once, because a stream to it broke. */
  readonly probeNow: (name: string) => void;
  /** Forgets a member that is dead or has left, and dials it no more. */
  readonly forget: (name: string) => void;
  readonly figures: () => MembershipFigures;
};
