/**
 * What is to be gossiped: the least sent goes first, and of those the newest. One broadcast about a member replaces an older one
 * about the same, and each is sent so many times and then dropped.
 */
import type { PacketMessage } from "./messages.ts";
import { USER_BROADCASTS_MAX } from "./settings.ts";

export type Broadcast = {
  readonly message: PacketMessage;
  /** The member that it is about; undefined for a payload of whoever uses the protocol. */
  readonly about: string | undefined;
};

export type BroadcastQueue = {
  readonly add: (broadcast: Broadcast, onDone?: () => void) => void;
  /** At most `count`, in the order that they should go in; they stay. */
  readonly next: (count: number) => readonly Broadcast[];
  /** The first `count` of what `next` gave went out once more. */
  readonly sent: (broadcasts: readonly Broadcast[], count: number) => void;
  /** Nothing more about this member: what is in the queue is out of date. */
  readonly drop: (about: string) => void;
  readonly size: () => number;
};

type Entry = { readonly onDone: (() => void) | undefined; transmits: number };

/** `limitOf`: how often one is sent, asked each time because the number of members changes. */
export function createBroadcastQueue(limitOf: (broadcast: Broadcast) => number): BroadcastQueue {
  /** By how often they went out; each tier in the order of their arrival in it. */
  const tiers: Set<Broadcast>[] = [];
  const entries = new Map<Broadcast, Entry>();
  const byMember = new Map<string, Broadcast>();
  let payloads = 0;

  const place = (broadcast: Broadcast, transmits: number): void => {
    while (tiers.length <= transmits) tiers.push(new Set());
    tiers[transmits]?.add(broadcast);
  };
  const remove = (broadcast: Broadcast): void => {
    const entry = entries.get(broadcast);
    if (entry === undefined) return;
    entries.delete(broadcast);
    tiers[entry.transmits]?.delete(broadcast);
    if (broadcast.about === undefined) payloads--;
    else byMember.delete(broadcast.about);
    entry.onDone?.();
  };
  const dropMostSentPayload = (): void => {
    for (const tier of tiers.toReversed()) {
      const payload = tier.values().find(({ about }) => about === undefined);
      if (payload === undefined) continue;
      remove(payload);
      return;
    }
  };
  const drop = (about: string): void => {
    const old = byMember.get(about);
    if (old !== undefined) remove(old);
  };

  return {
    add: (broadcast, onDone) => {
      if (broadcast.about !== undefined) {
        drop(broadcast.about);
        byMember.set(broadcast.about, broadcast);
      } else {
        if (payloads >= USER_BROADCASTS_MAX) dropMostSentPayload();
        payloads++;
      }
      entries.set(broadcast, { onDone, transmits: 0 });
      place(broadcast, 0);
    },
    next: (count) => {
      const chosen: Broadcast[] = [];
      for (const tier of tiers) {
        if (tier.size === 0) continue;
        for (const broadcast of [...tier].toReversed()) {
          if (chosen.length === count) return chosen;
          chosen.push(broadcast);
        }
      }
      return chosen;
    },
    sent: (broadcasts, count) => {
      for (const broadcast of broadcasts.slice(0, count)) {
        const entry = entries.get(broadcast);
        if (entry === undefined) continue;
        if (entry.transmits + 1 >= limitOf(broadcast)) {
          remove(broadcast);
          continue;
        }
        tiers[entry.transmits]?.delete(broadcast);
        entry.transmits++;
        place(broadcast, entry.transmits);
      }
    },
    drop,
    size: () => entries.size,
  };
}
