/** A small index in memory beside the store: ids of objects by something else than their key. */
import type { Bodies, Kind } from "../model/objects.ts";
import { LIST_PAGE_MAX, type Store, type Stored } from "../store/store.ts";

export type StoreIndex = {
  /** Ids of objects that the store holds or, where `expect` told of them, that it may come to hold. */
  readonly idsOf: (value: string) => readonly string[];
  /**
   * A transaction writes an object with that id. The store's changes tell of it when it is on disk, and the next transaction
   * runs before that: without this, it would not find what the one before it wrote.
   */
  readonly expect: (value: string, id: string) => void;
  /** What was expected did not come: its transaction was a rehearsal, or failed. */
  readonly forget: (value: string, id: string) => void;
  /** It follows the store no more. */
  readonly close: () => void;
};

type Identified = { [K in Kind]: Bodies[K] extends { readonly id: string } ? K : never }[Kind];

/** Reads all objects of the kind once and then follows the store's changes, its own and those that other nodes send. */
export function createStoreIndex<K extends Identified>(
  store: Store,
  kind: K,
  attributeOf: (body: Bodies[K]) => string | undefined,
): StoreIndex {
  const ids = new Map<string, Set<string>>();
  const expect = (value: string, id: string): void => {
    const known = ids.get(value);
    if (known === undefined) ids.set(value, new Set([id]));
    else known.add(id);
  };
  const forget = (value: string, id: string): void => {
    const known = ids.get(value);
    if (known === undefined) return;
    known.delete(id);
    if (known.size === 0) ids.delete(value);
  };
  const add = ({ body }: Stored<K>): void => {
    const value = attributeOf(body);
    if (value !== undefined) expect(value, body.id);
  };
  const remove = ({ body }: Stored<K>): void => {
    const value = attributeOf(body);
    if (value !== undefined) forget(value, body.id);
  };
  const isOfKind = (stored: Stored): stored is Stored<K> => stored.kind === kind;
  const close = store.onChange(({ changes }) => {
    for (const { before, after } of changes) {
      if (before !== undefined && isOfKind(before)) remove(before);
      if (after !== undefined && isOfKind(after)) add(after);
    }
  });
  for (let page = store.list(kind, { limit: LIST_PAGE_MAX }); ; ) {
    for (const stored of page) add(stored);
    const last = page.at(-1);
    if (last === undefined || page.length < LIST_PAGE_MAX) break;
    page = store.list(kind, { limit: LIST_PAGE_MAX, after: last.key });
  }
  return { idsOf: (value) => [...(ids.get(value) ?? [])], expect, forget, close };
}
