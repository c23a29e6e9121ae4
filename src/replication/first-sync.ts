/**
 * What a node takes that has never agreed with anybody: everything, by pages, from one peer. The keys of all stores have one
 * order, so another peer goes on where one died; what that one lacked, the comparison that follows finds. Zones answer behind
 * the last page: half of one would answer NXDOMAIN for the rest.
 */
import type { RemoteOptions } from "../store/merge.ts";
import type { RawItem } from "../store/raw-items.ts";
import type { Answers } from "./messages.ts";

/** How far it is. */
export type FirstSyncProgress = {
  /** Where to go on after a fault; null at the beginning. */
  cursor: string | null;
  /** By which zones of the pages so far become active. */
  readonly held: RawItem[];
};

export type FirstSyncParts = {
  readonly page: (cursor: string | null) => Promise<Answers["page"]>;
  readonly apply: (items: readonly RawItem[], options: RemoteOptions) => Promise<unknown>;
  readonly progress: FirstSyncProgress;
};

/** Resolves behind the last page; rejects where the peer goes away. Pages are asked for while others are applied. */
export async function takeEverything({ page, apply, progress }: FirstSyncParts): Promise<void> {
  if (progress.cursor === null) progress.held.length = 0;
  let applied: Promise<unknown> = Promise.resolve();
  let next: Promise<Answers["page"]> | undefined = page(progress.cursor);
  while (next !== undefined) {
    const { items, cursor }: Answers["page"] = await next;
    next = cursor === null ? undefined : page(cursor);
    // Handled where it is awaited; a fault of the store comes first.
    next?.catch(() => undefined);
    await applied;
    applied = apply(items, { firstSync: true, partial: true }).then(() => {
      progress.cursor = cursor;
      progress.held.push(...items.filter(({ item }) => item === "activation"));
    });
    applied.catch(() => undefined);
  }
  await applied;
  await apply(progress.held, { firstSync: true });
  progress.held.length = 0;
  progress.cursor = null;
}
