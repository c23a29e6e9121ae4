/** Lists of any length in bounded memory and bounded turns: the store is read by key, a slice at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Kind, NaturalKey } from "../model/objects.ts";
import type { Stored, StoreReader } from "../store/store.ts";

/** Objects read in one turn of the event loop, and their text in characters: about a millisecond of either. */
const SLICE = 500;
const SLICE_CHARACTERS = 65_536;

export type ScanOptions<K extends Kind> = {
  readonly prefix?: NaturalKey;
  /** Start behind this key, whether or not it is still there. */
  readonly after?: NaturalKey | undefined;
  /** Keeps what it returns true for. */
  readonly accept?: ((stored: Stored<K>) => boolean) | undefined;
  /** Ends the scan when the reader has gone. */
  readonly signal?: AbortSignal | undefined;
};

/** Gives the next slice, which may be empty, at each call; undefined at the end. */
export type Scanner<K extends Kind> = () => readonly Stored<K>[] | undefined;

/**
 * Objects in the order of keys, a slice at each call; between calls nothing but a key is held. Writes between slices are
 * seen or not seen, each object is given at most once, and what is there all the while is given.
 */
export function openScan<K extends Kind>(
  store: Pick<StoreReader, "list">,
  kind: K,
  { prefix, accept, after: start }: Omit<ScanOptions<K>, "signal">,
): Scanner<K> {
  let after = start;
  return () => {
    const slice = store.list(kind, {
      limit: SLICE,
      charactersMax: SLICE_CHARACTERS,
      ...(prefix === undefined ? {} : { prefix }),
      ...(after === undefined ? {} : { after }),
    });
    const last = slice.at(-1);
    if (last === undefined) return undefined;
    after = last.key;
    return accept === undefined ? slice : slice.filter(accept);
  };
}

/** The same as a stream of slices, each in a turn of its own, until the reader has gone. */
export async function* scanSlices<K extends Kind>(
  store: Pick<StoreReader, "list">,
  kind: K,
  { signal, ...options }: ScanOptions<K>,
): AsyncGenerator<readonly Stored<K>[]> {
  const next = openScan(store, kind, options);
  for (let slice = next(); slice !== undefined; slice = next()) {
    yield slice;
    await nextTurn();
    if (signal?.aborted) return;
  }
}

/** What one turn of a page or of a whole list gives. */
export type ScanTurn<K extends Kind> = {
  readonly items: readonly Stored<K>[];
  /** There at the end: the key to go on behind, or undefined where nothing follows. */
  readonly end?: { readonly next: NaturalKey | undefined };
};

/**
 * The first `limit` objects of a scan, a turn at each call, and fewer once a call says that the page is full. One more is
 * looked for, so that a last page never promises another.
 */
export function openPage<K extends Kind>(
  store: Pick<StoreReader, "list">,
  kind: K,
  options: Omit<ScanOptions<K>, "signal">,
  limit: number,
): (isFull: boolean) => ScanTurn<K> {
  const scan = openScan(store, kind, options);
  let left = limit;
  let last: NaturalKey | undefined;
  return (isFull) => {
    const slice = scan();
    if (slice === undefined) return { items: [], end: { next: undefined } };
    const items = slice.slice(0, isFull && last !== undefined ? 0 : left);
    left -= items.length;
    last = items.at(-1)?.key ?? last;
    return slice.length > items.length ? { items, end: { next: last } } : { items };
  };
}
