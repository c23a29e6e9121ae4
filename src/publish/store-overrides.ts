/**
 * Keeps the overrides of the image at those of the store that are in effect: enabled, and not expired. What a name holds is
 * always read from the store anew. Expiry takes effect by itself, at its moment by this node's clock.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { beginChange, discardZone, endChange, showOverrides, type ZoneHandle } from "../image/writer.ts";
import type { NaturalKey, OverrideBody } from "../model/objects.ts";
import { excludes } from "../model/ownership.ts";
import { typeNumber, valueRdata } from "../model/record-values.ts";
import type { ChangeBatch, Store, Stored } from "../store/store.ts";
import { beginOverrides, type OverrideRRset, type OverrideTools, putOverride } from "./override-image.ts";
import {
  ALL_TYPES,
  createSelectedNames,
  forgetSelection,
  prepareSelection,
  type SelectedNames,
  typeBit,
} from "./selecting.ts";
import { answeredValues, wireName, type ZoneTools } from "./store-zone.ts";

export type OverridePublisherOptions = {
  readonly store: Pick<Store, "list">;
  readonly tools: OverrideTools & Pick<ZoneTools, "selecting" | "onFault">;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called after every change of the image, which leaves something to collect. */
  readonly onChanged: () => void;
};

export type OverridePublisher = Disposable & {
  /** Puts all overrides into the image, in place of what a predecessor left there. Resolves when they answer. */
  readonly start: () => Promise<void>;
  /** One transaction: small changes are in the image when this returns, large ones follow in slices. */
  readonly hear: (batch: ChangeBatch) => void;
  /** The subnet mappings are others: values may be elsewhere. */
  readonly republishMapped: () => void;
  readonly settled: () => Promise<void>;
  readonly isWaiting: () => boolean;
  /** They could not be published since they last changed, and answer as before. */
  readonly isFailed: () => boolean;
};

/** Names that one transaction, or one moment, changes at once. More follow in slices. */
const NAMES_AT_ONCE = 300;
const NAMES_IN_SLICE = 20;
const STEP_OVERRIDES = 100;
/** How many overrides of one name are read: there are fewer types. */
const NAME_OVERRIDES_MAX = 100;
/** The clock may be set while a timer waits: what has expired is looked for again after this time. */
export const RECHECK_MS = 60_000;

/** What the gates call the overrides, which are no zone's. */
const OVERRIDES = "";

type State = {
  readonly options: OverridePublisherOptions;
  /** The incarnation in hand; undefined while no override is in effect. */
  image: ZoneHandle | undefined;
  selected: SelectedNames;
  isShown: boolean;
  /** All names are being read from the store: those behind this key are not yet. */
  building: { after: NaturalKey | undefined } | undefined;
  /** Names that the image has. */
  readonly names: Set<string>;
  /** Names that wait their turn. */
  readonly pending: Set<string>;
  /** When what a name holds changes by itself, or did: the clock may go back too. */
  readonly moments: Map<string, readonly number[]>;
  /** The time of the last look at the moments. */
  checkedMs: number;
  /** None of the moments after that is earlier. */
  nextMs: number;
  timer: NodeJS.Timeout | undefined;
  next: NodeJS.Immediate | undefined;
  readonly waiting: (() => void)[];
  isFailed: boolean;
  isStarted: boolean;
  isEnded: boolean;
};

export function openOverridePublisher(options: OverridePublisherOptions): OverridePublisher {
  const state: State = {
    options,
    image: undefined,
    selected: createSelectedNames(),
    isShown: false,
    building: undefined,
    names: new Set(),
    pending: new Set(),
    moments: new Map(),
    checkedMs: options.now(),
    nextMs: Number.POSITIVE_INFINITY,
    timer: undefined,
    next: undefined,
    waiting: [],
    isFailed: false,
    isStarted: false,
    isEnded: false,
  };
  return {
    start() {
      state.isStarted = true;
      buildAnew(state);
      return settled(state);
    },
    hear: (batch) => hear(state, batch),
    republishMapped: () => {
      const { mapped } = state.selected;
      if (!state.isEnded && mapped.size > 0) publish(state, new Set(mapped.keys()));
    },
    settled: () => settled(state),
    isWaiting: () => isWaiting(state),
    isFailed: () => state.isFailed,
    [Symbol.dispose]() {
      state.isEnded = true;
      clearTimeout(state.timer);
      clearImmediate(state.next);
    },
  };
}

function isWaiting({ building, pending }: State): boolean {
  return building !== undefined || pending.size > 0;
}

function settled(state: State): Promise<void> {
  if (!isWaiting(state)) return Promise.resolve();
  return new Promise((resolve) => state.waiting.push(resolve));
}

function hear(state: State, { changes }: ChangeBatch): void {
  // What a predecessor left answers until all of it can be replaced.
  if (state.isEnded || !state.isStarted) return;
  const names = new Set<string>();
  for (const { kind, key } of changes) if (kind === "override") names.add(key[0]!);
  if (names.size === 0) return;
  publish(state, names);
}

/** At once where it is little and nothing is in the making; else in slices. */
function publish(state: State, names: ReadonlySet<string>): void {
  if (state.isFailed) buildAnew(state);
  if (state.building === undefined && names.size <= NAMES_AT_ONCE) {
    attempt(state, () => change(state, names));
    arm(state);
    return;
  }
  for (const name of names) state.pending.add(name);
  schedule(state);
}

/** Begins an incarnation of all overrides beside the one that answers. */
function buildAnew(state: State): void {
  state.image = undefined;
  state.isShown = false;
  state.isFailed = false;
  state.selected = createSelectedNames();
  state.options.tools.selecting.gates.beginZone(OVERRIDES);
  state.names.clear();
  state.pending.clear();
  state.moments.clear();
  state.nextMs = Number.POSITIVE_INFINITY;
  state.building = { after: undefined };
  schedule(state);
}

function schedule(state: State): void {
  if (state.next !== undefined || state.isEnded) return;
  state.next = setImmediate(() => {
    state.next = undefined;
    attempt(state, () => step(state));
    if (isWaiting(state)) return schedule(state);
    arm(state);
    for (const resolve of state.waiting.splice(0)) resolve();
  });
}

/** A small part of what waits. */
function step(state: State): void {
  const { building, pending, options } = state;
  const some = new Set<string>();
  for (const name of pending) {
    if (some.size === NAMES_IN_SLICE) break;
    some.add(name);
  }
  for (const name of some) pending.delete(name);
  if (some.size > 0) {
    change(state, some);
    return;
  }
  if (building === undefined) return;
  const { after } = building;
  const page = options.store.list("override", { limit: STEP_OVERRIDES, ...(after === undefined ? {} : { after }) });
  for (const { body } of page) pending.add(body.name);
  building.after = page.at(-1)?.key ?? after;
  if (page.length > 0) return;
  state.building = undefined;
  show(state);
  options.tools.selecting.gates.endZone(OVERRIDES);
}

/** What throws leaves the image as it answers, and in doubt: the next change or look builds all of it anew. */
function attempt(state: State, run: () => void): void {
  try {
    run();
  } catch (error) {
    const { tools, log } = state.options;
    if (state.image !== undefined && !state.isShown) discardZone(tools.writer, state.image);
    state.image = undefined;
    state.isShown = false;
    state.building = undefined;
    state.pending.clear();
    state.isFailed = true;
    log("error", `the overrides cannot be published: ${errorText(error)}`);
  }
  state.options.onChanged();
}

/** Brings names to what the store holds, all of them in one bracket. */
function change(state: State, names: ReadonlySet<string>): void {
  const { tools } = state.options;
  state.image ??= beginOverrides(tools);
  const { image } = state;
  beginChange(tools.writer, image);
  try {
    for (const name of names) changeName(state, image, name);
  } finally {
    endChange(tools.writer, image);
  }
  if (state.building === undefined) show(state);
}

function changeName(state: State, image: ZoneHandle, name: string): void {
  const { store, tools, log, now } = state.options;
  const nowMs = now();
  const stored = store
    .list("override", { prefix: [name], limit: NAME_OVERRIDES_MAX })
    .filter(({ body, shadowedBy }) => body.enabled && shadowedBy === undefined);
  const moments = stored.flatMap(({ body }) => expiryOf(body) ?? []);
  if (moments.length > 0) state.moments.set(name, moments);
  else state.moments.delete(name);
  noteNext(state, moments);
  const shown = withoutRivals(stored.filter(({ body }) => (expiryOf(body) ?? Number.POSITIVE_INFINITY) > nowMs));
  const gated = shown.filter(({ health_check_template }) => health_check_template !== undefined);
  forget(state, image, name, typeSet(gated));
  const rrsets = shown.flatMap((body) => rrsetOf(state, body) ?? []);
  const tooLarge = putOverride(tools, image, wireName(name), rrsets);
  for (const type of tooLarge) {
    log("error", `the override of ${name} cannot be answered: it is too large for a DNS message`, { name, type });
  }
  if (tooLarge.length > 0)
    forget(state, image, name, typeSet(gated.filter((body) => !tooLarge.includes(typeNumber(body.type)))));
  if (shown.length > 0) state.names.add(name);
  else state.names.delete(name);
}

function expiryOf({ expires_at: expiry }: OverrideBody): number | undefined {
  return expiry === undefined ? undefined : Date.parse(expiry);
}

/** A merge may leave a CNAME or ALIAS beside other types: of those that exclude each other the newest is in effect. */
function withoutRivals(stored: readonly Stored<"override">[]): readonly OverrideBody[] {
  const kept: OverrideBody[] = [];
  for (const { body } of stored.toSorted((a, b) => (a.stamp < b.stamp ? 1 : -1))) {
    if (!kept.some(({ type }) => excludes(type, body.type, body.name))) kept.push(body);
  }
  return kept;
}

function typeSet(bodies: readonly OverrideBody[]): number {
  return bodies.reduce((set, { type }) => set | typeBit(type), 0);
}

/** Of the types of the name those of `gated` stay gated. */
function forget({ options, selected }: State, image: ZoneHandle, name: string, gated: number): void {
  forgetSelection(options.tools.selecting, selected, OVERRIDES, name, ALL_TYPES, gated, !image.active);
}

/**
 * A TTL of 0 stays: there is no zone whose default it could mean. Undefined where a value is none of its type: another node has
 * let it in, and no other override is to suffer for it.
 */
function rrsetOf({ options, selected }: State, body: OverrideBody): OverrideRRset | undefined {
  try {
    const table = prepareSelection(options.tools.selecting, selected, OVERRIDES, body, body.lb_policy);
    const rdatas = answeredValues(body, table).map((value) => valueRdata(body, value).wire);
    return { type: typeNumber(body.type), ttl: body.ttl, rdatas, table };
  } catch (error) {
    options.tools.onFault("the overrides", body.name, errorText(error));
    return undefined;
  }
}

/** Lets the incarnation answer, or none where no override is in effect: without any, answering costs nothing. */
function show(state: State): void {
  const { writer } = state.options.tools;
  const { image, isShown, names } = state;
  if (names.size > 0 && isShown) return;
  if (names.size > 0) {
    showOverrides(writer, image);
    state.isShown = true;
    return;
  }
  showOverrides(writer, undefined);
  if (image !== undefined && !isShown) discardZone(writer, image);
  state.image = undefined;
  state.isShown = false;
}

/** Sets the timer for the next moment, or to try again. */
function arm(state: State): void {
  clearTimeout(state.timer);
  if (state.isEnded || (state.moments.size === 0 && !state.isFailed)) return;
  const waitMs = Math.min(RECHECK_MS, Math.max(0, state.nextMs - state.options.now()));
  state.timer = setTimeout(() => check(state), waitMs).unref();
}

function noteNext(state: State, moments: readonly number[]): void {
  for (const moment of moments) if (moment > state.checkedMs) state.nextMs = Math.min(state.nextMs, moment);
}

/** Publishes the names of which a moment lies between the last look and now, whichever of them is the later. */
function check(state: State): void {
  const nowMs = state.options.now();
  const from = Math.min(state.checkedMs, nowMs);
  const to = Math.max(state.checkedMs, nowMs);
  state.checkedMs = nowMs;
  state.nextMs = Number.POSITIVE_INFINITY;
  const due = new Set<string>();
  for (const [name, moments] of state.moments) {
    noteNext(state, moments);
    if (moments.some((moment) => moment > from && moment <= to)) due.add(name);
  }
  if (due.size > 0 || state.isFailed) publish(state, due);
  else arm(state);
}
