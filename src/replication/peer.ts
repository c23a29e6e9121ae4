/** What a node knows of one peer, and the ways to it. Plain data; who changes it says so. */

import type { Calls } from "./calls.ts";
import type { Channel } from "./channel.ts";
import type { Answers, Ask, Questions, StoreStatus } from "./messages.ts";
import { createOutbox, type Outbox, type OutboxLimits } from "./outbox.ts";

/** One open channel. Each end numbers what it sends on it from 1. */
export type Way = {
  readonly channel: Channel;
  readonly isDialed: boolean;
  readonly calls: Calls;
  isOpen: boolean;
  sentNumber: number;
  receivedNumber: number;
  /** Batches that were received on it and are not applied. */
  unapplied: number;
  serving: number;
  readonly onClosed: Set<() => void>;
  readonly onDrained: Set<() => void>;
};

export type Peer = {
  readonly nodeId: string;
  /** Of its store, as it said last; undefined before. */
  instanceId: string | undefined;
  isAlive: boolean;
  readonly outbox: Outbox;
  readonly ways: Way[];
  /** The way on which changes go and whose acknowledgements count. */
  sending: Way | undefined;
  /** Whether it may lack what was written before it was connected ("meeting"), or what its queue had no room for. */
  needs: "nothing" | "meeting" | "behind";
  /** How many changes its queue lost since it was last compared. */
  dropped: number;
  /** Since when, of the timers' clock; undefined where it lost none. */
  droppedSinceMs: number | undefined;
  status: StoreStatus | undefined;
  isExchanging: boolean;
  /** It compares itself with us: until then this node does not begin the same. */
  comparesUntilMs: number;
  /** Of the timers' clock: when to exchange next, and not before when. */
  dueMs: number;
  notBeforeMs: number;
  fruitless: number;
  /** Since when a comparison waits for calm, of the timers' clock. */
  busySinceMs: number | undefined;
  /** Milliseconds since 1970 at which both last agreed; 0: not since this node started. */
  agreedAtMs: number;
  /** Called when what it needs becomes nothing, or it is no peer any more. */
  readonly onMet: Set<() => void>;
};

export function createPeer(nodeId: string, limits: OutboxLimits): Peer {
  return {
    nodeId,
    instanceId: undefined,
    isAlive: false,
    outbox: createOutbox(limits),
    ways: [],
    sending: undefined,
    needs: "meeting",
    dropped: 0,
    droppedSinceMs: undefined,
    status: undefined,
    isExchanging: false,
    comparesUntilMs: 0,
    dueMs: Number.POSITIVE_INFINITY,
    notBeforeMs: 0,
    fruitless: 0,
    busySinceMs: undefined,
    agreedAtMs: 0,
    onMet: new Set(),
  };
}

/** Its newest way that this node dialed, else its newest: each node has its own to write on, so that neither blocks the other. */
export function preferredWay({ ways }: Peer): Way | undefined {
  return ways.findLast(({ isDialed }) => isDialed) ?? ways.at(-1);
}

/** Rejects where no way leads to it. */
export function askPeer<Name extends Ask>(
  peer: Peer,
  ask: Name,
  question: Questions[Name],
  onPart: (part: Answers[Name], bytes: number) => void,
): Promise<void> {
  const way = preferredWay(peer);
  if (way === undefined) return Promise.reject(new Error("not connected"));
  return way.calls.ask(ask, question, onPart);
}

/** The answer of a question that has one part. */
export async function askOnce<Name extends Ask>(
  peer: Peer,
  ask: Name,
  question: Questions[Name],
): Promise<Answers[Name]> {
  const parts: Answers[Name][] = [];
  await askPeer(peer, ask, question, (part) => parts.push(part));
  const [first] = parts;
  if (first === undefined) throw new Error(`${ask}: an empty answer`);
  return first;
}

/** It lacks nothing that this node had when the comparison began. */
export function markMet(peer: Peer): void {
  peer.needs = "nothing";
  peer.dropped = 0;
  peer.droppedSinceMs = undefined;
  tellMet(peer);
}

export function tellMet({ onMet }: Peer): void {
  const waiting = [...onMet];
  onMet.clear();
  for (const met of waiting) met();
}
