/**
 * Transactions in the memory of one thread, and the one batch of rows that a group of them becomes. While a group is on
 * its way to the disk the transactions of the next one run on top of it.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { asBinary, type RootDatabase } from "lmdb";
import { type Cell, type KeyText, layOver, layUnder, makeOverlay, type Overlay, type Written } from "./overlay.ts";
import { makeReadSet, type ReadSet } from "./read-set.ts";

/** LMDB takes no longer ones. */
const KEY_BYTES_MAX = 1978;

/** The longest that a transaction in slices holds the thread at a stretch. */
const SLICE_MS = 4;

/** A group of so many rows goes to lmdb in the same turn of the event loop in which it is closed. */
const AT_ONCE_ROWS_MAX = 2_048;

/** Beside a group of more rows on its way none in slices begins, so that two imports are not in memory at once. */
const BESIDE_ROWS_MAX = 8_192;

/** Keys are asked for and written with the byte of their table, and read without it. */
export type Root = RootDatabase<string, KeyText>;

export type Layers = {
  /** Inside a transaction's slice with what it and its group wrote; outside what is committed. */
  readonly get: (key: KeyText) => string | undefined;
  /** What is not committed yet and visible here, with keys from `start` on and before `end`. */
  readonly written: (start: KeyText, end: KeyText) => readonly Cell[];
  readonly set: (key: KeyText, value: Written) => void;
  readonly beginGroup: () => void;
  /** Whether a transaction in slices may begin now: no group is on its way, or a small one. */
  readonly mayRunBeside: () => boolean;
  /**
   * "later": a transaction in slices is under way and has read or written what this one writes, so that the one can stand
   * neither before nor behind the other. All that this one wrote is forgotten, `takenBack` is called, and its work is to be
   * done again.
   */
  readonly runWhole: (work: () => boolean, takenBack?: () => void) => "later" | undefined;
  /** One at a time. */
  readonly runInSlices: (steps: Generator<void, boolean>) => Promise<void>;
  /**
   * Closes the group and brings it to the disk, one at a time. Where that fails, the group after it is built on what is
   * not there, and has to be taken back with `dropGroup`.
   */
  readonly commit: () => Promise<void>;
  readonly dropGroup: () => void;
  readonly root: Root;
};

/** What a transaction in slices wrote, and what it read of others. */
type Sliced = { readonly overlay: Overlay; readonly reads: ReadSet };

/**
 * Transactions live in the memory of this thread until their group is one batch of rows for lmdb: its own transactions
 * with a callback end the whole process where the thread dies inside of one, and DNS with it.
 */
export function makeLayers(root: Root): Layers {
  let group = makeOverlay();
  /** The group that is on its way to the disk; unchanging. */
  let leaving = makeOverlay();
  /** Of the transaction whose code runs right now. */
  let own: Overlay | undefined;
  /** Of the transaction in slices that is under way. */
  let sliced: Sliced | undefined;
  const within = <T>(overlay: Overlay, run: () => T): T => {
    own = overlay;
    try {
      return run();
    } finally {
      own = undefined;
    }
  };
  return {
    root,
    get: (key) => {
      if (own === undefined) return root.get(key);
      let written = own.get(key);
      if (written === undefined) {
        if (own === sliced?.overlay) sliced.reads.addKey(key);
        written = group.get(key);
        if (written === undefined) written = leaving.get(key);
      }
      return written === undefined ? root.get(key) : (written ?? undefined);
    },
    written: (start, end) => {
      if (own === undefined) return [];
      if (own === sliced?.overlay) sliced.reads.addRange(start, end);
      if (group.size() + leaving.size() === 0) return own.range(start, end);
      return rangeOf([leaving, group, own], start, end);
    },
    set: (key, value) => {
      if (own === undefined) throw new Error("a row is written outside of a transaction");
      if (key.length > KEY_BYTES_MAX) throw new RangeError(`a key of ${key.length} bytes`);
      own.set(key, value);
    },
    // Its reads see all that was committed before it.
    beginGroup: () => root.resetReadTxn(),
    mayRunBeside: () => leaving.size() <= BESIDE_ROWS_MAX,
    runWhole: (work, takenBack) => {
      const overlay = makeOverlay();
      if (!within(overlay, work)) return undefined;
      const isLater = sliced !== undefined && meets(sliced, overlay);
      if (isLater) takenBack?.();
      else group = joined(group, overlay);
      return isLater ? "later" : undefined;
    },
    runInSlices: async (steps) => {
      const overlay = makeOverlay();
      sliced = { overlay, reads: makeReadSet() };
      await inTurns(() => {
        const step = within(overlay, () => slice(steps));
        // In the turn of its end, so that it stands where the feed of the store has it.
        if (step.done === true && step.value) group = joined(group, overlay);
        return step.done === true;
      }).finally(() => {
        sliced = undefined;
      });
    },
    commit: async () => {
      if (group.size() === 0) return;
      leaving = group;
      group = makeOverlay();
      try {
        await writeRows(root, leaving);
      } finally {
        leaving = makeOverlay();
        // What runs from now on finds in the database what it found in memory.
        root.resetReadTxn();
      }
    },
    dropGroup: () => {
      group = makeOverlay();
    },
  };
}

/** The second over the first. A large one is not copied onto a small one. */
function joined(below: Overlay, above: Overlay): Overlay {
  if (below.size() > above.size()) {
    layOver(below, above);
    return below;
  }
  layUnder(above, below);
  return above;
}

/** Calls `next` once in each turn of the event loop, until it is done. */
async function inTurns(next: () => boolean): Promise<void> {
  while (!next()) await nextTurn();
}

/** What lies there, the last of them uppermost. */
function rangeOf(layers: readonly Overlay[], start: KeyText, end: KeyText): readonly Cell[] {
  const all = makeOverlay();
  for (const layer of layers) for (const { key, value } of layer.range(start, end)) all.set(key, value);
  return all.range(start, end);
}

async function writeRows(root: Root, overlay: Overlay): Promise<void> {
  const isSmall = overlay.size() <= AT_ONCE_ROWS_MAX;
  const rows = isSmall ? Array.from(overlay.entries(), encodedRow) : await encodedInSlices(overlay);
  await root.batch(() => {
    for (const { key, value } of rows) void (value === undefined ? root.remove(key) : root.put(key, value));
  });
}

/** Whether that transaction in slices has read or written anything that `overlay` writes. */
function meets(sliced: Sliced, overlay: Overlay): boolean {
  for (const [key] of overlay.entries()) {
    if (sliced.overlay.get(key) !== undefined || sliced.reads.has(key)) return true;
  }
  return false;
}

/** As many steps as there is time for. */
function slice(steps: Generator<void, boolean>): IteratorResult<void, boolean> {
  const end = performance.now() + SLICE_MS;
  let step = steps.next();
  while (step.done !== true && performance.now() < end) step = steps.next();
  return step;
}

type EncodedRow = { readonly key: KeyText; readonly value: string | undefined };

function encodedRow([key, value]: readonly [KeyText, Written]): EncodedRow {
  // lmdb's declarations know strings only; its mark says that the bytes are the value as it is.
  return { key, value: value === null ? undefined : (asBinary(Buffer.from(value)) as unknown as string) };
}

/** Encoded before the batch, because lmdb takes a batch at one stretch. */
async function encodedInSlices(overlay: Overlay): Promise<readonly EncodedRow[]> {
  const rows: EncodedRow[] = [];
  let end = performance.now() + SLICE_MS;
  for (const entry of overlay.entries()) {
    rows.push(encodedRow(entry));
    if ((rows.length & 63) !== 0 || performance.now() < end) continue;
    await nextTurn();
    end = performance.now() + SLICE_MS;
  }
  return rows;
}
