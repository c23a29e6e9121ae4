/** What referrals taught, and the addresses of name servers: kept by their TTL, bounded, the least recently used first to go. */

import { CLASS, RRTYPE } from "../dns/codes.ts";
import type { Message } from "../dns/message.ts";
import { isSubdomain, namesEqual } from "../dns/name.ts";
import type { Server } from "./exchange.ts";
import { NAME_SERVER_ADDRESSES_MAX, NAME_SERVERS_MAX } from "./resolver-limits.ts";
import { nameText } from "./resolver-names.ts";

export type Kept<Value> = {
  readonly get: (key: string) => Value | undefined;
  readonly put: (key: string, value: Value, seconds: number) => void;
  readonly remove: (key: string) => void;
  /** Removes all for which it is true. */
  readonly removeWhere: (isMeant: (value: Value) => boolean) => void;
  readonly size: () => number;
};

/** Values by text, at most `max`, each until its time is over. */
export function createKept<Value>(max: number, nowSeconds: () => number): Kept<Value> {
  const kept = new Map<string, { readonly value: Value; readonly untilSeconds: number }>();
  return {
    get: (key) => {
      const found = kept.get(key);
      if (found === undefined) return undefined;
      kept.delete(key);
      if (found.untilSeconds <= nowSeconds()) return undefined;
      kept.set(key, found);
      return found.value;
    },
    put: (key, value, seconds) => {
      kept.delete(key);
      const [oldest] = kept.keys();
      if (kept.size >= max && oldest !== undefined) kept.delete(oldest);
      kept.set(key, { value, untilSeconds: nowSeconds() + seconds });
    },
    remove: (key) => {
      kept.delete(key);
    },
    removeWhere: (isMeant) => {
      for (const [key, { value }] of kept) if (isMeant(value)) kept.delete(key);
    },
    size: () => kept.size,
  };
}

/** A zone cut on the way to a name, with servers that can be asked. */
export type Cut = { readonly cut: Uint8Array; readonly servers: readonly Server[] };

/** A name server as a referral or a zone cut of ours has it. */
export type NameServer = { readonly name: Uint8Array; readonly addresses: readonly Uint8Array[] };

/** The key of what is learned below a route. */
export function cutKey(route: number, cut: Uint8Array, from = 0): string {
  return `${route} ${nameText(cut, from)}`;
}

/** The longest cut known at or above the name and strictly below `domain`. */
export function nearestCut(
  learned: Kept<Cut>,
  route: number,
  domain: Uint8Array,
  name: Uint8Array,
  type: number,
): Cut | undefined {
  // DS stands above the cut that it is about (RFC 4035 section 3.1.4.1).
  let from = type === RRTYPE.DS && name[0] !== 0 ? name[0]! + 1 : 0;
  while (name.length - from > domain.length) {
    const found = learned.get(cutKey(route, name, from));
    if (found !== undefined) return found;
    from += name[from]! + 1;
  }
  return undefined;
}

/** The servers of a referral, with those addresses that the referring zone `domain` may tell: of names in it. */
export function withGlue(servers: readonly Uint8Array[], message: Message, domain: Uint8Array): readonly NameServer[] {
  return servers.slice(0, NAME_SERVERS_MAX).map((name) => ({
    name,
    addresses: isSubdomain(name, domain)
      ? message.additionals
          .filter(
            (record) =>
              (record.type === RRTYPE.A || record.type === RRTYPE.AAAA) &&
              record.class === CLASS.IN &&
              namesEqual(record.name, name),
          )
          .map(({ rdata }) => rdata)
      : [],
  }));
}

/** What can be asked of the addresses. */
export function serversOf(addresses: readonly Uint8Array[], port: number): readonly Server[] {
  return addresses
    .slice(0, NAME_SERVER_ADDRESSES_MAX)
    .map((address) => ({ transport: "dns", address, port, tlsName: undefined }));
}
