/** Token buckets a class and a key: a minute's worth may come at once, and refills evenly. The table is bounded. */
import { ipFromText, ipToText } from "../base/ip.ts";
import { RATE_TABLE_MAX } from "./limits.ts";

export const RATE_CLASSES = ["auth", "upload", "write", "read"] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

type Bucket = { tokens: number; filledAtMs: number };

export type RateLimiter = {
  /** Takes one token. 0: there was one; otherwise the whole seconds until there is one again. The key has `factor` (1) limits. */
  readonly take: (rateClass: RateClass, key: string, factor?: number) => number;
};

/** `limitOf` gives the requests a minute, asked anew at every call; `nowMs` must not go back. */
export function createRateLimiter(limitOf: (rateClass: RateClass) => number, nowMs: () => number): RateLimiter {
  const buckets = new Map<string, Bucket>();
  return {
    take(rateClass, key, factor = 1) {
      const limit = limitOf(rateClass) * factor;
      const id = `${rateClass} ${key}`;
      const now = nowMs();
      const known = buckets.get(id);
      const tokens =
        known === undefined ? limit : Math.min(limit, known.tokens + ((now - known.filledAtMs) * limit) / 60_000);
      // Deleting and setting moves it to the end: the first of the map is the one unused for longest.
      buckets.delete(id);
      buckets.set(id, { tokens: tokens >= 1 ? tokens - 1 : tokens, filledAtMs: now });
      if (buckets.size > RATE_TABLE_MAX) {
        const oldest = buckets.keys().next().value;
        if (oldest !== undefined) buckets.delete(oldest);
      }
      return tokens >= 1 ? 0 : Math.max(1, Math.ceil(((1 - tokens) * 60) / limit));
    },
  };
}

/** What an address is counted under: itself, or its /64 for IPv6, where one client has as many as it likes. */
export function rateKey(address: string): string {
  const bytes = ipFromText(address);
  if (bytes === undefined || bytes.length === 4) return address;
  return ipToText(bytes.map((byte, index) => (index < 8 ? byte : 0)));
}
