/** What one thread needs to answer: its view of the image and its scratch, made once. */
import { UNIT_WORDS, ZONE } from "../image/layout.ts";
import type { NameKey } from "../image/name-key.ts";
import { createRegionMemory, type RegionMemory } from "../image/regions.ts";
import { type ImageView, readInOrder, refreshView } from "../image/view.ts";
import { createChance } from "./chance.ts";
import { type Chosen, createChosen } from "./chosen.ts";
import { createLookup, type Lookup } from "./lookup.ts";
import { createQuery, type Query } from "./query.ts";
import { createSpelled, type Spelled } from "./spelled.ts";
import type { Trace } from "./trace.ts";

/** CNAMEs followed in one answer, and targets followed for one ALIAS. */
export const CHAIN_MAX = 16;
/** Address RRsets in the additional section of one answer. */
export const ADDITIONAL_MAX = 64;
/** Zones that one answer reads: each hop of both chains, the targets of the additional section, and the overrides. */
const ZONES_MAX = CHAIN_MAX * 2 + ADDITIONAL_MAX + 3;

const NO_ADDRESS = new Uint8Array(0);

/**
 * Takes over a query at a name that our zones do not hold: the question, a CNAME's or an ALIAS's target, or a name below a
 * cut. It returns true where it answers the client itself. `chain` counts the CNAMEs that the answer holds already.
 */
export type ForwardHook = (query: Query, name: NameKey, chain: number) => boolean;

/** What a name came to: the answer is complete, the name is a CNAME and its target is next, or someone else answers. */
export const STEP = { ANSWERED: 0, FOLLOW: 1, TAKEN: 2 } as const;
export type Step = (typeof STEP)[keyof typeof STEP];

export type AnswerState = {
  readonly view: ImageView;
  /** The query in hand. */
  query: Query;
  /** Body of the overrides for this answer, 0 for none. */
  overrides: number;
  readonly lookup: Lookup;
  readonly forward: ForwardHook | undefined;
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
  readonly regions: RegionMemory;
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
  readonly forward?: ForwardHook;
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
  return {
    view,
    query: createQuery(),
    overrides: 0,
    lookup: createLookup(),
    forward: options.forward,
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
    regions: createRegionMemory(),
    chosen: createChosen(),
    beside: createChosen(),
    turns: options.isFrozen === true ? new Map() : undefined,
    trace: options.trace,
  };
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
