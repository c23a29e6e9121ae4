/**
 * Which packets are worth the attempt to open them. An attempt costs more than the rest of a packet's way, and who has no key can
 * send a hundred thousand a second: of those that do not open there may be so many within a second, from strangers all together
 * and from each member's address. Who joins does so over TCP, and is no stranger from then on.
 */
import type { Endpoint } from "./messages.ts";
import { FAILED_PACKETS_OF_MEMBER_MAX, FAILED_PACKETS_OF_STRANGERS_MAX, FAILED_PACKETS_WITHIN_MS } from "./settings.ts";

export type PacketGate = {
  readonly isWorthOpening: (from: Endpoint) => boolean;
  /** It did not open. */
  readonly failed: (from: Endpoint) => void;
};

export type PacketGateOptions = {
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Asked at most once in the time that failures are counted for. */
  readonly members: () => Iterable<{ readonly endpoint: Endpoint }>;
};

export function createPacketGate({ now, members }: PacketGateOptions): PacketGate {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let ofStrangers = 0;
  /** Failures by the address of a member; undefined: nobody has needed it within this time. */
  let ofMembers: Map<string, number> | undefined;

  const renew = () => {
    if (now() - sinceMs < FAILED_PACKETS_WITHIN_MS) return;
    sinceMs = now();
    ofStrangers = 0;
    ofMembers = undefined;
  };
  const countsOfMembers = () => {
    ofMembers ??= new Map(Array.from(members(), ({ endpoint }) => [addressKey(endpoint), 0]));
    return ofMembers;
  };
  return {
    isWorthOpening: (from) => {
      renew();
      // As long as nothing has failed nobody has to be told from anybody.
      if (ofMembers === undefined) return true;
      const failures = ofMembers.get(addressKey(from));
      if (failures === undefined) return ofStrangers < FAILED_PACKETS_OF_STRANGERS_MAX;
      return failures < FAILED_PACKETS_OF_MEMBER_MAX;
    },
    failed: (from) => {
      renew();
      const counts = countsOfMembers();
      const key = addressKey(from);
      const failures = counts.get(key);
      if (failures === undefined) ofStrangers += 1;
      else counts.set(key, failures + 1);
    },
  };
}

function addressKey({ address }: Endpoint): string {
  return Buffer.from(address.buffer, address.byteOffset, address.length).toString("latin1");
}
