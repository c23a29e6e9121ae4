/**
 * The digest of this store: nothing of it is there before somebody asks. Then a scan builds it, slice by slice, each inside
 * a transaction of its own, which sees all transactions that ran before it and none that come later. What transactions
 * change is told after they are on the disk, with their order: it is applied where the scan has read that row before it,
 * and left out where the scan is still to come or has seen it already. So each change counts once.
 */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { TABLE } from "./database.ts";
import { makeVersionScanner, SCAN_START, type ScanParts, type ScanPlace, scanSlice } from "./digest-scan.ts";
import {
  type Counted,
  DELTA_WORDS,
  type DigestTree,
  type HashedVersion,
  hashObjectVersion,
  hashVersion,
  makeDigestTree,
} from "./digest-tree.ts";
import { readZoneRow } from "./objects.ts";
import { placeOf, REF_TABLES, rowRef } from "./refs.ts";
import type { Digest, ItemRef } from "./replica.ts";
import type { Stamp } from "./store.ts";
import type { Traced } from "./trace.ts";

export type DigestKeeper = Digest & {
  /** Whether transactions are to say what they change. */
  readonly isWanted: () => boolean;
  /** What a transaction changed, in the order of transactions. */
  readonly hear: (order: number, traced: Traced) => void;
  /** Does what changes all that is stored, and builds the digest anew where there was one. */
  readonly rebuildAfter: (work: () => Promise<void>) => Promise<void>;
  readonly stop: () => Promise<void>;
};

export type DigestParts = ScanParts & {
  /** Of the transaction that ran last. */
  readonly lastOrder: () => number;
  readonly log: Log;
};

/** What one slice of the scan has read: all rows up to that reference, as they were behind that transaction. */
type Slice = { readonly upTo: ItemRef; readonly order: number };
type Build = { readonly tree: DigestTree; slices: Slice[]; isReady: boolean };

/** Behind all references. */
const LAST_REF = String.fromCharCode(0xffff);
/** After a slice that could not be read, on a full disk for instance. */
const RETRY_MS = 1_000;

export function makeDigest(parts: DigestParts): DigestKeeper {
  const { now, lastOrder, log } = parts;
  const versions = makeVersionScanner(parts);
  const stopping = new AbortController();
  let build: Build | undefined;
  let running: Promise<void> | undefined;
  let held: Promise<void> | undefined;
  const runSlice = async (current: Build, place: ScanPlace): Promise<ScanPlace | undefined> => {
    let next: ScanPlace | undefined;
    // As if it were long, because it may not stand beside one: that may have begun when nobody wanted to hear what it changes.
    await parts.database.runInSlices(function* () {
      yield;
      next = readSlice(parts, current, place, lastOrder());
      return false;
    });
    // A transaction that writes nothing ends within the turn of the event loop that it began in.
    await nextTurn();
    return next;
  };
  const scan = async () => {
    while (!stopping.signal.aborted && build?.isReady === false) {
      const current: Build = { tree: makeDigestTree(), slices: [], isReady: false };
      build = current;
      let place: ScanPlace | undefined = SCAN_START;
      while (place !== undefined && build === current && !stopping.signal.aborted) {
        try {
          place = await runSlice(current, place);
        } catch (thrown) {
          log("warn", `the digest of the store waits: ${errorText(thrown)}`);
          await delay(RETRY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
        }
      }
      current.isReady = place === undefined;
    }
  };
  const begin = (): Promise<void> => {
    if (held !== undefined) return held.then(begin, begin);
    if (build?.isReady === true) return Promise.resolve();
    build ??= { tree: makeDigestTree(), slices: [], isReady: false };
    running ??= scan().finally(() => {
      running = undefined;
    });
    return running;
  };
  const settled = (): DigestTree => {
    if (build?.isReady !== true) throw new Error("the digest is not ready");
    build.tree.advance(now());
    return build.tree;
  };
  return {
    isReady: () => {
      if (build?.isReady === true) return true;
      if (!stopping.signal.aborted && held === undefined) void begin();
      return false;
    },
    ready: begin,
    root: () => settled().root(),
    children: (level, nodes) => settled().children(level, nodes),
    versions,
    isWanted: () => build !== undefined,
    hear: (order, traced) => {
      if (build !== undefined) apply(build, order, traced, now());
    },
    rebuildAfter: async (work) => {
      const wasWanted = build !== undefined;
      build = undefined;
      // A scan that was under way sees that nobody wants it.
      await running;
      held = work().finally(() => {
        held = undefined;
      });
      await held;
      if (wasWanted) void begin();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

function readSlice(
  parts: DigestParts,
  { tree, slices }: Build,
  place: ScanPlace,
  order: number,
): ScanPlace | undefined {
  const nowMs = parts.now();
  const known = new Map<string, Stamp>();
  const hashed: HashedVersion = { leaf: 0, high: 0, low: 0 };
  const mixAt = (counted: Counted) => {
    const { zone } = counted;
    if (zone !== "" && !known.has(zone)) {
      const { floor } = readZoneRow(parts.database, zone);
      known.set(zone, floor);
      tree.setFloor(zone, floor, order);
    }
    return tree.mixAt(counted, nowMs);
  };
  const next = scanSlice(parts, place, {
    onRecord: (key, counted) => {
      const mix = mixAt(counted);
      if (mix === undefined) return;
      hashObjectVersion(hashed, key, counted.version);
      mix(hashed.leaf, hashed.high, hashed.low);
    },
    onRow: ({ ref, counted, present }) => {
      if (present !== undefined) tree.setFloor(present.zone, present.floor, order);
      const mix = mixAt(counted);
      if (mix === undefined) return;
      hashVersion(hashed, ref, counted.version);
      mix(hashed.leaf, hashed.high, hashed.low);
    },
  });
  slices.push({ upTo: next === undefined ? LAST_REF : positionOf(next), order });
  return next;
}

/** The last reference that was read where the scan is at `place`. */
function positionOf({ table, after }: ScanPlace): ItemRef {
  const id = REF_TABLES[table];
  if (id === undefined) return LAST_REF;
  return after === undefined ? String(table) : rowRef(id, after);
}

function apply(build: Build, order: number, { deltas, floors }: Traced, nowMs: number): void {
  const { tree } = build;
  if (build.isReady && order > (build.slices.at(-1)?.order ?? 0)) build.slices = [];
  for (const [zone, floor] of floors) tree.setFloor(zone, floor, order);
  const isSettled = build.isReady && build.slices.length === 0;
  for (const run of deltas) {
    const mix = tree.mixAt(run, nowMs);
    if (mix === undefined) continue;
    const { words, refs } = run;
    for (const [index, ref] of refs.entries()) {
      const slice = isSettled ? undefined : sliceOf(build.slices, ref);
      if (!isSettled && (slice === undefined || slice.order >= order)) continue;
      const at = index * DELTA_WORDS;
      mix(words[at]!, words[at + 1]!, words[at + 2]!);
    }
  }
}

/** The slice that has read the row of that reference. */
function sliceOf(slices: readonly Slice[], ref: ItemRef): Slice | undefined {
  const at = scanned(ref);
  let low = 0;
  let high = slices.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((slices[middle]?.upTo ?? "") >= at) high = middle;
    else low = middle + 1;
  }
  return slices[low];
}

/** Where the scan comes by: what is named by its texts may lie among the objects. */
function scanned(ref: ItemRef): ItemRef {
  if (!ref.startsWith(String(REF_TABLES.indexOf(TABLE.FOREIGN)))) return ref;
  const place = placeOf(ref);
  const table = REF_TABLES.find((each) => each === place?.table);
  return place === undefined || table === undefined ? ref : rowRef(table, place.key);
}
