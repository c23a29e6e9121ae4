/** Bounds on connections that others open: in all, and of those that have not said who they are, in all and by address. */
import { ipFromText, ipToText, unmappedIp } from "../base/ip.ts";

export type GateLimits = {
  /** Accepted connections, open streams among them. */
  readonly connections: number;
  /** Unfinished ones of addresses that are no member's. */
  readonly strangers: number;
  readonly strangersOfAddress: number;
  /** Unfinished ones of members' addresses: a flood from elsewhere takes no place from them. */
  readonly members: number;
};

export const GATE_LIMITS: GateLimits = { connections: 1024, strangers: 64, strangersOfAddress: 16, members: 256 };

/** What entered; either is called once at most, `leave` in the end. */
export type Pass = {
  /** It is a stream now. */
  readonly settle: () => void;
  readonly leave: () => void;
};

export type Gate = {
  /** Undefined where there is no room. */
  readonly enter: (address: string) => Pass | undefined;
};

const IPV6_NETWORK_BYTES = 8;

/** Whom connections are counted for: an IPv4 address, the /64 of an IPv6 address. */
export function gateKey(address: string): string {
  // A link's zone id says nothing of who it is.
  const parsed = ipFromText(address.split("%", 1)[0] ?? "");
  if (parsed === undefined) return address;
  const bytes = unmappedIp(parsed);
  if (bytes.length === 4) return ipToText(bytes);
  return ipToText(new Uint8Array(bytes.length).fill(0).map((_, at) => (at < IPV6_NETWORK_BYTES ? bytes[at]! : 0)));
}

/** `isMember` is asked with keys as `gateKey` has them. */
export function createGate(limits: GateLimits, isMember: (key: string) => boolean): Gate {
  let connections = 0;
  let strangers = 0;
  let members = 0;
  const ofAddress = new Map<string, number>();
  const count = (key: string, change: number) => {
    strangers += change;
    const left = (ofAddress.get(key) ?? 0) + change;
    if (left > 0) ofAddress.set(key, left);
    else ofAddress.delete(key);
  };
  return {
    enter: (address) => {
      const key = gateKey(address);
      const isKnown = isMember(key);
      const hasRoom = isKnown
        ? members < limits.members
        : strangers < limits.strangers && (ofAddress.get(key) ?? 0) < limits.strangersOfAddress;
      if (!hasRoom || connections >= limits.connections) return undefined;
      let isPending = true;
      let isInside = true;
      const change = (by: number) => {
        if (isKnown) members += by;
        else count(key, by);
      };
      connections++;
      change(1);
      const settle = () => {
        if (isPending) change(-1);
        isPending = false;
      };
      return {
        settle,
        leave: () => {
          settle();
          if (isInside) connections--;
          isInside = false;
        },
      };
    },
  };
}
