/** Who has what: whether all peers that are alive now have taken certain changes. */
import type { Timers } from "../cluster/transport.ts";
import type { ItemRef } from "../store/replica.ts";
import type { Peer } from "./peer.ts";
import type { Sender } from "./sender.ts";

export type Acknowledgement = {
  /** Whether every peer that was alive at the time of asking has them, or is no longer alive. */
  readonly isComplete: boolean;
  /** Node ids of those that have not answered in time, or that refused one of them. */
  readonly missing: readonly string[];
};

export type AcknowledgementParts = {
  readonly sender: Sender;
  readonly timers: Timers;
  readonly peers: ReadonlyMap<string, Peer>;
};

/**
 * Resolves when the peers that are alive now have on their disks all that this node has committed up to now, and none of
 * them refused `refs`, or after `timeoutMs`. Peers that have their first sync before them do not count: they answer nobody.
 */
export async function acknowledgedBy(
  parts: AcknowledgementParts,
  refs: readonly ItemRef[],
  timeoutMs: number,
): Promise<Acknowledgement> {
  const asked = [...parts.peers.values()].filter(({ isAlive, status }) => isAlive && status?.isComplete !== false);
  const missing = new Set(asked);
  const all = asked.map(async (peer) => {
    await settled(parts.sender, peer);
    if (!peer.isAlive || !refs.some((ref) => peer.outbox.refusalOf(ref) !== undefined)) missing.delete(peer);
  });
  await within(parts.timers, timeoutMs, Promise.all(all));
  return { isComplete: missing.size === 0, missing: [...missing].map(({ nodeId }) => nodeId) };
}

/** Its queue is through; where it may lack more than that, it has been compared with this node too. */
async function settled(sender: Sender, peer: Peer): Promise<void> {
  await new Promise<void>((resolve) => sender.afterIntake(resolve));
  await new Promise<void>((resolve) => peer.outbox.afterAll(resolve));
  if (peer.needs === "nothing" || !peer.isAlive) return;
  await new Promise<void>((resolve) => {
    peer.onMet.add(resolve);
  });
}

function within(timers: Timers, timeoutMs: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.after(timeoutMs, resolve);
    const end = () => {
      cancel();
      resolve();
    };
    work.then(end, end);
  });
}
