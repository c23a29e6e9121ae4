/** What was kept of kinds that an earlier version did not know, merged by the version that knows them. */
import { TABLE } from "./database.ts";
import { type Engine, runMerge } from "./engine.ts";
import { foreignOf, openForeign } from "./foreign.ts";

const PAGE_ROWS = 200;
const NOTHING = new Uint8Array();

/** At the start, before anybody reads. What dies half-way is merged again, which changes nothing. */
export async function absorbForeign(engine: Engine): Promise<void> {
  const { database, seal } = engine;
  for (let after: Uint8Array | undefined, isLast = false; !isLast; ) {
    const page = database.page(TABLE.FOREIGN, { prefix: NOTHING, limit: PAGE_ROWS, ...(after && { after }) });
    const known = page.rows
      .map(({ key, value }) => ({ key, item: openForeign(key, value, seal) }))
      .filter(({ item }) => foreignOf(item) === undefined);
    if (known.length > 0) {
      await runMerge(
        engine,
        known.map(({ item }) => item),
        { firstSync: true },
      );
      await database.run(() => {
        for (const { key } of known) database.remove(TABLE.FOREIGN, key);
        return true;
      });
    }
    after = page.lastKey;
    isLast = page.isLast;
  }
}
