/**
 * What a node takes that has never agreed with anybody: everything, by pages, from one peer. The keys of all stores have one
 * order, so another peer goes on where one died; what that one lacked, the comparison that follows finds.
 */
import type { RawItem } from "../store/raw-items.ts";
import type { Answers } from "./messages.ts";

export type FirstSyncParts = {
  readonly page: (cursor: string | null) => Promise<Answers["page"]>;
  readonly apply: (items: readonly RawItem[]) => Promise<unknown>;
  /** Where to go on after a fault; null at the beginning. */
  readonly progress: { cursor: string | null };
};

/** Resolves behind the last page; rejects where the peer goes away. Pages are asked for while others are applied. */
export async function takeEverything({ page, apply, progress }: FirstSyncParts): Promise<void> {
  let applied: Promise<unknown> = Promise.resolve();
  let next: Promise<Answers["page"]> | undefined = page(progress.cursor);
  while (next !== undefined) {
    const { items, cursor }: Answers["page"] = await next;
    next = cursor === null ? undefined : page(cursor);
    // Handled where it is awaited; a fault of the store comes first.
    next?.catch(() => undefined);
    await applied;
    applied = apply(items).then(() => {
      progress.cursor = cursor;
    });
    applied.catch(() => undefined);
  }
  await applied;
  progress.cursor = null;
}
