/** How this node compares itself with one peer, and takes everything from one: the exchanges, with what they need of the rest. */
import type { RawItem } from "../store/raw-items.ts";
import type { ItemRef } from "../store/replica.ts";
import { differsLastingly, type ExchangeOutcome, exchange } from "./exchange.ts";
import { type FirstSyncProgress, takeEverything } from "./first-sync.ts";
import {
  BATCH_ITEMS,
  CALM_WAIT_MS,
  EXCHANGE_MS_MAX,
  FIRST_PAGES_MS,
  KEPT_ITEMS_MAX,
  PUSH_TIMEOUT_MS,
  SLOW_PAGE_MS,
  SOURCE_MS_MAX,
} from "./limits.ts";
import type { Answers, StoreStatus } from "./messages.ts";
import { askOnce, askPeer, type Peer, preferredWay } from "./peer.ts";
import { rootOf } from "./serving.ts";
import { staleSide } from "./staleness.ts";
import { statusOf, type World } from "./world.ts";

export async function askRoot(world: World, peer: Peer): Promise<Answers["root"]> {
  const answered = await askOnce(peer, "root", { root: rootOf(world.options.store), status: statusOf(world) });
  peer.status = answered.status;
  return answered;
}

export async function exchangeWith(world: World, peer: Peer, isFirstSync: boolean): Promise<ExchangeOutcome> {
  const { counters, inbox, sender, options } = world;
  const { store, timers } = options;
  counters.exchanges++;
  const sinceMs = peer.busySinceMs ?? timers.now();
  const time = timeFor(world, peer);
  const outcome = await time.within(
    exchange({
      store,
      isFirstSync,
      mayWait: !isFirstSync && timers.now() - sinceMs < CALM_WAIT_MS,
      status: () => statusOf(world),
      ask: async (ask, question, onPart) => {
        time.check();
        await askPeer(peer, ask, question, onPart);
      },
      push: async (refs) => {
        time.check();
        await push(world, peer, refs);
      },
      pull: (items, bytes) => pull(world, peer, items, bytes),
      underWay: () => peer.outbox.size() + sender.waiting() + inbox.depth(),
      pause: (ms) => pause(world, ms),
      onCompared: (kind) => {
        counters[kind === "root" ? "rootComparisons" : "leafComparisons"]++;
      },
      onStatus: (status) => {
        peer.status = status;
      },
      staleSide: (theirs) => staleWith(world, theirs, peer.nodeId),
    }),
  );
  peer.busySinceMs = outcome.kind === "busy" ? sinceMs : undefined;
  return outcome;
}

function timeFor({ options }: World, peer: Peer) {
  const { timers } = options;
  const text = "a comparison took too long";
  let isOver = false;
  const check = () => {
    if (isOver) throw new Error(text);
  };
  return {
    check,
    within: async <Value>(work: Promise<Value>): Promise<Value> => {
      let cancel = () => {};
      const late = new Promise<never>((_, reject) => {
        cancel = timers.after(EXCHANGE_MS_MAX, () => {
          isOver = true;
          // An answer that has begun would go on.
          for (const { channel } of [...peer.ways]) channel.close(text);
          reject(new Error(text));
        });
      });
      try {
        return await Promise.race([work, late]);
      } finally {
        cancel();
      }
    },
  };
}

/** Whether the peer's store is the same but for what is under way; false where one of them makes its digest. */
export async function holdsTheSame(world: World, peer: Peer): Promise<boolean> {
  const { store } = world.options;
  if (rootOf(store) === null) return false;
  const isOther = await differsLastingly({
    store,
    ask: (ask, question, onPart) => askPeer(peer, ask, question, onPart),
    pause: (ms) => pause(world, ms),
  });
  return !isOther;
}

export function staleWith(world: World, theirs: StoreStatus, nodeId: string): "mine" | "theirs" | "none" {
  return staleSide(
    { ...statusOf(world), nodeId: world.options.store.nodeId },
    { ...theirs, nodeId },
    world.options.nowMs(),
  );
}

/** Through the peer's queue, as all changes; rejects where the way to it ends, its queue is dropped or it does not acknowledge. */
async function push({ sender, options }: World, peer: Peer, refs: readonly ItemRef[]): Promise<void> {
  const way = preferredWay(peer);
  if (way === undefined) throw new Error("not connected");
  if (!sender.addTo(peer, refs)) throw new Error("the peer's queue is full");
  await new Promise<void>((resolve, reject) => {
    const end = (fault: string | undefined) => {
      cancel();
      way.onClosed.delete(closed);
      if (fault === undefined) resolve();
      else reject(new Error(fault));
    };
    const closed = () => end("the connection has ended");
    const cancel = options.timers.after(PUSH_TIMEOUT_MS, () => end("the peer acknowledges nothing"));
    way.onClosed.add(closed);
    peer.outbox.afterAll(() => end(undefined));
  });
}

function pull({ inbox, counters }: World, peer: Peer, items: readonly RawItem[], bytes: number): Promise<number> {
  counters.itemsReceived += items.length;
  return new Promise((resolve, reject) => {
    inbox.offer({
      items,
      bytes,
      from: peer,
      // What is asked for keeps one order, whoever gives it.
      source: inbox,
      onApplied: (refused) => {
        counters.itemsRefusedHere += refused.length;
        resolve(refused.length);
      },
      onFailed: reject,
    });
  });
}

/** Throws where a source cannot be one: it leads in circles, or goes on for ever. What it gave stays, and the next one goes on there. */
function watchPages({ options: { timers } }: World, progress: FirstSyncProgress) {
  const sinceMs = timers.now();
  let pages = 0;
  /** Each 1st, 2nd, 4th, 8th and so on: any circle comes back to one of them. */
  let marked = progress.cursor;
  let markAt = 1;
  const again = (why: string): never => {
    progress.cursor = null;
    throw new Error(why);
  };
  return {
    check: (page: Answers["page"]): Answers["page"] => {
      pages++;
      if (page.cursor === null) return page;
      if (page.cursor === marked) again("the pages of a peer lead in a circle");
      if (pages === markAt) {
        marked = page.cursor;
        markAt *= 2;
      }
      if (progress.activations.length + progress.routes.length > KEPT_ITEMS_MAX) again("a peer has too many zones");
      const tookMs = timers.now() - sinceMs;
      const isSlow = tookMs > FIRST_PAGES_MS && tookMs > pages * SLOW_PAGE_MS;
      if (isSlow || tookMs > SOURCE_MS_MAX) throw new Error("another peer has a turn to give pages");
      return page;
    },
  };
}

export async function takeFrom(world: World, peer: Peer, progress: FirstSyncProgress): Promise<void> {
  const { store } = world.options;
  const pages = watchPages(world, progress);
  await takeEverything({
    progress,
    page: async (cursor) => pages.check(await askOnce(peer, "page", { cursor, asRows: true })),
    published: world.options.published ?? (() => Promise.resolve()),
    apply: async (items, { rows = [], ...options }) => {
      if (options.partial === true) world.counters.firstSyncItems += items.length + rows.length;
      await store.applyRemote(items.slice(0, BATCH_ITEMS), { ...options, rows });
      for (let at = BATCH_ITEMS; at < items.length; at += BATCH_ITEMS) {
        await store.applyRemote(items.slice(at, at + BATCH_ITEMS), options);
      }
    },
  });
}

function pause({ options, pauses }: World, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      pauses.delete(end);
      resolve();
    };
    const cancel = options.timers.after(ms, end);
    pauses.add(end);
  });
}
