/**
 * Keeps the image at what the store holds. It hears of every transaction before its writer does: what is small is on the
 * wire before the acknowledgement, what is large follows in slices, between which the thread does other things. New zones
 * and large changes are built beside what answers and shown by one store; other changes of several names are bracketed.
 * Overrides are kept by store-overrides.ts, routes of forwarders and stub zones by store-routes.ts,
 * the blocklist by store-blocklist.ts.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { nameToText } from "../dns/name.ts";
import { blocklistCount } from "../image/blocklist.ts";
import { beginChange, discardZone, endChange, zoneNames } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { type Gates, NO_GATES } from "../model/gates.ts";
import type { NaturalKey } from "../model/objects.ts";
import type { ChangeBatch, Store, Stored } from "../store/store.ts";
import { type Collecting, createCollecting } from "./collecting.ts";
import { createFaultLog } from "./fault-log.ts";
import { openRegionMap, type RegionMap } from "./region-map.ts";
import { type Names, typeBit } from "./selecting.ts";
import { type BlocklistPublisher, openBlocklistPublisher } from "./store-blocklist.ts";
import { type OverridePublisher, openOverridePublisher } from "./store-overrides.ts";
import { openRoutePublisher, type PublishedRoute, type RoutePublisher } from "./store-routes.ts";
import {
  addStored,
  buildZone,
  createZoneTools,
  hideZone,
  publisherOf,
  publishName,
  publishSoa,
  showZone,
  wireName,
  type ZoneImage,
  type ZoneTools,
} from "./store-zone.ts";

export type StorePublisherOptions = {
  readonly store: Pick<Store, "get" | "list" | "answering" | "count" | "serialOf" | "stateOf" | "onChange">;
  readonly writer: ImageWriter;
  readonly log: Log;
  /** Milliseconds from any moment on; default: those of the process. */
  readonly clock?: () => number;
  /** Milliseconds since 1970, by which overrides expire; default: the system's. */
  readonly now?: () => number;
  /** Who gates values; default: nobody. It is called while records are published and must not throw. */
  readonly gates?: Gates;
  /** The region of this node; undefined or empty: none. */
  readonly region?: string | undefined;
  /** See RoutePublisherOptions; default: nobody resolves. */
  readonly onRoutes?: (routes: readonly PublishedRoute[]) => void;
};

export type PublishStats = {
  /** Zones that wait to be published, or are being published in slices. The overrides count as one. */
  readonly waitingZones: number;
  /** Zones that could not be published since they last changed. The overrides, subnet mappings, routes and blocklist count as one each. */
  readonly failedZones: number;
  /** Changes of zones published, and the time from commit to image in all of them together. */
  readonly published: number;
  readonly publishedMs: number;
  /** The longest of them. */
  readonly slowestMs: number;
  /** Names on the blocklist in force. */
  readonly blocklistNames: number;
};

export type StorePublisher = Disposable & {
  /** Puts the whole store into the image and takes out what else is there. Resolves when all of it answers. */
  readonly start: () => Promise<void>;
  /** Resolves when nothing waits any more. */
  readonly settled: () => Promise<void>;
  readonly stats: () => PublishStats;
  /** The region that a number in the image means; undefined where nothing published tells. */
  readonly regionName: (region: number) => string | undefined;
  /** Resolves when the blocklist of the store blocks, or cannot before other nodes have sent the rest of it. */
  readonly blocklistInForce: () => Promise<void>;
};

/** The longest that publishing holds the thread at a stretch, but for a single store of the image. */
const SLICE_MS = 5;
/** Names, or records of zones that are built, which one transaction publishes at once, before the acknowledgement. */
const NAMES_AT_ONCE = 300;
/** Records read from the store in one step. */
const STEP_RECORDS = 500;
const STEP_NAMES = 20;
/** A change of more names than this, and of an eighth of the zone, is built beside it and shown as a whole. */
const NAMES_REBUILT = 1000;
const REBUILT_SHARE = 8;

/** What is to be done for one zone. */
type Work = {
  readonly zone: string;
  readonly sinceMs: number;
  /** The zone itself has to be looked at before its names. */
  isPlanned: boolean;
  /** Names that changed, with the types of their records. */
  readonly names: Names;
  building: { readonly image: ZoneImage; cursor: Uint8Array | undefined; isRead: boolean } | undefined;
};

type State = {
  readonly options: StorePublisherOptions;
  readonly tools: ZoneTools;
  readonly gates: Gates;
  readonly regions: RegionMap;
  readonly overrides: OverridePublisher;
  readonly routes: RoutePublisher;
  readonly blocklist: BlocklistPublisher;
  readonly clock: () => number;
  readonly zones: Map<string, ZoneImage>;
  readonly queue: Map<string, Work>;
  readonly failed: Set<string>;
  readonly waiting: (() => void)[];
  next: NodeJS.Immediate | undefined;
  readonly collecting: Collecting;
  /** All of the store has been brought into the image: nothing in it is a predecessor's. */
  isStarted: boolean;
  isEnded: boolean;
  published: number;
  publishedMs: number;
  slowestMs: number;
};

/** From now on changes of the store reach the image; `start` brings in what is there already. */
export function openStorePublisher(options: StorePublisherOptions): StorePublisher {
  const { store } = options;
  const state = createState(options);
  const { regions, overrides, routes, blocklist, collecting } = state;
  const end = store.onChange((batch) => hear(state, batch));
  return {
    async start() {
      await regions.start();
      await overrides.start();
      // Ahead of the routes: what is blocked is not to be forwarded meanwhile.
      await blocklist.start();
      routes.start();
      await start(state);
      state.isStarted = !state.isEnded;
      settle(state);
    },
    async settled() {
      await regions.settled();
      await Promise.all([settled(state), overrides.settled(), blocklist.settled()]);
    },
    stats: () => ({
      waitingZones: state.queue.size + [overrides, blocklist].filter((part) => part.isWaiting()).length,
      failedZones: state.failed.size + [overrides, regions, routes, blocklist].filter((part) => part.isFailed()).length,
      published: state.published,
      publishedMs: state.publishedMs,
      slowestMs: state.slowestMs,
      blocklistNames: blocklistCount(options.writer.view),
    }),
    regionName: regions.nameOf,
    blocklistInForce: blocklist.settled,
    [Symbol.dispose]: () => {
      end();
      regions[Symbol.dispose]();
      overrides[Symbol.dispose]();
      state.isEnded = true;
      clearImmediate(state.next);
      collecting[Symbol.dispose]();
      blocklist[Symbol.dispose]();
    },
  };
}

function createState(options: StorePublisherOptions): State {
  const { store, writer, log, gates = NO_GATES, region } = options;
  const clock = options.clock ?? (() => performance.now());
  const regions = openRegionMap({ store, writer, log, clock, region, onChanged: () => republishMapped(state) });
  const onFault = createFaultLog(log, clock);
  const collecting = createCollecting(writer);
  const tools = createZoneTools(writer, onFault, { gates, regions });
  const state: State = {
    options,
    tools,
    gates,
    regions,
    overrides: openOverridePublisher({
      store,
      tools,
      log,
      now: options.now ?? Date.now,
      onChanged: () => {
        collecting.collectSome();
        settle(state);
      },
    }),
    routes: openRoutePublisher({
      ...{ store, writer, log },
      onRoutes: options.onRoutes ?? (() => {}),
      onChanged: collecting.collectSome,
    }),
    blocklist: openBlocklistPublisher({ store, writer, log, onChanged: collecting.collectSome }),
    clock,
    zones: new Map(),
    queue: new Map(),
    failed: new Set(),
    waiting: [],
    next: undefined,
    collecting,
    isStarted: false,
    isEnded: false,
    published: 0,
    publishedMs: 0,
    slowestMs: 0,
  };
  return state;
}

/** Lets go of what records were gated by: where anything waits or failed, the image may name it still. */
function settle({ isStarted, isEnded, queue, failed, overrides, gates }: State): void {
  if (!isStarted || isEnded || queue.size > 0 || failed.size > 0) return;
  if (overrides.isWaiting() || overrides.isFailed()) return;
  gates.settle();
}

const ZONES_PAGE = 1000;

async function start(state: State): Promise<void> {
  const { store, writer } = state.options;
  // A predecessor may have left zones, half changed or deleted since: each is replaced as a whole, or ended.
  for (const wire of zoneNames(writer)) {
    if (activeZone(state, nameToText(wire)) === undefined) hideZone(state.tools, wire);
  }
  let after: NaturalKey | undefined;
  for (;;) {
    const page = store.list("zone", { limit: ZONES_PAGE, ...(after === undefined ? {} : { after }) });
    for (const { body } of page) enqueue(state, workFor(state, body.name));
    await settled(state);
    const last = page.at(-1);
    if (last === undefined || page.length < ZONES_PAGE || state.isEnded) return;
    after = last.key;
  }
}

function settled(state: State): Promise<void> {
  if (state.queue.size === 0) return Promise.resolve();
  return new Promise((resolve) => state.waiting.push(resolve));
}

function workFor(state: State, zone: string): Work {
  return { zone, sinceMs: state.clock(), isPlanned: false, names: new Map(), building: undefined };
}

/** One transaction: small work is done at once, the rest waits its turn. */
function hear(state: State, batch: ChangeBatch): void {
  if (state.isEnded) return;
  // What is published from here on is so by the mappings as they are now.
  state.regions.hear(batch);
  state.overrides.hear(batch);
  state.routes.hear(batch);
  state.blocklist.hear(batch);
  takeUp(state, sortByZone(state, batch).values());
}

/** Records whose values are where the mappings say are published anew. */
function republishMapped(state: State): void {
  if (state.isEnded) return;
  state.overrides.republishMapped();
  const works: Work[] = [];
  for (const { name, selected } of state.zones.values()) {
    if (selected.mapped.size > 0) works.push({ ...workFor(state, name), names: new Map(selected.mapped) });
  }
  for (const { building, names } of state.queue.values()) {
    for (const [name, types] of building?.image.selected.mapped ?? []) addTypes(names, name, types);
  }
  takeUp(state, works);
}

function addTypes(names: Names, name: string, types: number): void {
  names.set(name, (names.get(name) ?? 0) | types);
}

function takeUp(state: State, works: Iterable<Work>): void {
  let left = NAMES_AT_ONCE;
  for (const work of works) {
    const waiting = state.queue.get(work.zone);
    const names = waiting === undefined ? namesToPublish(state, work) : work.names.size;
    const isAtOnce = names <= left;
    if (isAtOnce) left -= names;
    if (waiting !== undefined) join(state, waiting, work, isAtOnce);
    else if (isAtOnce) finish(state, work);
    else enqueue(state, work);
  }
  state.collecting.collectSome();
  settle(state);
}

function sortByZone(state: State, batch: ChangeBatch): Map<string, Work> {
  const works = new Map<string, Work>();
  const workOf = (zone: string) => {
    const known = works.get(zone);
    if (known !== undefined) return known;
    const work = workFor(state, zone);
    works.set(zone, work);
    return work;
  };
  for (const { kind, key, before, after } of batch.changes) {
    const [zone = "", name = ""] = key;
    if (kind === "zone") workOf(zone);
    if (kind !== "record") continue;
    const body = (after ?? before)?.body;
    if (body === undefined || !("type" in body)) continue;
    const { names } = workOf(zone);
    // A zone of which nothing answers yet is read from the beginning.
    if (state.zones.has(zone) || state.queue.has(zone)) addTypes(names, name, typeBit(body.type));
  }
  for (const zone of batch.zones) workOf(zone);
  return works;
}

/** More to do for a zone that waits. What answers now is brought up to date at once where that is little. */
function join(state: State, waiting: Work, work: Work, isAtOnce: boolean): void {
  waiting.isPlanned = false;
  for (const [name, types] of work.names) addTypes(waiting.names, name, types);
  const stored = activeZone(state, work.zone);
  const image = state.zones.get(work.zone);
  const isLive = stored !== undefined && image !== undefined && !needsBuilding(image, stored);
  if (isLive && isAtOnce) attempt(state, work, () => changeLive(state, image, stored, work.names));
}

/** The zone in the store, where it is one that answers. */
function activeZone({ options: { store } }: State, zone: string): Stored<"zone"> | undefined {
  const stored = store.get("zone", [zone]);
  return stored !== undefined && store.stateOf(zone) === "active" ? stored : undefined;
}

/** Another life of the zone, or another TTL or policy of all records that inherit it. */
function needsBuilding(image: ZoneImage, { born, body }: Stored<"zone">): boolean {
  if (image.born !== born || image.defaults.default_ttl !== body.default_ttl) return true;
  const [before, after] = [image.defaults.lb_policy, body.lb_policy];
  return before !== after && JSON.stringify(before) !== JSON.stringify(after);
}

/** How much the work is: names that changed, or all records of a zone that has to be built. */
function namesToPublish(state: State, work: Work): number {
  const stored = activeZone(state, work.zone);
  if (stored === undefined) return 1;
  const image = state.zones.get(work.zone);
  if (image !== undefined && !needsBuilding(image, stored)) return Math.max(1, work.names.size);
  return Math.max(1, state.options.store.count("record", work.zone));
}

function enqueue(state: State, work: Work): void {
  state.queue.set(work.zone, work);
  schedule(state);
}

function schedule(state: State): void {
  if (state.next !== undefined || state.queue.size === 0 || state.isEnded) return;
  state.next = setImmediate(() => {
    state.next = undefined;
    drain(state);
    schedule(state);
  });
}

/** One slice of what waits, the oldest first. */
function drain(state: State): void {
  const until = state.clock() + SLICE_MS;
  do {
    const [work] = state.queue.values();
    if (work === undefined) break;
    if (attempt(state, work, () => step(state, work)) !== false) {
      state.queue.delete(work.zone);
      done(state, work);
    }
  } while (state.clock() < until);
  state.collecting.collectSome();
  settle(state);
  if (state.queue.size === 0) for (const resolve of state.waiting.splice(0)) resolve();
}

function finish(state: State, work: Work): void {
  while (attempt(state, work, () => step(state, work)) === false);
  done(state, work);
}

function done(state: State, work: Work): void {
  const tookMs = state.clock() - work.sinceMs;
  state.published++;
  state.publishedMs += tookMs;
  state.slowestMs = Math.max(state.slowestMs, tookMs);
}

/** Undefined where `run` threw: the zone answers as before, and waits for its next change. */
function attempt<T>(state: State, work: Work, run: () => T): T | undefined {
  try {
    const result = run();
    state.failed.delete(work.zone);
    return result;
  } catch (error) {
    if (work.building !== undefined) discardZone(state.tools.writer, work.building.image.handle);
    work.building = undefined;
    state.failed.add(work.zone);
    // What the image holds of it is not known any more: the next change builds it anew.
    state.zones.delete(work.zone);
    state.options.log("error", `zone ${work.zone} cannot be published: ${errorText(error)}`, { zone: work.zone });
    return undefined;
  }
}

/** A small part of the work. Returns whether that was the last. */
function step(state: State, work: Work): boolean {
  const stored = activeZone(state, work.zone);
  if (!work.isPlanned) plan(state, work, stored);
  work.isPlanned = true;
  if (stored === undefined) return true;
  if (work.building !== undefined) return build(state, work, stored);
  const image = state.zones.get(work.zone);
  if (image === undefined) return true;
  const some = takeSome(work.names);
  changeLive(state, image, stored, some, work.names.size === 0);
  return work.names.size === 0;
}

/** Looks at the zone itself: whether it ends, is to be built, or has names to change. */
function plan(state: State, work: Work, stored: Stored<"zone"> | undefined): void {
  const { tools, zones, options } = state;
  const { building } = work;
  if (building !== undefined && (stored === undefined || needsBuilding(building.image, stored))) {
    discardZone(tools.writer, building.image.handle);
    work.building = undefined;
  }
  const image = zones.get(work.zone);
  if (stored === undefined) {
    work.names.clear();
    // Also where nothing is known of it: what could not be published answers as it did.
    hideZone(tools, wireName(work.zone));
    zones.delete(work.zone);
    state.gates.ungateZone(work.zone);
    state.failed.delete(work.zone);
    return;
  }
  if (work.building !== undefined) return;
  const isWide =
    work.names.size > NAMES_REBUILT && work.names.size * REBUILT_SHARE > options.store.count("record", work.zone);
  if (image !== undefined && !needsBuilding(image, stored) && !isWide) return;
  // Everything is read from the beginning: what has changed so far comes along.
  work.names.clear();
  const serial = options.store.serialOf(work.zone) ?? 0;
  // Where a build is given up, what it has gated stays until the next one, which begins the list anew.
  state.gates.beginZone(work.zone);
  work.building = { image: buildZone(tools, stored, serial), cursor: undefined, isRead: false };
}

/** The next records of a zone in the making; at the end what changed meanwhile, and then it answers. */
function build(state: State, work: Work, stored: Stored<"zone">): boolean {
  const { building } = work;
  const { tools, options, zones } = state;
  if (building === undefined) return true;
  const { image } = building;
  const publisher = publisherOf(tools, image);
  if (!building.isRead) {
    const { cursor } = building;
    const page = options.store.answering(work.zone, {
      limit: STEP_RECORDS,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const record of page.records) addStored(tools, publisher, image, record);
    building.cursor = page.cursor;
    building.isRead = page.cursor === undefined;
    return false;
  }
  for (const [name, types] of takeSome(work.names)) publishName(tools, publisher, image, options.store, name, types);
  if (work.names.size > 0) return false;
  publishSoa(publisher, image, options.store, stored.body, options.store.serialOf(work.zone) ?? 0);
  showZone(tools, image);
  zones.set(work.zone, image);
  state.gates.endZone(work.zone);
  return true;
}

function takeSome(names: Names): Names {
  const some: Names = new Map();
  for (const [name, types] of names) {
    if (some.size === STEP_NAMES) break;
    some.set(name, types);
    names.delete(name);
  }
  return some;
}

/** Changes names of a zone that answers; with the last of them its SOA. */
function changeLive(state: State, image: ZoneImage, stored: Stored<"zone">, names: Names, isLast = true): void {
  const { tools, options } = state;
  const publisher = publisherOf(tools, image);
  const { handle } = image;
  beginChange(tools.writer, handle);
  try {
    for (const [name, types] of names) publishName(tools, publisher, image, options.store, name, types);
    if (isLast) publishSoa(publisher, image, options.store, stored.body, options.store.serialOf(image.name) ?? 0);
  } finally {
    endChange(tools.writer, handle);
  }
}
