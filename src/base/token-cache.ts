/**
 * Access tokens, each fetched once for all who wait for it and kept until shortly before it expires. A failure is kept
 * too, for longer each time, so that thousands who need the same token do not storm the service that hands it out.
 */

export type Token = {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
};

export type TokenCache = {
  /** Rejects with what `fetch` rejected with, also while that failure is kept. */
  readonly get: (key: string, fetch: () => Promise<Token>) => Promise<string>;
  /**
   * The token was refused where it was used: the next who asks has another fetched, unless this one is younger than
   * `leastAgeMs`, as another would be refused too.
   */
  readonly drop: (key: string, leastAgeMs?: number) => void;
};

/** The share of a token's life, and the most of it, at whose end it is not used any more. */
const MARGIN_SHARE = 0.1;
const MARGIN_MS_MAX = 60_000;
const FAILURE_KEPT_MS = 1_000;
const FAILURE_KEPT_MS_MAX = 30_000;
/** Above it the one that was fetched the longest ago is forgotten. */
const TOKENS_MAX = 10_000;

type Entry = {
  token: Promise<string>;
  readonly fetchedMs: number;
  /** While the fetch runs: for ever. */
  untilMs: number;
  /** Failures in a row, this one included where it failed. */
  failures: number;
};

export function createTokenCache(now: () => number, tokensMax = TOKENS_MAX): TokenCache {
  const entries = new Map<string, Entry>();
  const begin = (key: string, fetch: () => Promise<Token>): Promise<string> => {
    const failuresBefore = entries.get(key)?.failures ?? 0;
    // Made anew at the end of the map, whose order is that of fetching.
    entries.delete(key);
    const [oldest] = entries.keys();
    if (entries.size >= tokensMax && oldest !== undefined) entries.delete(oldest);
    const fetchedMs = now();
    const fetching = fetch();
    const token = fetching.then(({ text }) => text);
    const entry: Entry = { token, fetchedMs, untilMs: Number.POSITIVE_INFINITY, failures: failuresBefore };
    entries.set(key, entry);
    fetching.then(
      ({ expiresMs }) => {
        entry.failures = 0;
        entry.untilMs = expiresMs - Math.min(MARGIN_MS_MAX, (expiresMs - fetchedMs) * MARGIN_SHARE);
      },
      () => {
        entry.failures = failuresBefore + 1;
        entry.untilMs = now() + Math.min(FAILURE_KEPT_MS_MAX, FAILURE_KEPT_MS * 2 ** failuresBefore);
      },
    );
    return token;
  };
  return {
    get: (key, fetch) => {
      const entry = entries.get(key);
      return entry !== undefined && now() < entry.untilMs ? entry.token : begin(key, fetch);
    },
    drop: (key, leastAgeMs = 0) => {
      const entry = entries.get(key);
      // One that is being fetched is not the one that was refused, and a failure is kept for its time.
      if (entry === undefined || entry.failures > 0 || entry.untilMs === Number.POSITIVE_INFINITY) return;
      if (now() - entry.fetchedMs >= leastAgeMs) entries.delete(key);
    },
  };
}
