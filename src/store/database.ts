/**
 * The one LMDB database of a store: one tree, its keys told apart by a byte for the table. Values are text. Reads made
 * inside a transaction's callback see what it wrote; reads outside see the last commit. No read leaves a cursor open.
 */
import { open, type RootDatabase } from "lmdb";
import { codedError, errorText } from "../base/errors.ts";
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

/** Opens or makes the database in `directory`. */
export function openDatabase(directory: string): Database {
  const root: RootDatabase<string, Uint8Array> = open({
    path: directory,
    encoding: "string",
    keyEncoding: "binary",
    cache: false,
    mapSize: MAP_BYTES,
    noMemInit: false,
  });
  let isClosed = false;
  const group = makeGroupCommit(async (work) => {
    try {
      await root.childTransaction(() => (work() ? undefined : ABORT));
    } catch (thrown) {
      throw await commitFault(thrown);
    }
  });
  let readingSince: number | undefined;
  // lmdb opens a read transaction at the first read of an event turn and lets go of it by a timer of 0 ms.
  const noteReading = () => {
    if (readingSince !== undefined) return;
    readingSince = performance.now();
    setTimeout(() => {
      readingSince = undefined;
    }, 0);
  };
  return {
    get: (table, key) => {
      noteReading();
      return root.get(withTable(table, key));
    },
    range: (table, options) => {
      noteReading();
      return range(root, table, options);
    },
    put: (table, key, value) => {
      void root.put(withTable(table, key), value);
    },
    remove: (table, key) => {
      void root.remove(withTable(table, key));
    },
    run: async (work) => {
      if (isClosed) throw new Error("the store is closed");
      await group.run(work);
    },
    readerAgeMs: () => (readingSince === undefined ? 0 : performance.now() - readingSince),
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      await group.idle();
      await root.close();
    },
  };
}

/** What lmdb says of a commit that failed lies in a promise of its own, which nobody else would catch. */
async function commitFault(thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof Error) || !("commitError" in thrown)) return thrown;
  try {
    await thrown.commitError;
    return thrown;
  } catch (cause) {
    return codedError("STORE_NOT_WRITTEN", `the store could not be written: ${errorText(cause)}`);
  }
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

function range(root: RootDatabase<string, Uint8Array>, table: Table, options: RangeOptions): readonly Row[] {
  const prefix = withTable(table, options.prefix);
  const end = behindPrefix(prefix);
  const after = options.after === undefined ? undefined : withTable(table, options.after);
  const rows: Row[] = [];
  const iterable = options.reverse
    ? root.getRange({
        start: after ?? end,
        end: prefix,
        reverse: true,
        inclusiveEnd: true,
        exclusiveStart: true,
        limit: options.limit,
      })
    : root.getRange({ start: after ?? prefix, end, exclusiveStart: after !== undefined, limit: options.limit });
  for (const { key, value } of iterable) rows.push({ key: key.subarray(1), value });
  return rows;
}
