/**
 * The one LMDB database of a store: one tree, its keys told apart by a byte for the table. Values are text. Reads made
 * inside a transaction's callback see what it wrote; reads outside see the last commit. No read leaves a cursor open.
 */
import { existsSync, mkdirSync, statfsSync } from "node:fs";
import { open } from "lmdb";
import { errorText } from "../base/errors.ts";
import { Refusal } from "../model/refusal.ts";
import { makeGroupCommit } from "./group-commit.ts";
import { type Layers, makeLayers, type Root } from "./layers.ts";
import { bytesOf, type Cell, type KeyText, type RowKey, textOf } from "./overlay.ts";

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
  /** What other stores have of kinds that this version does not know. */
  FOREIGN: 12,
} as const;
export type Table = (typeof TABLE)[keyof typeof TABLE];

export type Row = { readonly key: Uint8Array; readonly value: string };
/** The same with its key as text, which costs a fraction where many rows are read. */
export type TextRow = { readonly key: KeyText; readonly value: string };

/** `lastKey`: the last that was read, whether or not its row is there; undefined where nothing was. */
export type RowPage = {
  readonly rows: readonly Row[];
  readonly lastKey: Uint8Array | undefined;
  readonly isLast: boolean;
};
export type TextPage = {
  readonly rows: readonly TextRow[];
  readonly lastKey: KeyText | undefined;
  readonly isLast: boolean;
};
export type ValuePage = {
  readonly values: readonly string[];
  readonly lastKey: Uint8Array | undefined;
  readonly isLast: boolean;
};

export type RangeOptions = {
  /** Leading bytes of the keys, without the table's. */
  readonly prefix: RowKey;
  /** Keys behind this one only; before it when `reverse`. */
  readonly after?: RowKey;
  readonly limit: number;
  /** Ends the page behind the row with which its values have so many characters, for rows differ a thousandfold in size. */
  readonly charactersMax?: number;
  readonly reverse?: boolean;
};

type KeyOptions = { readonly after?: KeyText; readonly limit: number };

export type Database = {
  readonly get: (table: Table, key: RowKey) => string | undefined;
  readonly range: (table: Table, options: RangeOptions) => readonly Row[];
  /** As `range`, with where it ended. */
  readonly page: (table: Table, options: RangeOptions) => RowPage;
  /** As `page`, with the keys as text. */
  readonly texts: (table: Table, options: RangeOptions) => TextPage;
  /** As `page`, for who needs the values only. */
  readonly values: (table: Table, options: RangeOptions) => ValuePage;
  /** Keys behind `after` as they are committed, without the table's byte. */
  readonly keys: (table: Table, options: KeyOptions) => readonly KeyText[];
  /** Inside a transaction only. */
  readonly put: (table: Table, key: RowKey, value: string) => void;
  /** Inside a transaction only. */
  readonly remove: (table: Table, key: RowKey) => void;
  /**
   * Queues `work` as one transaction; whatever it throws takes it back, and so does `false` as its result. Those that
   * wait together share one commit. Resolves when the commit is on the disk. Beside a transaction in slices it stands before
   * that one; where the two meet it is taken back, `takenBack` hears of it, and `work` is called once more, behind it.
   */
  readonly run: (work: () => boolean, takenBack?: () => void) => Promise<void>;
  /**
   * As `run`, but the steps of `work` are made in slices of a few milliseconds, one such transaction at a time. Between slices
   * the thread does other things, and what reads there sees the last commit; see docs/decisions/transactions-in-slices.md.
   */
  readonly runInSlices: (work: () => Generator<void, boolean>) => Promise<void>;
  /** Why nothing is written any more until the store is opened anew. */
  readonly failure: () => string | undefined;
  /** How long the oldest read transaction has been open, milliseconds. */
  readonly readerAgeMs: () => number;
  readonly close: () => Promise<void>;
};

/** What another thread reads beside the one that writes; none of it is shared with that one. */
export type DatabaseReader = Pick<Database, "get" | "values"> & {
  /** What is read from now on, until the event turn ends, is as it was at one moment: that of the last commit. */
  readonly renew: () => void;
  readonly close: () => Promise<void>;
};

/** The folder of the node's data directory that a store lies in. */
export const STORE_FOLDER = "store";

/** A value above this would take overflow pages of its own for long. */
export const VALUE_BYTES_MAX = 65_536;
/** Address space, not memory; LMDB's own growth of a map has to wait for readers. */
const MAP_BYTES = 2 ** 36;
/**
 * A batch begins when all of it is there: a thread that dies while it hands one over leaves nothing half begun. lmdb's
 * declarations do not know the option.
 */
const WHOLE_BATCHES: object = { batchStartThreshold: Number.MAX_SAFE_INTEGER };

/**
 * Keys are written where lmdb has them, and read without the table: lmdb looks for where it was by such a key only in an
 * iteration that goes on behind other work, and there is none here.
 */
const KEYS = {
  writeKey: (key: RowKey, target: Buffer, start: number): number => {
    if (typeof key !== "string") target.set(key, start);
    else if (target.write(key, start, "latin1") < key.length) throw new RangeError(`a key of ${key.length} bytes`);
    return start + key.length;
  },
  readKey: (source: Buffer, start: number, end: number): KeyText => source.toString("latin1", start + 1, end),
};

function openRoot(directory: string): Root {
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
  return open<string, KeyText>({
    path: directory,
    encoding: "string",
    keyEncoder: KEYS,
    cache: false,
    // Groups are made here. lmdb's own leave a promise that nobody holds, and where a commit fails that ends the process.
    eventTurnBatching: false,
    ...WHOLE_BATCHES,
    mapSize: MAP_BYTES,
    noMemInit: false,
  });
}

/** Opens the database in `directory`, which is there, to read it. */
export function openDatabaseReader(directory: string): DatabaseReader {
  const root: Root = open<string, KeyText>({
    path: directory,
    encoding: "string",
    keyEncoder: KEYS,
    cache: false,
    readOnly: true,
    mapSize: MAP_BYTES,
  });
  const reading: Reading = { root, written: () => [] };
  return {
    get: (table, key) => root.get(textWithTable(table, key)),
    values: (table, options) => valuesOf(rowsOf(reading, table, options)),
    renew: () => root.resetReadTxn(),
    close: () => root.close(),
  };
}

/** Opens or makes the database in `directory`. */
export function openDatabase(directory: string): Database {
  const root = openRoot(directory);
  let isClosed = false;
  let failure: string | undefined;
  const hasRoom = roomChecker(directory);
  const layers = makeLayers(root);
  const commit = async () => {
    if (failure !== undefined) {
      layers.dropGroup();
      throw unwritable(failure);
    }
    try {
      await layers.commit();
    } catch (thrown) {
      failure = await commitFailure(thrown);
      throw unwritable(failure);
    }
  };
  const group = makeGroupCommit({ begin: layers.beginGroup, commit, mayRunBeside: layers.mayRunBeside });
  const reading = watchReading();
  /** What waited while a commit failed would run on what is not there. */
  const requireWhole = () => {
    if (failure !== undefined) throw unwritable(failure);
  };
  const requireWritable = () => {
    if (isClosed) throw new Error("the store is closed");
    requireWhole();
    if (!hasRoom()) throw unwritable("the disk is nearly full");
  };
  return {
    ...readsOf(layers, reading.note),
    put: (table, key, value) => layers.set(textWithTable(table, key), value),
    remove: (table, key) => layers.set(textWithTable(table, key), null),
    run: async (work, takenBack) => {
      requireWritable();
      await group.run(() => {
        requireWhole();
        return layers.runWhole(work, takenBack);
      });
    },
    runInSlices: async (work) => {
      requireWritable();
      await group.runLong(async () => {
        requireWhole();
        await layers.runInSlices(work());
      });
    },
    failure: () => failure,
    readerAgeMs: () => {
      const since = reading.since();
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

type Reads = Pick<Database, "get" | "range" | "page" | "texts" | "values" | "keys">;

/** `note` is called before each. */
function readsOf(layers: Layers, note: () => void): Reads {
  return {
    get: (table, key) => {
      note();
      return layers.get(textWithTable(table, key));
    },
    range: (table, options) => {
      note();
      return pageOf(layers, table, options).rows;
    },
    page: (table, options) => {
      note();
      return pageOf(layers, table, options);
    },
    texts: (table, options) => {
      note();
      return rowsOf(layers, table, options);
    },
    values: (table, options) => {
      note();
      return valuesOf(rowsOf(layers, table, options));
    },
    keys: (table, options) => {
      note();
      return keysOf(layers, table, options);
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

/**
 * Why the commit failed. What lmdb says of it lies in a promise of its own, which nobody else would catch. A second failure in the same process damages its memory (lmdb 3.5), so after the
 * first nothing is written until the store is opened anew.
 */
async function commitFailure(thrown: unknown): Promise<string> {
  if (!(thrown instanceof Error) || !("commitError" in thrown)) return errorText(thrown);
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

function textWithTable(table: Table, key: RowKey): KeyText {
  return String.fromCharCode(table) + (typeof key === "string" ? key : textOf(key));
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

/** Where rows come from: the disk, and what lies over it. */
type Reading = Pick<Layers, "root" | "written">;

function pageOf(layers: Reading, table: Table, options: RangeOptions): RowPage {
  const { rows, lastKey, isLast } = rowsOf(layers, table, options);
  return {
    rows: rows.map(({ key, value }) => ({ key: bytesOf(key), value })),
    lastKey: lastKey === undefined ? undefined : bytesOf(lastKey),
    isLast,
  };
}

function valuesOf({ rows, lastKey, isLast }: TextPage): ValuePage {
  const values = rows.map(({ value }) => value);
  return { values, lastKey: lastKey === undefined ? undefined : bytesOf(lastKey), isLast };
}

function keysOf({ root }: Reading, table: Table, { after, limit }: KeyOptions): readonly KeyText[] {
  const head = String.fromCharCode(table);
  const start = after === undefined ? head : `${head}${after}\0`;
  return Array.from(root.getKeys({ start, end: String.fromCharCode(table + 1), limit }));
}

/** Keys from `start` on and before `end`, with the byte of their table. */
type Bounds = { readonly start: KeyText; readonly end: KeyText };

function boundsOf(table: Table, { prefix, after, reverse = false }: RangeOptions): Bounds {
  const first = textWithTable(table, prefix);
  const end = textOf(behindPrefix(bytesOf(first)));
  if (after === undefined) return { start: first, end };
  const last = textWithTable(table, after);
  // The least key behind `after` is that key with a zero byte.
  return reverse ? { start: first, end: last } : { start: `${last}\0`, end };
}

function rowsOf(layers: Reading, table: Table, options: RangeOptions): TextPage {
  const { limit, charactersMax = Number.POSITIVE_INFINITY, reverse = false } = options;
  const bounds = boundsOf(table, options);
  const written = layers.written(bounds.start, bounds.end).map(({ key, value }) => ({ key: key.slice(1), value }));
  // Each row that is not committed hides one that is, at most.
  const stored: TextRow[] = [];
  let characters = 0;
  let cutAt: KeyText | undefined;
  const { start, end } = bounds;
  const range = reverse ? { start: end, end: start, reverse, exclusiveStart: true, inclusiveEnd: true } : bounds;
  for (const row of layers.root.getRange({ ...range, limit: limit + written.length })) {
    stored.push(row);
    characters += row.value.length;
    if (characters < charactersMax) continue;
    cutAt = row.key;
    break;
  }
  const all = written.length === 0 ? stored : merged(stored, upTo(written, cutAt, reverse), reverse);
  const rows = all.length > limit ? all.slice(0, limit) : all;
  // A page that was cut may have lost its last rows to a transaction: who goes on behind it goes on where it was cut.
  const lastKey = cutAt !== undefined && all.length <= limit ? cutAt : rows.at(-1)?.key;
  return { rows, lastKey, isLast: cutAt === undefined && rows.length < limit };
}

/** What lies behind the end of a page belongs to the next one. */
function upTo(cells: readonly Cell[], cutAt: KeyText | undefined, reverse: boolean): readonly Cell[] {
  if (cutAt === undefined) return cells;
  return cells.filter(({ key }) => (reverse ? key >= cutAt : key <= cutAt));
}

/** Both in the order asked for; of two with one key the written one counts. */
function merged(stored: readonly TextRow[], written: readonly Cell[], reverse: boolean): readonly TextRow[] {
  const rows: TextRow[] = [];
  const cells = reverse ? written.toReversed() : written;
  let at = 0;
  const take = ({ key, value }: Cell) => {
    if (value !== null) rows.push({ key, value });
  };
  for (const row of stored) {
    let cell = cells[at];
    while (cell !== undefined && (reverse ? cell.key > row.key : cell.key < row.key)) {
      take(cell);
      cell = cells[++at];
    }
    if (cell?.key !== row.key) rows.push(row);
  }
  for (const cell of cells.slice(at)) take(cell);
  return rows;
}
