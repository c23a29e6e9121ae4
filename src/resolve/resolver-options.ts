/** What the resolver is made of, and what the thread that composes it may do with it. */
import type { Message } from "../dns/message.ts";
import type { CacheWriter } from "../image/cache.ts";
import type { ExchangeOutcome, Question, Server } from "./exchange.ts";
import type { Asked, FindDelegation, Resolver, RouteName } from "./resolver-types.ts";
import type { ResolveFigures, ResolveSettings, Route, UpstreamFigures } from "./settings.ts";

/** The servers of one route, asked sensibly: the best first, the next where it says nothing or nothing of use. */
export type Pool = {
  /**
   * `onDone` is called once, never before this returns, with the first answer of use, else the last one, else the most
   * telling fault. An answer for which `isLame` is of no use, like a SERVFAIL. What is returned ends it without a call.
   */
  readonly ask: (
    question: Question,
    onDone: (outcome: ExchangeOutcome) => void,
    isLame: (message: Message) => boolean,
  ) => () => void;
  readonly figures: () => readonly UpstreamFigures[];
  readonly close: () => void;
};

/** Asks servers that a referral or a zone cut of ours named, by the same rules. */
export type AskServers = (
  servers: readonly Server[],
  question: Question,
  timeoutMs: number,
  onDone: (outcome: ExchangeOutcome) => void,
  isLame: (message: Message) => boolean,
) => () => void;

export type ResolverOptions = {
  readonly cache: CacheWriter;
  readonly routeName: RouteName;
  readonly findDelegation: FindDelegation;
  /** What an entry of the cache was the answer to, and its route; undefined where no entry begins at the word any more. */
  readonly askedOf: (entry: number) => Asked | undefined;
  readonly makePool: (route: Route) => Pool;
  readonly askServers: AskServers;
  /** CONTROL.ROUTING and CONTROL.HASH_SEED of the image. */
  readonly routing: () => number;
  readonly hashSeed: number;
  /** Seconds since 1970, whole ones. */
  readonly nowSeconds: () => number;
  /** Runs something once after so long, as `after` of timers.ts; what is returned calls it off. */
  readonly after: (delayMs: number, run: () => void) => () => void;
  /** Port of the name servers that referrals and zone cuts name. */
  readonly nameServerPort: number;
};

export type RunningResolver = Resolver & {
  /** Routes whose number stays keep their servers and what is known of them. */
  readonly setSettings: (settings: ResolveSettings) => void;
  /** Lower-case wire name; undefined: everything. Answers on their way reach those who wait, and nobody else. The number of entries. */
  readonly flush: (name: Uint8Array | undefined, isSubtree: boolean) => number;
  readonly figures: () => ResolveFigures;
  /** Whoever waits is told "failed", before this returns; nothing is resolved any more. */
  readonly close: () => void;
};
