/** The answer to a GET of a list of objects: complete and streamed, or one page. */
import { openPage, type ScanOptions } from "../../commands/scan.ts";
import { keyBytes } from "../../model/keys.ts";
import type { Kind, NaturalKey } from "../../model/objects.ts";
import { Refusal } from "../../model/refusal.ts";
import { LIST_PAGE_MAX, type Stored, type StoreReader } from "../../store/store.ts";
import { cursorOf, jsonReply, keyOfCursor, pageOf } from "../paging.ts";
import type { Reply } from "../route.ts";

export type ListInput<K extends Kind> = {
  readonly kind: K;
  /** Undefined: nothing can fit the filter. */
  readonly scan: ScanOptions<K> | undefined;
  readonly query: { readonly limit?: number; readonly cursor?: string };
  readonly signal: AbortSignal;
  readonly view: (stored: Stored<K>) => unknown;
};

/** The key that a cursor stands for, held against the list it is used on. Throws `invalid_request`. */
export function keyWithin(
  kind: Kind,
  prefix: NaturalKey | undefined,
  cursor: string | undefined,
): NaturalKey | undefined {
  const key = keyOfCursor(cursor);
  if (key === undefined) return undefined;
  if ((prefix ?? []).every((part, index) => key[index] === part) && isKey(kind, key)) return key;
  const detail = "is a cursor of another list";
  throw new Refusal("invalid_request", `?cursor ${detail}`, [{ pointer: "?cursor", detail }]);
}

function isKey(kind: Kind, key: NaturalKey): boolean {
  try {
    keyBytes(kind, key);
    return true;
  } catch {
    return false;
  }
}

/** Without limit and cursor the whole list, however long; otherwise one page. Either in bounded memory. */
export function listReply<K extends Kind>(
  store: Pick<StoreReader, "list">,
  input: ListInput<K>,
): Promise<Reply> | Reply {
  const { kind, scan, query, signal, view } = input;
  const after = keyWithin(kind, scan?.prefix, query.cursor);
  if (scan === undefined) return { body: pageOf([], undefined) };
  const isPage = query.limit !== undefined || after !== undefined;
  const limit = isPage ? (query.limit ?? LIST_PAGE_MAX) : Number.POSITIVE_INFINITY;
  const turn = openPage(store, kind, { ...scan, after }, limit);
  const viewed = (isFull: boolean) => {
    const { items, end } = turn(isFull);
    const views = items.map(view);
    return end === undefined ? { items: views } : { items: views, end: { next: end.next && cursorOf(end.next) } };
  };
  return jsonReply(viewed, { isPage, signal });
}
