/**
 * The audit log of every instance on every node: who wrote entries says up to which sequence, and who lacks some asks for
 * them. What a dead node told only some of its peers goes on between those whenever they compare all that they have.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { AuditVector, ReplicaStore } from "../store/replica.ts";
import type { Answers } from "./messages.ts";

export type AuditSync = {
  /** A peer has told what it has, all of it or its own. */
  readonly onVector: (nodeId: string, vector: AuditVector) => void;
  /** Asks that peer for whatever is lacking here. */
  readonly pullFrom: (nodeId: string) => void;
  /** Of this instance only, to be told to the peers. */
  readonly ownVector: () => AuditVector;
  readonly stop: () => void;
};

export type AuditSyncParts = {
  readonly store: Pick<ReplicaStore, "auditVector" | "applyAudit" | "onAudit" | "auditInstance" | "renewAuditInstance">;
  readonly timers: Timers;
  readonly log: Log;
  readonly ask: (nodeId: string, vector: AuditVector) => Promise<Answers["audit"]>;
  /** Tells all peers what this node has written. */
  readonly tell: (vector: AuditVector) => void;
  readonly onTaken: (entries: number) => void;
};

const TELL_MS = 200;
/** A peer that says it again and again is wrong. */
const INSTANCES_LEFT_MAX = 8;
/** Answers that are taken of one peer before the next has its turn: one that makes up entries without end keeps nobody out. */
const ANSWERS_A_TURN = 10;

export function createAuditSync(parts: AuditSyncParts): AuditSync {
  const { store, timers } = parts;
  /** Who has something that is lacking here. */
  const wanted = new Set<string>();
  let isPulling = false;
  let isLeaving = false;
  let instancesLeft = 0;
  let isStopped = false;
  let toldSequence = ownSequence();
  let cancel: (() => void) | undefined;
  function ownSequence(): number {
    return store.auditVector()[store.auditInstance()] ?? 0;
  }
  const ownVector = (): AuditVector => ({ [store.auditInstance()]: ownSequence() });
  const tell = () => {
    cancel = undefined;
    const sequence = ownSequence();
    // What was taken from others is for them to tell.
    if (sequence === toldSequence) return;
    toldSequence = sequence;
    parts.tell(ownVector());
  };
  /** What this store has forgotten it must not number again. */
  const leaveInstance = async (nodeId: string) => {
    if (isLeaving || instancesLeft === INSTANCES_LEFT_MAX) return;
    isLeaving = true;
    instancesLeft++;
    const instance = store.auditInstance();
    try {
      await store.renewAuditInstance(instance);
    } catch (thrown) {
      return parts.log("error", "this store could not become another instance", { detail: errorText(thrown) });
    } finally {
      isLeaving = false;
    }
    parts.log("warn", "this store was put back from a copy: its audit log goes on as another instance", {
      peer: nodeId,
      instance,
      from_now: store.auditInstance(),
    });
    toldSequence = 0;
    tell();
    pullFrom(nodeId);
  };
  const pullAll = async () => {
    isPulling = true;
    for (const nodeId of wanted) {
      wanted.delete(nodeId);
      if (isStopped) break;
      try {
        // Behind all that wait by now.
        if (await pull(parts, nodeId)) wanted.add(nodeId);
      } catch (thrown) {
        parts.log("debug", "the audit log of a peer could not be read", { peer: nodeId, detail: errorText(thrown) });
      }
    }
    isPulling = false;
  };
  const pullFrom = (nodeId: string) => {
    wanted.add(nodeId);
    if (!isPulling && !isStopped) pullAll().catch(() => undefined);
  };
  const stopListening = store.onAudit(() => {
    cancel ??= timers.after(TELL_MS, tell);
  });
  return {
    pullFrom,
    ownVector,
    onVector: (nodeId, vector) => {
      const instance = store.auditInstance();
      if ((vector[instance] ?? 0) > ownSequence()) leaveInstance(nodeId).catch(() => undefined);
      else if (lacks(store.auditVector(), vector)) pullFrom(nodeId);
    },
    stop: () => {
      isStopped = true;
      cancel?.();
      stopListening();
    },
  };
}

function lacks(mine: AuditVector, theirs: AuditVector): boolean {
  return Object.entries(theirs).some(([instance, last]) => last > (mine[instance] ?? 0));
}

/** Takes what the peer has, some answers of it; whether there is more. */
async function pull({ store, ask, onTaken }: AuditSyncParts, nodeId: string): Promise<boolean> {
  let before: AuditVector | undefined;
  for (let answers = 0; answers < ANSWERS_A_TURN; answers++) {
    const vector = store.auditVector();
    // Entries that this store takes no notice of would come again and again.
    if (before !== undefined && isSame(before, vector)) return false;
    before = vector;
    const { entries, isMore } = await ask(nodeId, vector);
    if (entries.length > 0) await store.applyAudit(entries);
    onTaken(entries.length);
    if (!isMore) return false;
  }
  return true;
}

function isSame(left: AuditVector, right: AuditVector): boolean {
  const names = Object.keys(right);
  return names.length === Object.keys(left).length && names.every((name) => left[name] === right[name]);
}
