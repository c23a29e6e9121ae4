/**
 * Who knows of whose deletions. A deletion is forgotten after TOMBSTONE_DAYS, so a store that had not heard of it by then would
 * bring back what was deleted. Each store therefore keeps, for each other node, up to which moment it has all that this node
 * had; who agrees with a peer has all that the peer had of others too.
 */
import type { Agreements } from "../store/replica.ts";
import { stampBehind } from "../store/stamp.ts";
import { collectionMs } from "../store/tombstones.ts";
import { AGREEMENTS_MAX } from "./limits.ts";
import type { StoreStatus } from "./messages.ts";

export type StatusOf = StoreStatus & { readonly nodeId: string };

/** Deleted so shortly before an agreement, it may not have been part of it; clocks differ too. */
const MARGIN_MS = 60_000;
/** What is older than the newest by this tells nothing that fresher ones do not: the two longest ways of a deletion, and days to spare. */
const AGREEMENT_KEPT_MS = 90 * 86_400_000;

/** Whether deletions of that moment may have been forgotten. */
function isForgotten(atMs: number, nowMs: number): boolean {
  return collectionMs(`${stampBehind(Math.max(atMs - MARGIN_MS, 0))}0000-`) <= nowMs;
}

/**
 * Whether what was deleted just after its last agreement may have left the other stores already: by its time, for a store that
 * had it from others has collected nothing itself. One that has agreed with nobody yet holds nothing that a cluster deleted.
 */
export function isStale({ lastAgreementMs }: Pick<StoreStatus, "lastAgreementMs">, nowMs: number): boolean {
  return lastAgreementMs > 0 && isForgotten(lastAgreementMs, nowMs);
}

/** What a store knows after it agreed with a peer at `nowMs`: the newest of both, at most AGREEMENTS_MAX. Times are milliseconds since 1970. */
export function agreementsWith(mine: Agreements, selfId: string, theirs: StatusOf, nowMs: number): Agreements {
  const known = new Map(Object.entries(mine));
  for (const [nodeId, atMs] of Object.entries(theirs.agreements)) {
    // A clock that is ahead makes nobody immune.
    known.set(nodeId, Math.max(known.get(nodeId) ?? 0, Math.min(atMs, nowMs)));
  }
  known.set(theirs.nodeId, nowMs);
  known.delete(selfId);
  const newestFirst = [...known].sort(([, left], [, right]) => right - left);
  return Object.fromEntries(
    newestFirst.slice(0, AGREEMENTS_MAX).filter(([, atMs]) => atMs > nowMs - AGREEMENT_KEPT_MS),
  );
}

/**
 * Who of two has to begin anew: the one that may have what was deleted, where the other no longer knows that. For a peer that
 * has its own first sync before it nobody begins anew. Where both are stale, the one that agreed later with anybody keeps what it
 * has; where both agree with others, the one of the greater group; then the one whose group, or itself, has the smallest node
 * id. `nowMs` is the time of day.
 */
export function staleSide(mine: StatusOf, theirs: StatusOf, nowMs: number): "mine" | "theirs" | "none" {
  const isMineAlone = isStale(mine, nowMs);
  const isTheirsAlone = isStale(theirs, nowMs);
  if (isMineAlone && isTheirsAlone) {
    const difference = mine.lastAgreementMs - theirs.lastAgreementMs;
    if (difference !== 0) return difference < 0 ? "mine" : "theirs";
    return mine.nodeId > theirs.nodeId ? "mine" : "theirs";
  }
  const isMine = isMineAlone || (!isTheirsAlone && lacksDeletions(mine, theirs, nowMs));
  const isTheirs = isTheirsAlone || (!isMineAlone && lacksDeletions(theirs, mine, nowMs));
  if (isMine && isTheirs) {
    if (!mine.isComplete || !theirs.isComplete) return "none";
    return isLesserGroup(mine, theirs, nowMs) ? "mine" : "theirs";
  }
  if (isMine) return theirs.isComplete ? "mine" : "none";
  return isTheirs && mine.isComplete ? "theirs" : "none";
}

/**
 * Whether `left` may lack deletions that `right` has forgotten: of some node it knows less than the other, and what it knows
 * ends where deletions are forgotten. Of a node that it never heard of it lacks none: that came later, or had another store.
 */
function lacksDeletions(left: StatusOf, right: StatusOf, nowMs: number): boolean {
  return Object.entries(left.agreements).some(([nodeId, atMs]) => {
    const theirsMs = nodeId === right.nodeId ? nowMs : (right.agreements[nodeId] ?? 0);
    return theirsMs > atMs && isForgotten(atMs, nowMs);
  });
}

/** Both halves of a cluster say the same of all pairs: who is in which half does not depend on who meets. */
function isLesserGroup(left: StatusOf, right: StatusOf, nowMs: number): boolean {
  const [mine, theirs] = [groupOf(left, nowMs), groupOf(right, nowMs)];
  if (mine.size !== theirs.size) return mine.size < theirs.size;
  return leastOf(mine, theirs, left.nodeId) > leastOf(theirs, mine, right.nodeId);
}

/** The node, and those of whose deletions it knows. */
function groupOf({ nodeId, agreements }: StatusOf, nowMs: number): ReadonlySet<string> {
  const known = Object.entries(agreements).filter(([, atMs]) => !isForgotten(atMs, nowMs));
  return new Set([nodeId, ...known.map(([other]) => other)]);
}

function leastOf(group: ReadonlySet<string>, others: ReadonlySet<string>, otherwise: string): string {
  const own = [...group].filter((nodeId) => !others.has(nodeId)).sort();
  return own[0] ?? otherwise;
}

/** Of those that told what they have, the ones that lack nothing which another of them has forgotten. */
export function currentOf<Told extends { readonly status: StatusOf }>(told: readonly Told[], nowMs: number): Told[] {
  return told.filter(
    ({ status }) => !isStale(status, nowMs) && told.every((other) => staleSide(status, other.status, nowMs) !== "mine"),
  );
}

/**
 * Up to when a peer has what a node wrote, for a store that begins anew from that peer: later edits go to the journal.
 * Undefined where the peer says nothing of the kind; of a node that it does not name it has what this store had when both agreed.
 */
export function knownTo(peer: StatusOf, selfId: string, nowMs: number): ((nodeId: string) => number) | undefined {
  if (Object.keys(peer.agreements).length === 0) return undefined;
  const bothMs = peer.agreements[selfId] ?? 0;
  return (nodeId) => (nodeId === peer.nodeId ? nowMs : (peer.agreements[nodeId] ?? bothMs));
}
