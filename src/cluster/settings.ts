/** What the membership protocol may be tuned by, and its limits; the relations between them are asserted. */
import { CONNECTIONS_MAX, MEMBER_CONNECTIONS_MAX } from "./wire-limits.ts";

export type MembershipSettings = {
  /** One member's turn to probe the next two: its successor, and another by chance. */
  readonly probeIntervalMs: number;
  /** How long a probe waits before it asks others and tries TCP. */
  readonly probeTimeoutMs: number;
  /**
   * How long nothing at all may come of a member that is probed before it is suspected. Beyond an interval it spares those that
   * stall (a long collection, a slow disk) the suspicion; what it costs is taken off the time that they are suspected for.
   */
  readonly silenceMs: number;
  /** How many others are asked. */
  readonly indirectProbes: number;
  readonly suspicionMultiplier: number;
  /** The longest suspicion, in shortest ones. */
  readonly suspicionMaxMultiplier: number;
  /** Twice memberlist's: with four times nine members one in a hundred changes passes somebody by until the next push/pull. */
  readonly retransmitMultiplier: number;
  readonly gossipIntervalMs: number;
  readonly gossipNodes: number;
  /** How long after its death a member still hears gossip. */
  readonly gossipToDeadMs: number;
  readonly pushPullIntervalMs: number;
  /** Of one exchange over TCP that we began. */
  readonly exchangeTimeoutMs: number;
  /** Between two attempts to reach join addresses and dead members; doubles at random from the least to the greatest. */
  readonly rejoinMinMs: number;
  readonly rejoinMaxMs: number;
};

export const DEFAULT_MEMBERSHIP_SETTINGS: MembershipSettings = {
  probeIntervalMs: 500,
  probeTimeoutMs: 200,
  silenceMs: 1_300,
  indirectProbes: 3,
  suspicionMultiplier: 3,
  suspicionMaxMultiplier: 6,
  retransmitMultiplier: 8,
  gossipIntervalMs: 100,
  gossipNodes: 3,
  gossipToDeadMs: 30_000,
  pushPullIntervalMs: 30_000,
  exchangeTimeoutMs: 5_000,
  rejoinMinMs: 500,
  rejoinMaxMs: 15_000,
};

/** Throws RangeError where settings contradict each other. */
export function checkMembershipSettings(settings: MembershipSettings): void {
  const { probeIntervalMs, probeTimeoutMs, silenceMs, suspicionMultiplier } = settings;
  for (const [name, value] of Object.entries(settings)) {
    if (!Number.isFinite(value) || value < 1) throw new RangeError(`${name} is ${value}; it is at least 1`);
  }
  if (probeTimeoutMs >= probeIntervalMs) throw new RangeError("probeTimeoutMs is not below probeIntervalMs");
  if (silenceMs < probeIntervalMs) throw new RangeError("silenceMs is below probeIntervalMs");
  // Else a suspicion would be over before the member can refute it.
  if (suspicionMultiplier * probeIntervalMs < silenceMs) throw new RangeError("silenceMs is beyond a whole suspicion");
  if (settings.rejoinMaxMs < settings.rejoinMinMs) throw new RangeError("rejoinMaxMs is below rejoinMinMs");
}

/** Members that are remembered, oneself among them: the alive, the dead and those that left. */
export const MEMBERS_MAX = 1_000;
/** Of Incarnation: 32 bits in every implementation. */
export const INCARNATION_MAX = 0xffff_ffff;
/** Of a payload for `broadcast`: it fits into one packet with room for an acknowledgement. */
export const USER_PAYLOAD_BYTES_MAX = 1_024;
/** Payloads that wait to be gossiped; beyond it the one that was sent most often goes. */
export const USER_BROADCASTS_MAX = 1_024;
/** Messages that are offered to one packet; many more than fit. */
export const PACKET_MESSAGES_MAX = 64;
/** Acknowledgements that are waited for: our probes, and what others asked us to probe. */
export const PROBES_MAX = 64;
export const RELAYS_MAX = 256;
/** Exchanges over TCP at once: those that others began, as many as a port has, for they cost nothing before they have a key. */
export const EXCHANGES_IN_MAX = CONNECTIONS_MAX + MEMBER_CONNECTIONS_MAX;
/** And our own: push/pulls, and pings beside them. */
export const PUSH_PULLS_OUT_MAX = 16;
export const PINGS_OUT_MAX = 16;
/** Of the user state in a push/pull. */
export const USER_STATE_BYTES_MAX = 65_536;
export const JOIN_ADDRESSES_MAX = 64;
/** Of one host name. */
export const RESOLVED_ADDRESSES_MAX = 8;
/** Addresses that one join dials at once. */
export const JOINS_AT_ONCE = 8;
/** Dead members and join addresses that are dialled at once. */
export const REJOINS_AT_ONCE = 3;
/** Lines that are logged in so long, each of them once: members say what they like, and may not fill the log with it. */
export const NOTED_MAX = 256;
export const NOTED_MS = 3_600_000;
/** What was mended and is amiss again is said again, but not so soon. */
export const NOTED_AGAIN_MS = 60_000;
/** Packets that did not open, within so long: from strangers all together, and from the address of one member. */
export const FAILED_PACKETS_WITHIN_MS = 1_000;
export const FAILED_PACKETS_OF_STRANGERS_MAX = 2_000;
export const FAILED_PACKETS_OF_MEMBER_MAX = 2_000;
