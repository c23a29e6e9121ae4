/**
 * Brings what the store has written into the queues of all peers, and from there onto their ways: a batch a peer in turn,
 * some hundred items before others have the thread, so that neither many peers nor a slow one hold it up.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { ItemRef, ReplicaStore } from "../store/replica.ts";
import {
  BATCH_CHARACTERS,
  BATCH_ITEMS,
  BATCHES_IN_FLIGHT,
  CHUNK_REFS,
  INTAKE_REFS_A_TURN,
  QUEUES_BYTES_MAX,
  UNTAKEN_BYTES_MAX,
} from "./limits.ts";
import { encodeChanges } from "./messages.ts";
import type { Peer, Way } from "./peer.ts";

export type Sender = {
  /** For all peers that are alive when their turn comes. */
  readonly add: (refs: readonly ItemRef[]) => void;
  /** For one peer; false where its queue had no room. */
  readonly addTo: (peer: Peer, refs: readonly ItemRef[]) => boolean;
  /** Calls once everything that was added before is in the queues. */
  readonly afterIntake: (done: () => void) => void;
  /** Something can be sent again. */
  readonly wake: () => void;
  /** Changes that no queue has yet. */
  readonly waiting: () => number;
  readonly stop: () => void;
};

export type SenderParts = {
  readonly store: Pick<ReplicaStore, "items" | "refOf">;
  readonly timers: Timers;
  /** The same map always. */
  readonly peers: ReadonlyMap<string, Peer>;
  /** A queue had no room and has been dropped. */
  readonly onBehind: (peer: Peer, dropped: number) => void;
  readonly onSent: (items: number) => void;
  readonly log: Log;
};

type Intake = { readonly refs: readonly ItemRef[]; at: number; readonly done: (() => void)[] };
type State = {
  readonly intake: Intake[];
  waiting: number;
  scheduled: (() => void) | undefined;
  last: string;
  isStopped: boolean;
};

export function createSender(parts: SenderParts): Sender {
  const state: State = { intake: [], waiting: 0, scheduled: undefined, last: "", isStopped: false };
  const wake = () => {
    if (state.scheduled === undefined && !state.isStopped) turn(parts, state, wake);
  };
  return {
    wake,
    add: (refs) => {
      if (refs.length === 0) return;
      state.intake.push({ refs, at: 0, done: [] });
      state.waiting += refs.length;
      wake();
    },
    addTo: (peer, refs) => {
      const isRoom = addTo(parts, peer, refs);
      wake();
      return isRoom;
    },
    afterIntake: (done) => {
      const last = state.intake.at(-1);
      if (last === undefined) done();
      else last.done.push(done);
    },
    waiting: () => state.waiting,
    stop: () => {
      state.isStopped = true;
      state.scheduled?.();
      for (const { done } of state.intake.splice(0)) for (const each of done) each();
    },
  };
}

/**
 * Takes in some of what was added, and sends each peer one batch, until enough was read of the store: what one peer is sent,
 * the others mostly are too, and it is read and written out once for all of them.
 */
function turn(parts: SenderParts, state: State, wake: () => void): void {
  // What is added by those who are told meanwhile waits for its own turn.
  state.scheduled = () => undefined;
  takeIn(parts, state);
  const texts: Texts = new Map();
  for (const peer of inTurn(parts.peers, state.last)) {
    if (!canSend(peer) || (texts.size >= BATCH_ITEMS && !texts.has(peer.outbox.head() ?? ""))) continue;
    state.last = peer.nodeId;
    try {
      sendBatch(parts, peer, texts);
    } catch (thrown) {
      parts.log("error", "changes could not be read to be sent", { peer: peer.nodeId, detail: errorText(thrown) });
      // What was taken out is lost to the queue; a comparison finds it again.
      parts.onBehind(peer, peer.outbox.drop());
    }
  }
  state.scheduled = undefined;
  if (state.intake.length === 0 && ![...parts.peers.values()].some(canSend)) return;
  state.scheduled = parts.timers.after(0, () => {
    state.scheduled = undefined;
    wake();
  });
}

/** The items of a ref as JSON; nothing of the store changes within a turn. */
type Texts = Map<ItemRef, readonly string[]>;

function takeIn(parts: SenderParts, state: State): void {
  const peers = [...parts.peers.values()].filter(({ isAlive }) => isAlive);
  let left = Math.ceil(INTAKE_REFS_A_TURN / Math.max(1, peers.length));
  for (let head = state.intake[0]; head !== undefined && left > 0; head = state.intake[0]) {
    const refs = head.at === 0 && head.refs.length <= left ? head.refs : head.refs.slice(head.at, head.at + left);
    for (const peer of peers) addTo(parts, peer, refs);
    head.at += refs.length;
    state.waiting -= refs.length;
    left -= refs.length;
    if (head.at < head.refs.length) return;
    state.intake.shift();
    for (const done of head.done) done();
  }
}

function addTo({ peers, timers, onBehind }: SenderParts, peer: Peer, refs: readonly ItemRef[]): boolean {
  const before = peer.outbox.size();
  const isRoom = peer.outbox.add(refs, timers.now());
  if (!isRoom) onBehind(peer, before + refs.length);
  let bytes = 0;
  let longest = peer;
  for (const each of peers.values()) {
    bytes += each.outbox.bytes();
    if (each.outbox.bytes() > longest.outbox.bytes()) longest = each;
  }
  if (bytes > QUEUES_BYTES_MAX) onBehind(longest, longest.outbox.drop());
  return isRoom;
}

/** All of them, the one behind `last` first. */
function inTurn(peers: ReadonlyMap<string, Peer>, last: string): readonly Peer[] {
  const all = [...peers.values()];
  const at = all.findIndex(({ nodeId }) => nodeId === last) + 1;
  return [...all.slice(at), ...all.slice(0, at)];
}

function canSend({ sending, outbox }: Peer): boolean {
  if (sending === undefined || outbox.waiting() === 0) return false;
  return outbox.batchesInFlight() < BATCHES_IN_FLIGHT && sending.channel.untakenBytes() < UNTAKEN_BYTES_MAX;
}

function sendBatch({ store, onSent }: SenderParts, { sending, outbox }: Peer, known: Texts): void {
  if (sending === undefined) return;
  const texts: string[] = [];
  const refs: ItemRef[] = [];
  const entries = [];
  let characters = 0;
  while (texts.length < BATCH_ITEMS && characters < BATCH_CHARACTERS) {
    const chunk = outbox.take(Math.min(CHUNK_REFS, BATCH_ITEMS - texts.length));
    if (chunk.length === 0) break;
    entries.push(...chunk);
    readTexts(
      store,
      chunk.map(([ref]) => ref),
      known,
    );
    for (const [ref] of chunk) {
      for (const text of known.get(ref) ?? []) {
        texts.push(text);
        refs.push(ref);
        characters += text.length;
      }
    }
  }
  send(sending, texts);
  outbox.sent(entries, refs, sending.sentNumber);
  onSent(texts.length);
}

function readTexts(store: SenderParts["store"], refs: readonly ItemRef[], known: Texts): void {
  const unknown = refs.filter((ref) => !known.has(ref));
  if (unknown.length === 0) return;
  const found = new Map(unknown.map((ref): [ItemRef, string[]] => [ref, []]));
  for (const item of store.items(unknown)) found.get(store.refOf(item))?.push(JSON.stringify(item));
  for (const [ref, texts] of found) known.set(ref, texts);
}

function send(way: Way, texts: readonly string[]): void {
  if (texts.length === 0) return;
  const first = way.sentNumber + 1;
  way.sentNumber += texts.length;
  way.channel.send(encodeChanges(first, texts));
}
