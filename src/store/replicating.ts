/** The store as replication sees it: see `ReplicaStore`. */
import { agreements, lastAgreementMs, setAgreement } from "./agreement.ts";
import { applyAudit, auditAfter, auditVector } from "./audit-sync.ts";
import type { DigestKeeper } from "./digest.ts";
import type { Engine } from "./engine.ts";
import { collectedUpToMs } from "./housekeeping.ts";
import { readItems, readRawItems } from "./items.ts";
import { refOf } from "./refs.ts";
import type { ReplicaStore } from "./replica.ts";
import { startOver } from "./start-over.ts";

export function makeReplicaStore(engine: Engine, digest: DigestKeeper, auditRetentionMs: number): ReplicaStore {
  const { database, seal, now, watchers, instance } = engine;
  const audit = { database, instanceId: instance.id, now, retentionMs: auditRetentionMs };
  return {
    onItems: watchers.onItems,
    items: (refs) => readItems(database, seal, now(), refs),
    refOf,
    rawItems: (page) => readRawItems(database, seal, now(), page),
    digest,
    auditInstance: instance.id,
    renewAuditInstance: instance.renew,
    auditVector: () => auditVector(audit),
    auditAfter: (instance, sequence, limit) => auditAfter(database, instance, sequence, limit),
    applyAudit: (entries) => applyAudit(audit, entries),
    onAudit: watchers.onAudit,
    collectedUpToMs: () => collectedUpToMs(database),
    lastAgreementMs: () => lastAgreementMs(database),
    agreements: () => agreements(database),
    setAgreement: (atMs, known) => setAgreement(database, atMs, known),
    startOver: (knownMs) => startOver(engine, digest, knownMs),
  };
}
