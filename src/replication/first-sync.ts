/**
 * What a node takes that has never agreed with anybody: everything, by pages, from one peer. The keys of all stores have one
 * order, so another peer goes on where one died; what that one lacked, the comparison that follows finds. Zones answer behind
 * the last page, for half of one would answer NXDOMAIN for the rest, and only then anything is forwarded: names of our own zones
 * are nobody else's business, and what is to be blocked is known.
 */
import type { RemoteOptions } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import { PAGES_AT_ONCE } from "./limits.ts";
import type { Answers } from "./messages.ts";

/** How far it is. */
export type FirstSyncProgress = {
  /** Where to go on after a fault; null at the beginning. */
  cursor: string | null;
  /** By which zones of the pages so far become active, and where other names are asked for. */
  readonly activations: RawItem[];
  readonly routes: RawItem[];
};

export type FirstSyncParts = {
  readonly page: (cursor: string | null) => Promise<Answers["page"]>;
  /** Called again before it has settled; what was given first is on the disk first. */
  readonly apply: (items: readonly RawItem[], options: RemoteOptions) => Promise<unknown>;
  /** Resolves when the zones that are active answer. */
  readonly published: () => Promise<void>;
  readonly progress: FirstSyncProgress;
};

/** Resolves behind the last page; rejects where the peer goes away. Pages are asked for while others are applied. */
export async function takeEverything({ page, apply, published, progress }: FirstSyncParts): Promise<void> {
  const { activations, routes } = progress;
  if (progress.cursor === null) activations.length = routes.length = 0;
  const applying: Promise<unknown>[] = [];
  let next: Promise<Answers["page"]> | undefined = page(progress.cursor);
  while (next !== undefined) {
    const { items, rows, cursor }: Answers["page"] = await next;
    next = cursor === null ? undefined : page(cursor);
    // Handled where it is awaited; a fault of the store comes first.
    next?.catch(() => undefined);
    if (applying.length >= PAGES_AT_ONCE) await applying.shift();
    const some = items.filter((item) => !isRoute(item));
    const before = applying.at(-1);
    const own = apply(some, { firstSync: true, partial: true, rows });
    const applied = Promise.all([before, own]).then(() => {
      progress.cursor = cursor;
      activations.push(...items.filter(({ item }) => item === "activation"));
      routes.push(...items.filter(isRoute));
    });
    applied.catch(() => undefined);
    applying.push(applied);
  }
  await Promise.all(applying);
  await apply(activations, { firstSync: true });
  await published();
  await apply(routes, { firstSync: true });
  activations.length = routes.length = 0;
  progress.cursor = null;
}

function isRoute(item: RawItem): boolean {
  return item.item === "object" && (item.kind === "forwarder" || item.kind === "stub-zone");
}
