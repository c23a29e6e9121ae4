/** Which question an entry of the cache answers, for a word that another thread found an entry at some time ago. */

import type { CacheWriter } from "../image/cache.ts";
import { ENTRY } from "../image/cache.ts";
import { nameAt, openCacheView, refreshCache } from "../image/cache-view.ts";
import type { SharedImage } from "../image/shared.ts";
import type { Asked } from "./resolver-types.ts";

/** To be called by the thread that writes the cache, so that nothing changes under it. */
export function createAskedOf(
  shared: SharedImage,
  cache: Pick<CacheWriter, "holds">,
): (entry: number) => Asked | undefined {
  const view = openCacheView(shared);
  return (entry) => {
    refreshCache(view);
    if (!cache.holds(entry)) return undefined;
    const { words, bytes } = view;
    const key = words[entry + ENTRY.KEY]!;
    const at = nameAt(view, entry);
    const name = new Uint8Array((key >>> 24) + 1);
    name.set(bytes.subarray(at, at + name.length - 1));
    return { name, type: key & 0xffff, flags: (key >>> 16) & 0xff, route: words[entry + ENTRY.ROUTE]! };
  };
}
