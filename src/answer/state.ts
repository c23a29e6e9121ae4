/** What one thread needs to answer: its view of the image and its scratch, made once. */
import { FLAG, RCODE } from "../dns/codes.ts";
import { type CacheView, openCacheView } from "../image/cache-view.ts";
import { UNIT_WORDS, ZONE } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { createPrefixMemory, type PrefixMemory } from "../image/prefix-table.ts";
import { copyBytes, type ImageView, readInOrder, refreshView } from "../image/view.ts";
import { createChance } from "./chance.ts";
import { type Chosen, createChosen } from "./chosen.ts";
import { CACHE_USE, type CacheUse, createHit, type Hit } from "./hit.ts";
import { createLookup, type Lookup } from "./lookup.ts";
import { createQuery, type Query, questionFlags } from "./query.ts";
import { createRouteProbe, type RouteProbe } from "./route.ts";
import { createSpelled, type Spelled } from "./spelled.ts";
import type { Trace } from "./trace.ts";

/** CNAMEs followed in one answer, and targets followed for one ALIAS. */
export const CHAIN_MAX = 16;
/** Address RRsets in the additional section of one answer. */
export const ADDITIONAL_MAX = 64;
/** Zones that one answer reads: each hop of both chains, the targets of the additional section, and the overrides. */
const ZONES_MAX = CHAIN_MAX * 2 + ADDITIONAL_MAX + 3;

const MESSAGE_BYTES_MAX = 65_535;
const NO_ADDRESS = new Uint8Array(0);

/** What the cache has to have before the query can be answered. `flags` are bits of QUESTION_FLAG. */
export type Need = { readonly route: number; readonly key: NameKey; readonly type: number; readonly flags: number };

/** What a name came to: the answer is complete, the name is a CNAME and its target is next, or the cache lacks something. */
export const STEP = { ANSWERED: 0, FOLLOW: 1, TAKEN: 2 } as const;
export type Step = (typeof STEP)[keyof typeof STEP];

export type AnswerState = {
  readonly view: ImageView;
  /** The query in hand. */
  query: Query;
  /** Body of the overrides for this answer, 0 for none. */
  overrides: number;
  readonly lookup: Lookup;
  /** Names that we do not hold are answered from the cache; else they are refused. */
  readonly forwards: boolean;
  /** What the answer lacks, where it came to STEP.TAKEN. */
  readonly need: { route: number; key: NameKey; type: number; flags: number };
  /** Nobody is waited for: what is lacking is SERVFAIL with this extended error; -1: it is to be had. */
  lackError: number;
  /** Number of the default forwarder's route for this batch, 0 where there is none or nothing is forwarded. */
  defaultRoute: number;
  /** What is for the thread with keys and connections is said to be so, by STEP.TAKEN's `need` of ROUTE.PRIMARY. */
  readonly handsOver: boolean;
  /** Bytes of the message that are left free for a signature. */
  signatureBytes: number;
  /** Everything that is stored is answered, whatever is healthy, chosen, or laid over it. */
  hasManagementView: boolean;
  /** Flags of the answer's header that routing decides: RA and CD. */
  headerFlags: number;
  /** The query's bytes behind the question, kept from before the first record was written over them; 0 bytes: they were not. */
  readonly kept: DataView;
  keptBytes: number;
  readonly cache: CacheView;
  /** What was found there last. */
  readonly hit: Hit;
  /** The route of the name in hand that is not ours, and where it is listed; see seek.ts. */
  route: number;
  listed: number;
  readonly probe: RouteProbe;
  /** What the cache and the blocklist had to do with the answer. */
  cacheUse: CacheUse;
  isBlocked: boolean;
  /** An override was a part of the answer. */
  isOverridden: boolean;
  /** Nothing is noted in the cache, or anywhere else where others read it. */
  readonly isFrozen: boolean;
  /** Cache entries that were put at or behind this position count although expired; -1: none. */
  acceptedFrom: number;
  /** Word of a cache entry that is to be fetched anew, 0 for none. */
  refresh: number;
  /** The names of a CNAME chain, in turn. */
  readonly odd: Spelled;
  readonly even: Spelled;
  /** A name beside the chain: an ALIAS's target, or one of the additional section. */
  readonly target: Spelled;
  /** A copy of the target, for the look-up of the next one of an ALIAS's chain. */
  readonly spare: Spelled;
  /** Pairs: the CNAME RRsets of this answer and the hash of the name that each stood for. They end a loop. */
  readonly chain: Int32Array;
  /** Pairs: the zone bodies that were read and the sequence of each at that time. */
  readonly zones: Int32Array;
  zoneCount: number;
  /** Pairs: the RRsets in the additional section and the hashes of their owners. */
  readonly added: Int32Array;
  addedCount: number;

  /** What selections read, apart from the image's arena: health words, chance, the time, and who the client is. */
  readonly health: Int32Array;
  readonly chance: Int32Array;
  nowSeconds: number;
  /** Its address: 4 or 16 bytes at `clientAt`; of length 0 where no answer is to be tailored to it. */
  client: Uint8Array;
  clientAt: number;
  clientLength: number;
  /** Its region, 0 for none, once it was looked up. */
  clientRegion: number;
  readonly regions: PrefixMemory;
  /** Who sent the query: its address as it came. Whether recursion is offered to it, as far as is known; see client.ts. */
  sender: Uint8Array;
  senderAt: number;
  senderLength: number;
  offer: number;
  readonly offersToAll: boolean;
  readonly offered: PrefixMemory;
  /** The answer was chosen for this client: another one may get another. */
  isForClient: boolean;
  /** Recursion was wanted and left out of the answer, since it is not offered to the sender. */
  isRecursionRefused: boolean;
  /** What was selected for the answer section, and for addresses beside it. */
  readonly chosen: Chosen;
  readonly beside: Chosen;
  /**
   * There where answers leave no trace in the image, so that the next one is as if they had not been: what they would have
   * written, by word, since `enter`. One answer may choose from one RRset more than once.
   */
  readonly turns: Map<number, number> | undefined;
  readonly trace: Trace | undefined;
};

export type AnswerStateOptions = {
  /** Left out: names that we do not hold are refused. */
  readonly forwards?: boolean;
  /** Recursion is offered to whoever asks: those are questions of the node itself. */
  readonly offersToAll?: boolean;
  /**
   * State of what chance decides, four words that are taken over as they are and written on: whoever has the same makes the
   * same choices. Left out: random ones.
   */
  readonly chance?: Int32Array;
  /** Answers leave no trace in the image. */
  readonly isFrozen?: boolean;
  readonly trace?: Trace;
};

export function createAnswerState(view: ImageView, options: AnswerStateOptions): AnswerState {
  const query = createQuery();
  return {
    view,
    query,
    overrides: 0,
    lookup: createLookup(),
    forwards: options.forwards ?? false,
    need: { route: 0, key: query.name, type: 0, flags: 0 },
    lackError: -1,
    defaultRoute: 0,
    handsOver: options.forwards === true && options.isFrozen !== true,
    signatureBytes: 0,
    hasManagementView: false,
    headerFlags: 0,
    kept: new DataView(new ArrayBuffer(options.forwards === true ? MESSAGE_BYTES_MAX : 0)),
    keptBytes: 0,
    cache: openCacheView(view.shared),
    hit: createHit(),
    route: 0,
    listed: -1,
    probe: createRouteProbe(),
    cacheUse: CACHE_USE.NONE,
    isBlocked: false,
    isOverridden: false,
    isFrozen: options.isFrozen === true,
    acceptedFrom: -1,
    refresh: 0,
    odd: createSpelled(),
    even: createSpelled(),
    target: createSpelled(),
    spare: createSpelled(),
    chain: new Int32Array(CHAIN_MAX * 2),
    zones: new Int32Array(ZONES_MAX * 2),
    zoneCount: 0,
    added: new Int32Array(ADDITIONAL_MAX * 2),
    addedCount: 0,
    health: new Int32Array(view.shared.health),
    chance: options.chance ?? createChance(),
    nowSeconds: 0,
    client: NO_ADDRESS,
    clientAt: 0,
    clientLength: 0,
    clientRegion: 0,
    regions: createPrefixMemory(),
    sender: NO_ADDRESS,
    senderAt: 0,
    senderLength: 0,
    offer: 0,
    offersToAll: options.offersToAll === true,
    offered: createPrefixMemory(),
    isForClient: false,
    isRecursionRefused: false,
    chosen: createChosen(),
    beside: createChosen(),
    turns: options.isFrozen === true ? new Map() : undefined,
    trace: options.trace,
  };
}

/** Forgets what the last answer came to. */
export function startAnswer(state: AnswerState): void {
  state.headerFlags = 0;
  state.keptBytes = 0;
  state.refresh = 0;
  state.cacheUse = CACHE_USE.NONE;
  state.isBlocked = false;
  state.isOverridden = false;
  state.isForClient = false;
  state.isRecursionRefused = false;
}

/** Notes that the answer reads a zone, so that `zonesUnchanged` can tell whether it may be sent. */
export function noteZone(state: AnswerState, body: number): void {
  const { view, zones } = state;
  const at = state.zoneCount * 2;
  if (at > 0 && zones[at - 2] === body) return;
  if (at === zones.length) return;
  zones[at] = body;
  zones[at + 1] = readInOrder(view.words, body * UNIT_WORDS + ZONE.SEQUENCE);
  state.zoneCount++;
}

/** Notes that the answer reads the overrides. Where they lie is the first that it reads of the image. */
export function noteOverrides(state: AnswerState): void {
  reach(state.view, state.overrides);
  noteZone(state, state.overrides);
}

/** True where no zone of the answer was in the middle of a change of several names, or had one meanwhile. */
export function zonesUnchanged(state: AnswerState): boolean {
  const { view, zones } = state;
  for (let index = 0; index < state.zoneCount; index++) {
    const sequence = zones[index * 2 + 1]!;
    if ((sequence & 1) !== 0) return false;
    if (readInOrder(view.words, zones[index * 2]! * UNIT_WORDS + ZONE.SEQUENCE) !== sequence) return false;
  }
  return true;
}

/**
 * Keeps the query's bytes behind the question aside. To be called before the first record of an answer that something may
 * turn out to be lacking behind: whoever sees to that gets the query as it was.
 */
export function keepQuery(state: AnswerState): void {
  const { query, kept } = state;
  if (!state.forwards || state.keptBytes > 0) return;
  const { questionEnd } = query;
  const length = query.end - questionEnd;
  // What stands behind a question is a whole OPT RR at least.
  if (length > 0) copyBytes(kept, 0, query.data, questionEnd, length);
  state.keptBytes = length;
}

/** Writes back what `keepQuery` kept. */
export function restoreQuery({ query, kept, keptBytes }: AnswerState): void {
  if (keptBytes > 0) copyBytes(query.data, query.questionEnd, kept, 0, keptBytes);
}

/** Whether `restoreQuery` makes the query what it was. */
export function isQueryWhole({ query, keptBytes }: AnswerState): boolean {
  const { questionEnd } = query;
  return keptBytes > 0 || query.end === questionEnd || (query.at === questionEnd && !query.truncated);
}

/** The answer lacks what the cache has to have for a name: it is to be had first, or it is SERVFAIL. */
export function lack(state: AnswerState, key: NameKey, type: number, route: number): Step {
  const { query, need } = state;
  state.trace?.({ kind: "lack", type });
  if (state.lackError >= 0) {
    query.rcode = RCODE.SERVFAIL;
    query.extendedError = state.lackError;
    return STEP.ANSWERED;
  }
  need.route = route;
  need.key = key;
  need.type = type;
  need.flags = questionFlags(query);
  return STEP.TAKEN;
}

export function wantsRecursion({ query }: AnswerState): boolean {
  return (query.flags & FLAG.RD) !== 0;
}

/** Makes sure that a block at `reference` lies inside the view. */
export function reach(view: ImageView, reference: number): void {
  if (reference >= view.limit) refreshView(view);
}

/** What must be in the answer does not fit: nothing of it is sent but the question (RFC 2181 section 9). */
export function truncate(state: AnswerState): Step {
  const { query } = state;
  query.truncated = true;
  query.at = query.questionEnd;
  query.answers = 0;
  query.authorities = 0;
  query.additionals = 0;
  return STEP.ANSWERED;
}
