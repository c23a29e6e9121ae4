/** Lists of any length in bounded memory and bounded turns: the store is read by key, a slice at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Kind, NaturalKey } from "../model/objects.ts";
import type { Stored, StoreReader } from "../store/store.ts";

/** Objects read in one turn of the event loop: about a millisecond. */
const SLICE = 500;

export type ScanOptions<K extends Kind> = {
  readonly prefix?: NaturalKey;
  /** Start behind this key, whether or not it is still there. */
  readonly after?: NaturalKey | undefined;
  /** Keeps what it returns true for. */
  readonly accept?: ((stored: Stored<K>) => boolean) | undefined;
  /** Ends the scan when the reader has gone. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Objects in the order of keys, in slices that may be empty. Writes between slices are seen or not seen, each object is
 * given at most once, and what is there all the while is given.
 */
export async function* scanSlices<K extends Kind>(
  store: Pick<StoreReader, "list">,
  kind: K,
  options: ScanOptions<K>,
): AsyncGenerator<readonly Stored<K>[]> {
  const { prefix, accept, signal } = options;
  let { after } = options;
  for (;;) {
    const slice = store.list(kind, {
      limit: SLICE,
      ...(prefix === undefined ? {} : { prefix }),
      ...(after === undefined ? {} : { after }),
    });
    yield accept === undefined ? slice : slice.filter(accept);
    const last = slice.at(-1);
    if (last === undefined || slice.length < SLICE) return;
    after = last.key;
    await nextTurn();
    if (signal?.aborted) return;
  }
}

export type Page<K extends Kind> = {
  readonly items: readonly Stored<K>[];
  /** Key to go on behind; undefined at the end. */
  readonly next: NaturalKey | undefined;
};

/** The first `limit` objects of a scan. One more is looked for, so that a last page never promises another. */
export async function scanPage<K extends Kind>(
  store: Pick<StoreReader, "list">,
  kind: K,
  options: ScanOptions<K>,
  limit: number,
): Promise<Page<K>> {
  const found: Stored<K>[] = [];
  for await (const slice of scanSlices(store, kind, options)) {
    found.push(...slice);
    if (found.length > limit) break;
  }
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? items.at(-1)?.key : undefined };
}
