/** How this node compares itself with one peer, and takes everything from one: the exchanges, with what they need of the rest. */
import type { RawItem } from "../store/raw-items.ts";
import type { ItemRef } from "../store/replica.ts";
import { type ExchangeOutcome, exchange } from "./exchange.ts";
import { type FirstSyncProgress, takeEverything } from "./first-sync.ts";
import { BATCH_ITEMS, CALM_WAIT_MS, PUSH_TIMEOUT_MS } from "./limits.ts";
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
  const outcome = await exchange({
    store,
    isFirstSync,
    mayWait: !isFirstSync && timers.now() - sinceMs < CALM_WAIT_MS,
    status: () => statusOf(world),
    ask: (ask, question, onPart) => askPeer(peer, ask, question, onPart),
    push: (refs) => push(world, peer, refs),
    pull: (items) => pull(world, items),
    underWay: () => peer.outbox.size() + sender.waiting() + inbox.depth(),
    pause: (ms) => pause(world, ms),
    onCompared: (kind) => {
      counters[kind === "root" ? "rootComparisons" : "leafComparisons"]++;
    },
    onStatus: (status) => {
      peer.status = status;
    },
    staleSide: (theirs) => staleWith(world, theirs, peer.nodeId),
  });
  peer.busySinceMs = outcome.kind === "busy" ? sinceMs : undefined;
  return outcome;
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

function pull({ inbox, counters }: World, items: readonly RawItem[]): Promise<number> {
  counters.itemsReceived += items.length;
  return new Promise((resolve, reject) => {
    inbox.offer({
      items,
      onApplied: (refused) => {
        counters.itemsRefusedHere += refused.length;
        resolve(refused.length);
      },
      onFailed: reject,
    });
  });
}

export async function takeFrom(world: World, peer: Peer, progress: FirstSyncProgress): Promise<void> {
  const { store } = world.options;
  await takeEverything({
    progress,
    page: (cursor) => askOnce(peer, "page", { cursor }),
    published: world.options.published ?? (() => Promise.resolve()),
    apply: async (items, options) => {
      if (options.partial === true) world.counters.firstSyncItems += items.length;
      for (let at = 0; at < items.length; at += BATCH_ITEMS) {
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
