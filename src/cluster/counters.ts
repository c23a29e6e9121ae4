/** What the parts of the membership protocol count together. */
import type { MembershipFigures } from "./member.ts";

export type Counters = {
  -readonly [Name in keyof Omit<MembershipFigures, "health" | "queuedBroadcasts" | "dropped">]: number;
} & {
  /** By why; the reasons are ours, never a peer's text. */
  readonly dropped: Record<DropReason, number>;
};

export const DROP_REASONS = [
  "sealed",
  "malformed",
  "oversized",
  "label",
  /** For another member than this one. */
  "misaddressed",
  /** About a member that cannot be one: its incarnation, name, address, versions. */
  "unfit",
  /** Refused by whoever uses the protocol, or its name is taken. */
  "refused",
  /** More at once than there is room for. */
  "full",
  /** Not tried: too many of the last second did not open. */
  "flooded",
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export function createCounters(): Counters {
  return {
    probes: 0,
    failedProbes: 0,
    suspicions: 0,
    refutations: 0,
    packetsIn: 0,
    packetsOut: 0,
    bytesIn: 0,
    bytesOut: 0,
    pushPulls: 0,
    failedPushPulls: 0,
    dropped: {
      ...{ sealed: 0, malformed: 0, oversized: 0, label: 0, misaddressed: 0, unfit: 0, refused: 0, full: 0 },
      flooded: 0,
    },
  };
}
