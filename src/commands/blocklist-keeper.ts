/**
 * Keeps the parts of the blocklist in order: removes those that no list names any more, and puts back what another node
 * removed while this one had begun to name it again, or is about to.
 *
 * A part stays for an hour after the index last changed: parts and index come from other nodes in any order, another node
 * may have put a list that shares parts with the one before and not have told yet, and an answer that shows the former list
 * may be under way.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { BLOCKLIST_KEY, EMPTY_BLOCKLIST, partsOf } from "../model/blocklist.ts";
import { BLOCKLIST_PARTS_KEPT_MS } from "../model/limits.ts";
import type { BlocklistPartBody, NaturalKey } from "../model/objects.ts";
import { stampMs } from "../store/stamp.ts";
import type { ChangeBatch, Store, StoreReader } from "../store/store.ts";

export type BlocklistKeeperOptions = {
  readonly store: Store;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
};

export type BlocklistKeeper = AsyncDisposable & {
  /** Looks for parts to remove. Resolves when those are removed. */
  readonly tidy: () => Promise<void>;
};

const TIDY_MS = 600_000;
/** What one turn reads: some ten parts, most of which stay. */
const PARTS_AT_ONCE = 100;
const CHARACTERS_AT_ONCE = 500_000;

/** Looks by itself now and then. */
export function openBlocklistKeeper({ store, log, now }: BlocklistKeeperOptions): BlocklistKeeper {
  let work: Promise<void> = Promise.resolve();
  let isEnded = false;
  const enter = (run: () => Promise<void>): Promise<void> => {
    work = work.then(run).catch((thrown) => log("error", `the blocklist could not be tidied: ${errorText(thrown)}`));
    return work;
  };
  const tidy = () => enter(() => removeUnnamed(store, now, () => isEnded));
  const end = store.onChange((batch) => {
    const lost = lostParts(store, batch, now() - BLOCKLIST_PARTS_KEPT_MS);
    if (lost.length > 0) void enter(() => putBack(store, lost));
  });
  const timer = setInterval(() => void tidy(), TIDY_MS);
  timer.unref();
  return {
    tidy,
    async [Symbol.asyncDispose]() {
      isEnded = true;
      end();
      clearInterval(timer);
      await work;
    },
  };
}

function namedParts(store: Pick<StoreReader, "get">): ReadonlySet<string> {
  return new Set(partsOf(store.get("blocklist", BLOCKLIST_KEY)?.body ?? EMPTY_BLOCKLIST));
}

/**
 * Parts that went with this batch and should not have: the index names them, or they were written later than `oldest`, for
 * an index that has not come yet. Who removed them knew another index, or an earlier version of them.
 */
function lostParts(store: Store, { changes }: ChangeBatch, oldest: number): readonly BlocklistPartBody[] {
  const lost: BlocklistPartBody[] = [];
  let named: ReadonlySet<string> | undefined;
  for (const { before, after } of changes) {
    if (before?.kind !== "blocklist-part" || after !== undefined || !("hash" in before.body)) continue;
    named ??= namedParts(store);
    if (named.has(before.body.hash) || stampMs(before.stamp) > oldest) lost.push(before.body);
  }
  return lost;
}

async function putBack(store: Store, parts: readonly BlocklistPartBody[]): Promise<void> {
  await store.write((tx) => {
    for (const part of parts) {
      if (tx.get("blocklist-part", [part.hash]) === undefined) tx.put("blocklist-part", part);
    }
  });
}

async function removeUnnamed(store: Store, now: () => number, isEnded: () => boolean): Promise<void> {
  const oldest = now() - BLOCKLIST_PARTS_KEPT_MS;
  const index = store.get("blocklist", BLOCKLIST_KEY);
  if (index !== undefined && stampMs(index.stamp) > oldest) return;
  if (store.count("blocklist-part") <= namedParts(store).size) return;
  let after: NaturalKey | undefined;
  do {
    after = await removeSome(store, after, oldest);
  } while (after !== undefined && !isEnded());
}

/** Looks at the next parts. Returns the key to go on behind, undefined at the end. */
async function removeSome(
  store: Store,
  after: NaturalKey | undefined,
  oldest: number,
): Promise<NaturalKey | undefined> {
  return store.write((tx) => {
    const options = { limit: PARTS_AT_ONCE, charactersMax: CHARACTERS_AT_ONCE };
    const page = tx.list("blocklist-part", { ...options, ...(after === undefined ? {} : { after }) });
    const named = namedParts(tx);
    for (const { key, body, stamp } of page) {
      if (!named.has(body.hash) && stampMs(stamp) <= oldest) tx.delete("blocklist-part", key);
    }
    return page.at(-1)?.key;
  });
}
