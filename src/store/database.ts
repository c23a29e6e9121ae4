/**
 * The one LMDB database of a store: one tree, its keys told apart by a byte for the table. Values are text. Reads made
 * inside a transaction's callback see what it wrote; reads outside see the last commit. No read leaves a cursor open.
 */
import { existsSync, mkdirSync, statfsSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { open, type RootDatabase, type Transaction } from "lmdb";
import { errorText } from "../base/errors.ts";
import { Refusal } from "../model/refusal.ts";
import { makeGroupCommit } from "./group-commit.ts";

/** Which table a key belongs to; a number is never used again for another table. */
export const TABLE = {
  META: 1,
  /** Objects: natural key -> envelope. */
  OBJECT: 2,
  /** Kind, id, natural key -> rank of that version among those of its id. */
  ID: 3,
  /** Kind, id, natural key: the id lost a merge of two creates at that key. */
  ALIAS: 4,
  /** Zone name -> floor, serial, activation. */
  ZONE: 5,
  COUNT: 6,
  AUDIT: 7,
  /** Instance, sequence -> time of the audit entry. */
  AUDIT_SEQUENCE: 8,
  /** Kind, natural key, stamp -> a version that lost without having been seen. */
  JOURNAL: 9,
  /** Zones with records of an earlier life that are still to be removed. */
  SWEEP: 10,
  /** Moment of collection, natural key: the tombstones that leave then. */
  TOMBSTONE: 11,
} as const;
export type Table = (typeof TABLE)[keyof typeof TABLE];

export type Row = { readonly key: Uint8Array; readonly value: string };

export type RangeOptions = {
  /** Leading bytes of the keys, without the table's. */
  readonly prefix: Uint8Array;
  /** Keys behind this one only; before it when `reverse`. */
  readonly after?: Uint8Array;
  readonly limit: number;
  readonly reverse?: boolean;
};

export type Database = {
  readonly get: (table: Table, key: Uint8Array) => string | undefined;
  readonly range: (table: Table, options: RangeOptions) => readonly Row[];
  /** Inside a transaction only. */
  readonly put: (table: Table, key: Uint8Array, value: string) => void;
  /** Inside a transaction only. */
  readonly remove: (table: Table, key: Uint8Array) => void;
  /**
   * Queues `work` as one transaction; whatever it throws takes it back, and so does `false` as its result. Those that
   * wait together share one commit. Resolves when the commit is on the disk.
   */
  readonly run: (work: () => boolean) => Promise<void>;
  /**
   * As `run`, but the steps of `work` are made in slices of a few milliseconds. Between slices the thread does other
   * things, and what reads there sees the last commit; other transactions wait.
   */
  readonly runInSlices: (work: () => Generator<void, boolean>) => Promise<void>;
  /** Why nothing is written any more until the store is opened anew. */
  readonly failure: () => string | undefined;
  /** How long the oldest read transaction has been open, milliseconds. */
  readonly readerAgeMs: () => number;
  readonly close: () => Promise<void>;
};

/** A value above this would take overflow pages of its own for long. */
export const VALUE_BYTES_MAX = 65_536;
/** Address space, not memory; LMDB's own growth of a map has to wait for readers. */
const MAP_BYTES = 2 ** 36;
/** What lmdb takes as the word for taking a transaction back. */
const ABORT = 4.452694326329068e-106;

/** The longest that a transaction in slices holds the thread at a stretch. */
const SLICE_MS = 4;

function wordFor(isKept: boolean): number | undefined {
  return isKept ? undefined : ABORT;
}

/** lmdb takes no word from a promise, and takes a transaction back only where it rejects. */
const TAKEN_BACK = new Error("taken back");

function requireKept(isKept: boolean): void {
  if (!isKept) throw TAKEN_BACK;
}

/** Opens or makes the database in `directory`. */
export function openDatabase(directory: string): Database {
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
  const root: RootDatabase<string, Uint8Array> = open({
    path: directory,
    encoding: "string",
    keyEncoding: "binary",
    cache: false,
    // Groups are made here. lmdb's own leave a promise that nobody holds, and where a commit fails that ends the process.
    eventTurnBatching: false,
    mapSize: MAP_BYTES,
    noMemInit: false,
  });
  let isClosed = false;
  let failure: string | undefined;
  const hasRoom = roomChecker(directory);
  const group = makeGroupCommit(async (work) => {
    try {
      await root.childTransaction(() => {
        const isKept = work();
        return isKept instanceof Promise ? isKept.then(requireKept) : wordFor(isKept);
      });
    } catch (thrown) {
      if (thrown === TAKEN_BACK) return;
      const cause = await commitFailure(thrown);
      if (cause === undefined) throw thrown;
      failure = cause;
      throw unwritable(cause);
    }
  });
  const reading = watchReading();
  const slices = makeSlices(root);
  const requireWritable = () => {
    if (isClosed) throw new Error("the store is closed");
    if (failure !== undefined) throw unwritable(failure);
    if (!hasRoom()) throw unwritable("the disk is nearly full");
  };
  return {
    get: (table, key) => {
      reading.note();
      const snapshot = slices.outsideSnapshot();
      if (snapshot !== undefined) return getFrom(root, snapshot, withTable(table, key));
      return root.get(withTable(table, key));
    },
    range: (table, options) => {
      reading.note();
      return range(root, table, options, slices.outsideSnapshot());
    },
    put: (table, key, value) => {
      void root.put(withTable(table, key), value);
    },
    remove: (table, key) => {
      void root.remove(withTable(table, key));
    },
    run: async (work) => {
      requireWritable();
      await group.run(work);
    },
    runInSlices: async (work) => {
      requireWritable();
      await group.run(() => slices.run(work()));
    },
    failure: () => failure,
    readerAgeMs: () => {
      const since = slices.snapshotSince() ?? reading.since();
      return since === undefined ? 0 : performance.now() - since;
    },
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      await group.idle();
      // After a failed commit lmdb's memory is not to be trusted with more than the end of the process.
      if (failure === undefined) await root.close();
    },
  };
}

/** lmdb opens a read transaction at the first read of an event turn and lets go of it by a timer of 0 ms. */
function watchReading(): { readonly note: () => void; readonly since: () => number | undefined } {
  let since: number | undefined;
  return {
    note: () => {
      if (since !== undefined) return;
      since = performance.now();
      setTimeout(() => {
        since = undefined;
      }, 0);
    },
    since: () => since,
  };
}

type Slices = {
  /** Makes the steps of the open transaction, a slice a turn of the event loop. */
  readonly run: (steps: Generator<void, boolean>) => Promise<boolean>;
  /** For a read from outside of the transaction that is open in slices: what was there before it. */
  readonly outsideSnapshot: () => Transaction | undefined;
  /** When that was taken, as performance.now() has it. */
  readonly snapshotSince: () => number | undefined;
};

/**
 * lmdb lets every read see the writes of an open transaction, but for ranges that name a snapshot. It is taken when the
 * transaction has begun: nothing is committed until it ends, so the snapshot stays the last commit however long it lives.
 */
function makeSlices(root: RootDatabase<string, Uint8Array>): Slices {
  let snapshot: Transaction | undefined;
  let since: number | undefined;
  let isInside = false;
  const slice = (steps: Generator<void, boolean>): IteratorResult<void, boolean> => {
    const end = performance.now() + SLICE_MS;
    isInside = true;
    try {
      let step = steps.next();
      while (step.done !== true && performance.now() < end) step = steps.next();
      return step;
    } finally {
      isInside = false;
    }
  };
  return {
    run: async (steps) => {
      const before = root.useReadTransaction();
      snapshot = before;
      since = performance.now();
      try {
        for (;;) {
          const step = slice(steps);
          if (step.done === true) return step.value;
          await nextTurn();
        }
      } finally {
        snapshot = undefined;
        since = undefined;
        before.done();
      }
    },
    outsideSnapshot: () => (isInside ? undefined : snapshot),
    snapshotSince: () => since,
  };
}

/** One value of a snapshot, by a range of one key. */
function getFrom(root: RootDatabase<string, Uint8Array>, snapshot: Transaction, key: Uint8Array): string | undefined {
  const end = Buffer.alloc(key.length + 1);
  end.set(key);
  for (const { value } of root.getRange({ start: key, end, limit: 1, transaction: snapshot })) return value;
  return undefined;
}

/**
 * Why the commit failed, or undefined where it was the work that threw. What lmdb says of it lies in a promise of its
 * own, which nobody else would catch. A second failure in the same process damages its memory (lmdb 3.5), so after the
 * first nothing is written until the store is opened anew.
 */
async function commitFailure(thrown: unknown): Promise<string | undefined> {
  if (!(thrown instanceof Error) || !("commitError" in thrown)) return undefined;
  try {
    await thrown.commitError;
    return errorText(thrown);
  } catch (cause) {
    return errorText(cause);
  }
}

function unwritable(cause: string): Refusal {
  return new Refusal("not_ready", `the store cannot be written: ${cause}`);
}

/** Writes are refused below this, before a commit can fail half-way. */
const DISK_RESERVE_BYTES = 32 * 2 ** 20;
const DISK_CHECK_MS = 250;

function roomChecker(directory: string): () => boolean {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let hasRoom = true;
  return () => {
    if (performance.now() - checkedAt > DISK_CHECK_MS) {
      checkedAt = performance.now();
      const { bavail, bsize } = statfsSync(directory);
      hasRoom = bavail * bsize > DISK_RESERVE_BYTES;
    }
    return hasRoom;
  };
}

function withTable(table: Table, key: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(key.length + 1);
  bytes[0] = table;
  bytes.set(key, 1);
  return bytes;
}

/** The first bytes behind all keys that begin with `prefix`; the tables end before 0xff. */
export function behindPrefix(prefix: Uint8Array): Uint8Array {
  const bytes = Buffer.from(prefix);
  for (let at = bytes.length - 1; at >= 0; at--) {
    if (bytes[at]! < 0xff) {
      bytes[at]!++;
      return bytes.subarray(0, at + 1);
    }
  }
  return Buffer.from([0xff]);
}

function range(
  root: RootDatabase<string, Uint8Array>,
  table: Table,
  options: RangeOptions,
  transaction: Transaction | undefined,
): readonly Row[] {
  const prefix = withTable(table, options.prefix);
  const end = behindPrefix(prefix);
  const after = options.after === undefined ? undefined : withTable(table, options.after);
  const rows: Row[] = [];
  const from = transaction === undefined ? {} : { transaction };
  const iterable = options.reverse
    ? root.getRange({
        ...from,
        start: after ?? end,
        end: prefix,
        reverse: true,
        inclusiveEnd: true,
        exclusiveStart: true,
        limit: options.limit,
      })
    : root.getRange({
        ...from,
        start: after ?? prefix,
        end,
        exclusiveStart: after !== undefined,
        limit: options.limit,
      });
  for (const { key, value } of iterable) rows.push({ key: key.subarray(1), value });
  return rows;
}
