/**
 * Anti-entropy with one peer: the digest trees are compared from the root down, then the versions in the leaves that
 * differ, and what differs goes both ways. Where changes are under way a difference counts only if it outlasts them.
 */

import type { RawItem } from "../store/raw-items.ts";
import { DIGEST_CHILDREN, DIGEST_LEVELS, type ItemRef, type ItemVersion, type ReplicaStore } from "../store/replica.ts";
import {
  EXCHANGE_ROUNDS,
  LEAVES_ASKED_MAX,
  MESSAGE_ITEMS_MAX,
  NODES_ASKED,
  PULLS_AT_ONCE,
  PUSH_REFS_AT_ONCE,
  REFS_ASKED,
  UNDER_WAY_MANY,
  VERSIONS_CHARACTERS_MAX,
  VERSIONS_MAX,
} from "./limits.ts";
import type { Answers, Ask, Questions, StoreStatus } from "./messages.ts";
import { MalformedError } from "./shapes.ts";

export type ExchangeParts = {
  readonly store: Pick<ReplicaStore, "digest">;
  readonly status: () => StoreStatus;
  /** Then the peer may be as new as this node. */
  readonly isFirstSync: boolean;
  /** Whether to leave the comparison for later where many changes are under way. */
  readonly mayWait: boolean;
  readonly ask: <Name extends Ask>(
    ask: Name,
    question: Questions[Name],
    onPart: (part: Answers[Name], bytes: number) => void,
  ) => Promise<void>;
  /** Sends the items to the peer; resolves when it has taken or refused them. */
  readonly push: (refs: readonly ItemRef[]) => Promise<void>;
  /** Takes what the peer has, of so many bytes; resolves with how many were refused. */
  readonly pull: (items: readonly RawItem[], bytes: number) => Promise<number>;
  /** Changes of this node that the peer has not acknowledged, and the peer's that are not applied here. */
  readonly underWay: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly onCompared: (kind: "root" | "leaves") => void;
  readonly onStatus: (status: StoreStatus) => void;
  readonly staleSide: (theirs: StoreStatus) => "mine" | "theirs" | "none";
};

type LookParts = Pick<ExchangeParts, "store" | "ask">;

/** `stale`: one side has to begin anew. `incomplete`: the peer has
 * its first sync before it. `busy`: one of them cannot compare now. `differ`: what was exchanged did not make them alike. */
export type ExchangeOutcome = {
  readonly kind: "agreed" | "differ" | "stale" | "incomplete" | "busy";
  readonly pulled: number;
  readonly pushed: number;
};

const SETTLE_MS = 200;
/** Entries that are looked at before others have a turn. */
const STEPS_A_TURN = 10_000;

/** Rejects where the peer goes away meanwhile. */
export async function exchange(parts: ExchangeParts): Promise<ExchangeOutcome> {
  const { digest } = parts.store;
  await digest.ready();
  let pulled = 0;
  let pushed = 0;
  let before = "";
  for (let round = 0; round < EXCHANGE_ROUNDS; round++) {
    const mine = digest.root();
    const theirs = await askOne(parts, "root", { root: mine, status: parts.status() });
    parts.onCompared("root");
    parts.onStatus(theirs.status);
    const isSame = theirs.root === digest.root() || theirs.root === mine;
    if (!parts.isFirstSync) {
      // Who has the same brings nothing back, however long ago they agreed.
      if (!isSame && parts.staleSide(theirs.status) !== "none") return { kind: "stale", pulled, pushed };
      if (!theirs.status.isComplete) return { kind: "incomplete", pulled, pushed };
    }
    if (theirs.root === null) return { kind: "busy", pulled, pushed };
    if (isSame) return { kind: "agreed", pulled, pushed };
    // They differ in what is on its way: to look for that reads both stores, and brings most of it twice.
    if (parts.mayWait && theirs.queued + parts.underWay() > UNDER_WAY_MANY) return { kind: "busy", pulled, pushed };
    const leaves = await lastingDifferences(parts, theirs.queued);
    if (leaves.length === 0) return { kind: "agreed", pulled, pushed };
    const now = leaves.join();
    // The same leaves after everything in them was exchanged: somebody refuses something.
    if (now === before) break;
    before = leaves.length < LEAVES_ASKED_MAX ? now : "";
    const moved = await evenOut(parts, leaves.slice(0, LEAVES_ASKED_MAX));
    pulled += moved.pulled;
    pushed += moved.pushed;
  }
  return { kind: "differ", pulled, pushed };
}

async function askOne<Name extends Ask>(
  { ask }: LookParts,
  name: Name,
  question: Questions[Name],
): Promise<Answers[Name]> {
  const parts: Answers[Name][] = [];
  await ask(name, question, (part) => {
    if (parts.length > 0) throw new MalformedError(`${name}: a second answer`);
    parts.push(part);
  });
  const [first] = parts;
  if (first === undefined) throw new Error(`${name}: an empty answer`);
  return first;
}

/** All parts of an answer that has many: a peer that goes on and on is no peer. Throws MalformedError from within `ask`. */
async function askVersions({ ask }: LookParts, leaves: readonly number[]): Promise<readonly ItemVersion[]> {
  const found: ItemVersion[] = [];
  let characters = 0;
  let empty = 0;
  await ask("versions", { leaves }, ({ versions }) => {
    for (const each of versions) {
      found.push(each);
      characters += each.ref.length + each.version.length;
    }
    if (versions.length === 0) empty++;
    if (found.length > VERSIONS_MAX || characters > VERSIONS_CHARACTERS_MAX || empty > 1) {
      throw new MalformedError("versions: an answer without an end");
    }
  });
  return found;
}

/** The leaves that differ, and while changes are under way only those that differ a moment later still. */
async function lastingDifferences(parts: ExchangeParts, theirQueue: number): Promise<readonly number[]> {
  const isMoving = () => theirQueue > 0 || parts.underWay() > 0;
  let nodes: readonly number[] = [0];
  for (let level = 0; level < DIGEST_LEVELS && nodes.length > 0; level++) {
    nodes = await differingChildren(parts, level, nodes);
  }
  if (nodes.length === 0 || !isMoving()) return nodes;
  await parts.pause(SETTLE_MS);
  const known = new Set(nodes);
  const parents = [...new Set(nodes.map((leaf) => Math.floor(leaf / DIGEST_CHILDREN)))];
  return (await differingChildren(parts, DIGEST_LEVELS - 1, parents)).filter((leaf) => known.has(leaf));
}

/**
 * Whether the stores differ in more than what is under way: in a leaf that neither of them has changed for a moment. Changes nothing
 * at either end. Rejects where the peer does not answer.
 */
export async function differsLastingly(parts: LookParts & Pick<ExchangeParts, "pause">): Promise<boolean> {
  let before: ReadonlyMap<number, string> = new Map([[0, ""]]);
  for (let level = 0; level < DIGEST_LEVELS && before.size > 0; level++) {
    before = await differingPairs(parts, level, [...before.keys()]);
  }
  if (before.size === 0) return false;
  await parts.pause(SETTLE_MS);
  const parents = [...new Set([...before.keys()].map((leaf) => Math.floor(leaf / DIGEST_CHILDREN)))];
  const now = await differingPairs(parts, DIGEST_LEVELS - 1, parents);
  return [...now].some(([leaf, pair]) => before.get(leaf) === pair);
}

async function differingChildren(parts: LookParts, level: number, nodes: readonly number[]): Promise<number[]> {
  return [...(await differingPairs(parts, level, nodes)).keys()];
}

/**
 * The children that differ, each with the digests of both. Some nodes at a time, for all the leaves of a tree are a megabyte; no
 * more leaves than are evened out at once.
 */
async function differingPairs(
  parts: LookParts,
  level: number,
  nodes: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const differing = new Map<number, string>();
  for (let at = 0; at < nodes.length && differing.size < LEAVES_ASKED_MAX; at += NODES_ASKED) {
    const asked = nodes.slice(at, at + NODES_ASKED);
    const theirs = (await askOne(parts, "children", { level, nodes: asked })).children;
    const mine = parts.store.digest.children(level, asked);
    for (const [index, node] of asked.entries()) {
      for (let child = 0; child < DIGEST_CHILDREN; child++) {
        const [own, other] = [mine[index]?.[child], theirs[index]?.[child]];
        if (own !== other) differing.set(node * DIGEST_CHILDREN + child, `${own} ${other}`);
      }
    }
  }
  return differing;
}

/** Brings what differs in those leaves from each side to the other. */
async function evenOut(
  parts: ExchangeParts,
  leaves: readonly number[],
): Promise<{ readonly pulled: number; readonly pushed: number }> {
  parts.onCompared("leaves");
  const [mine, theirs] = await Promise.all([parts.store.digest.versions(leaves), askVersions(parts, leaves)]);
  const { here, there } = await compareVersions(mine, theirs, parts.pause);
  await pullAll(parts, there);
  for (let at = 0; at < here.length; at += PUSH_REFS_AT_ONCE) {
    await parts.push(here.slice(at, at + PUSH_REFS_AT_ONCE));
  }
  return { pulled: there.length, pushed: here.length };
}

/** What one side has and the other has not; what both have differently is in both lists, for registers merge part by part. */
export async function compareVersions(
  mine: readonly ItemVersion[],
  theirs: readonly ItemVersion[],
  pause: (ms: number) => Promise<void>,
): Promise<{ readonly here: readonly ItemRef[]; readonly there: readonly ItemRef[] }> {
  const known = new Map<ItemRef, string>();
  const there: ItemRef[] = [];
  let steps = 0;
  const step = () => (++steps % STEPS_A_TURN === 0 ? pause(0) : undefined);
  for (const { ref, version } of mine) {
    known.set(ref, version);
    const turn = step();
    if (turn !== undefined) await turn;
  }
  for (const { ref, version } of theirs) {
    if (known.get(ref) === version) known.delete(ref);
    else there.push(ref);
    const turn = step();
    if (turn !== undefined) await turn;
  }
  // Those before which the keys of the store sort come first: zones before records.
  return { here: [...known.keys()], there };
}

/** Asks for the items some hundreds at a time, a few questions at once. */
async function pullAll(parts: ExchangeParts, refs: readonly ItemRef[]): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < refs.length) {
      const asked = refs.slice(next, next + REFS_ASKED);
      next += REFS_ASKED;
      const applied: Promise<number>[] = [];
      let left = MESSAGE_ITEMS_MAX;
      await parts.ask("items", { refs: asked }, ({ items }, bytes) => {
        left -= Math.max(1, items.length);
        if (left < 0) throw new MalformedError("items: an answer without an end");
        const taken = parts.pull(items, bytes);
        taken.catch(() => undefined);
        applied.push(taken);
      });
      await Promise.all(applied);
    }
  };
  await Promise.all(Array.from({ length: PULLS_AT_ONCE }, worker));
}
