/**
 * Keeps the region table of the image at the subnet mappings of the store, and says by it where values are. The table is
 * always read from the store as a whole and replaced by one store: few mappings before the acknowledgement, many in slices
 * with a pause between two of them.
 */
import { errorText } from "../base/errors.ts";
import { cidrFromText, ipFromText } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { putRegions, type RegionPrefix, regionNumber, regionOf, setOwnRegion } from "../image/regions.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import type { NaturalKey, RecordType, RecordValue } from "../model/objects.ts";
import type { ChangeBatch, Store } from "../store/store.ts";

export type RegionMapOptions = {
  readonly store: Pick<Store, "list" | "count">;
  readonly writer: ImageWriter;
  readonly log: Log;
  /** Milliseconds from any moment on. */
  readonly clock: () => number;
  /** The node's own region; undefined or empty: none. */
  readonly region: string | undefined;
  /** Called when the table has become another one. */
  readonly onChanged: () => void;
};

/** Where a value is: 0 and undefined where nobody says. */
export type Place = { readonly number: number; readonly name: string | undefined };

export type RegionMap = Disposable & {
  /** Puts the table into the image, in place of what a predecessor left there. Resolves when it is there. */
  readonly start: () => Promise<void>;
  readonly hear: (batch: ChangeBatch) => void;
  readonly settled: () => Promise<void>;
  /** The mappings could not be published since they last changed; the table is the one before. */
  readonly isFailed: () => boolean;
  /** The region of a value: by its tag, else, of an address, by the longest mapping that covers it. */
  readonly placeOf: (type: RecordType, value: RecordValue) => Place;
  /** The region of a number that a mapping or the node's own region has. */
  readonly nameOf: (region: number) => string | undefined;
};

/** Mappings that are read before the acknowledgement of the write that changed one. */
const MAPPINGS_AT_ONCE = 500;
/** Mappings read from the store in one step. */
const STEP_MAPPINGS = 500;
/** Pause before the table is made again, as a multiple of the time that this took: others have the thread meanwhile. */
const PAUSE_FACTOR = 4;
/** Of numbers of regions that values are tagged with; there are few of them. */
const TAGS_MAX = 10_000;

const NOWHERE: Place = { number: 0, name: undefined };

type Reading = {
  readonly prefixes: RegionPrefix[];
  readonly names: Map<number, string>;
  after: NaturalKey | undefined;
};

type State = {
  readonly options: RegionMapOptions;
  names: ReadonlyMap<number, string>;
  readonly tags: Map<string, Place>;
  /** Mappings have changed since the reading began, or since the last one. */
  isDirty: boolean;
  reading: Reading | undefined;
  isFailed: boolean;
  /** What the last table took, and when the next may begin, in milliseconds. */
  workMs: number;
  nextMs: number;
  timer: NodeJS.Timeout | undefined;
  next: NodeJS.Immediate | undefined;
  readonly waiting: (() => void)[];
  isEnded: boolean;
};

export function openRegionMap(options: RegionMapOptions): RegionMap {
  const { writer, region } = options;
  const own = region === undefined || region === "" ? undefined : region;
  const state: State = {
    options,
    names: new Map(),
    tags: new Map(),
    isDirty: false,
    reading: undefined,
    isFailed: false,
    workMs: 0,
    nextMs: Number.NEGATIVE_INFINITY,
    timer: undefined,
    next: undefined,
    waiting: [],
    isEnded: false,
  };
  return {
    start() {
      setOwnRegion(writer, own === undefined ? 0 : regionNumber(own));
      state.isDirty = true;
      schedule(state);
      return settled(state);
    },
    hear: (batch) => hear(state, batch),
    settled: () => settled(state),
    isFailed: () => state.isFailed,
    placeOf: (type, value) => placeOf(state, type, value),
    nameOf: (number) =>
      state.names.get(number) ?? (own !== undefined && regionNumber(own) === number ? own : undefined),
    [Symbol.dispose]() {
      state.isEnded = true;
      clearTimeout(state.timer);
      clearImmediate(state.next);
    },
  };
}

function isWaiting({ isDirty, reading }: State): boolean {
  return isDirty || reading !== undefined;
}

function settled(state: State): Promise<void> {
  if (!isWaiting(state)) return Promise.resolve();
  return new Promise((resolve) => state.waiting.push(resolve));
}

function placeOf(state: State, type: RecordType, { region, value }: RecordValue): Place {
  if (isTagged(region)) return placeOfTag(state.tags, region);
  if (!isMapped(type)) return NOWHERE;
  const address = ipFromText(value);
  if (address === undefined) return NOWHERE;
  const number = regionOf(state.options.writer.view, address, 0, address.length);
  return number === 0 ? NOWHERE : { number, name: state.names.get(number) };
}

function isTagged(region: string | undefined): region is string {
  return region !== undefined && region !== "";
}

function isMapped(type: RecordType): boolean {
  return type === "A" || type === "AAAA";
}

/** Whether the region of one of the values is looked up in the mappings. */
export function asksMappings(type: RecordType, values: readonly RecordValue[]): boolean {
  return isMapped(type) && values.some(({ region }) => !isTagged(region));
}

/** A number is a hash: it is worked out once. */
function placeOfTag(tags: Map<string, Place>, name: string): Place {
  const known = tags.get(name);
  if (known !== undefined) return known;
  const place = { number: regionNumber(name), name };
  if (tags.size >= TAGS_MAX) tags.clear();
  tags.set(name, place);
  return place;
}

function hear(state: State, { changes }: ChangeBatch): void {
  if (state.isEnded || !changes.some(({ kind }) => kind === "subnet-mapping")) return;
  const isFree = !isWaiting(state);
  state.isDirty = true;
  if (isFree && state.options.store.count("subnet-mapping") <= MAPPINGS_AT_ONCE) {
    do attempt(state);
    while (state.reading !== undefined);
  }
  schedule(state);
}

function schedule(state: State): void {
  if (state.isEnded || state.timer !== undefined || state.next !== undefined) return;
  if (!isWaiting(state)) {
    for (const resolve of state.waiting.splice(0)) resolve();
    return;
  }
  const waitMs = state.reading === undefined ? state.nextMs - state.options.clock() : 0;
  const go = () => {
    state.timer = undefined;
    state.next = undefined;
    attempt(state);
    schedule(state);
  };
  if (waitMs > 0) state.timer = setTimeout(go, waitMs);
  else state.next = setImmediate(go);
}

/** What throws leaves the table as it is; the next change of a mapping makes it anew. */
function attempt(state: State): void {
  const { clock, log } = state.options;
  const beganMs = clock();
  try {
    step(state);
  } catch (error) {
    state.reading = undefined;
    state.isDirty = false;
    state.isFailed = true;
    log("error", `the subnet mappings cannot be published: ${errorText(error)}`);
  }
  state.workMs += clock() - beganMs;
  if (state.reading !== undefined) return;
  state.nextMs = clock() + state.workMs * PAUSE_FACTOR;
  state.workMs = 0;
}

/** Reads some mappings; behind the last of them the table is replaced. */
function step(state: State): void {
  const { store, writer, log, onChanged } = state.options;
  if (state.reading === undefined) {
    state.reading = { prefixes: [], names: new Map(), after: undefined };
    state.isDirty = false;
  }
  const { prefixes, names, after } = state.reading;
  const page = store.list("subnet-mapping", { limit: STEP_MAPPINGS, ...(after === undefined ? {} : { after }) });
  for (const { body } of page) {
    const cidr = cidrFromText(body.subnet);
    if (cidr === undefined) {
      log("error", `a subnet mapping is left out: ${JSON.stringify(body.subnet)} is no subnet`);
      continue;
    }
    const { number: region } = placeOfTag(state.tags, body.region_id);
    names.set(region, body.region_id);
    prefixes.push({ address: cidr.address, prefixLength: cidr.prefixBits, region });
  }
  state.reading.after = page.at(-1)?.key ?? after;
  if (page.length === STEP_MAPPINGS) return;
  putRegions(writer, prefixes);
  state.reading = undefined;
  state.names = names;
  state.isFailed = false;
  onChanged();
}
