/** Opens the store of a node: its database, clock, seal, change feed and what goes on in the background. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { absorbForeign } from "./absorb.ts";
import { readAuditPage } from "./audit.ts";
import { digestOfZone } from "./counted.ts";
import { readCounts } from "./counts.ts";
import { type Database, openDatabase, STORE_FOLDER } from "./database.ts";
import { type DigestKeeper, makeDigest } from "./digest.ts";
import { type Engine, resumeClock, runLocal, runLocalInSlices, runMerge } from "./engine.ts";
import { makeFeed } from "./feed.ts";
import { type Housekeeping, startHousekeeping } from "./housekeeping.ts";
import { machineId, preparePlace, settleInstance } from "./instance.ts";
import { journalTotals, readJournal, readJournalEntry } from "./journal.ts";
import type { RefusedItem, RemoteOptions } from "./merge.ts";
import { readObject, readZoneRow } from "./objects.ts";
import type { RawItem } from "./raw-items.ts";
import { makeReader } from "./reader.ts";
import type { ReplicaStore } from "./replica.ts";
import { makeReplicaStore } from "./replicating.ts";
import { type SecretKey, settleSecrets } from "./secret-check.ts";
import { makeClock } from "./stamp.ts";
import type { JournalReason, Store } from "./store.ts";
import { makeWatchers } from "./watchers.ts";

export type StoreOptions = {
  /** The node's data directory, which the caller has locked. The database lies in a folder of it. */
  readonly directory: string;
  readonly nodeId: string;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly secretKey: SecretKey;
  /** With a cluster key: the node's own key, which sealed the secrets before the node had a cluster key. */
  readonly previousFileKey?: Uint8Array;
  /** How long the audit log keeps an entry. */
  readonly auditRetentionDays?: number;
  readonly log?: Log;
  /** What tells this machine from others; its own name where it is absent. */
  readonly machine?: string;
};

/** What the node and the replication see of the store, beyond what commands do. */
export type NodeStore = Store &
  ReplicaStore & {
    /** Merges what another store has, as one transaction. Resolves, durably, with the items that it refused. */
    applyRemote(items: readonly RawItem[], options?: RemoteOptions): Promise<readonly RefusedItem[]>;
    /** Over all that belongs to a zone, equal where two stores hold the same of it; undefined where there is no such zone. */
    zoneDigest(zone: string): string | undefined;
    /** How many entries of the conflict journal were ever made here, by reason; those that are gone count. */
    journalTotals(): Readonly<Record<JournalReason, number>>;
    /** How long the oldest read transaction has been open. */
    readerAgeMs(): number;
    /** Why a commit failed; from then on nothing is written until the store is opened anew. */
    failure(): string | undefined;
    /** How far stamps run ahead of this node's clock; beyond 10,000 writes are refused. */
    clockAheadMs(): number;
    /** Settles when the background work has nothing left to do. */
    idle(): Promise<void>;
  };

const AUDIT_RETENTION_DAYS = 90;
const DAY_MS = 86_400_000;

/** Throws OperatorError where it cannot be opened or the secrets do not open; then nothing has changed. */
export async function openStore(options: StoreOptions): Promise<NodeStore> {
  const { directory, nodeId, now = Date.now, log = () => undefined, secretKey, previousFileKey } = options;
  const database = open(join(directory, STORE_FOLDER));
  try {
    const place = preparePlace(join(directory, STORE_FOLDER), options.machine ?? machineId());
    const seal = await settleSecrets(database, secretKey, previousFileKey, place.next);
    const instance = await settleInstance(database, place, log);
    const clock = makeClock(nodeId, now);
    resumeClock(database, clock);
    const watchers = makeWatchers(() => digest, log);
    const digest = makeDigest({ database, seal, now, lastOrder: watchers.lastOrder, log });
    const feed = makeFeed(
      (thrown) => log("error", `a listener of the store threw: ${errorText(thrown)}`),
      (news) => watchers.hear(news),
    );
    const auditRetentionMs = (options.auditRetentionDays ?? AUDIT_RETENTION_DAYS) * DAY_MS;
    const housekeeping = startHousekeeping({ database, now, auditRetentionMs, log });
    housekeeping.wake();
    const wakeHousekeeping = () => housekeeping.wake();
    const engine = { database, clock, seal, feed, watchers, nodeId, instance, now, wakeHousekeeping };
    await absorbForeign(engine);
    return assemble(engine, housekeeping, digest, auditRetentionMs);
  } catch (thrown) {
    await database.close();
    throw thrown;
  }
}

function open(directory: string): Database {
  try {
    const database = openDatabase(directory);
    // LMDB makes them readable for all that the process's umask lets in.
    for (const name of ["data.mdb", "lock.mdb"]) chmodSync(join(directory, name), 0o600);
    return database;
  } catch (thrown) {
    throw new OperatorError(`cannot open the store in ${directory}: ${errorText(thrown)}`);
  }
}

function assemble(
  engine: Engine,
  housekeeping: Housekeeping,
  digest: DigestKeeper,
  auditRetentionMs: number,
): NodeStore {
  const { database, seal, feed, clock } = engine;
  const counts = readCounts(database);
  const reader = makeReader({
    database,
    seal,
    counts,
    zoneRow: (zone) => readZoneRow(database, zone),
  });
  return {
    ...reader,
    ...makeReplicaStore(engine, digest, auditRetentionMs),
    nodeId: engine.nodeId,
    instanceId: engine.instance.id(),
    write: (work) => runLocal(engine, work, { rehearse: false }),
    writeInSlices: (work) => runLocalInSlices(engine, work),
    rehearse: (work) => runLocal(engine, work, { rehearse: true }),
    onChange: (listener) => feed.listen(listener),
    auditPage: (filter, page) => readAuditPage(database, filter, page),
    applyRemote: (items, given) => runMerge(engine, items, given),
    journalPage: (page) => readJournal(database, page),
    journalTotals: () => journalTotals(database),
    journalEntry: (id) => readJournalEntry(database, seal, id),
    zoneDigest: (zone) => {
      const row = readZoneRow(database, zone);
      const object = readObject(database, "zone", [zone]);
      if (!row.alive || object === undefined) return undefined;
      return digestOfZone(row, object, counts.ofZone(zone, row.floor).digest, seal);
    },
    readerAgeMs: () => database.readerAgeMs(),
    failure: () => database.failure(),
    clockAheadMs: () => clock.aheadMs(),
    idle: () => housekeeping.idle(),
    [Symbol.asyncDispose]: async () => {
      await digest.stop();
      await housekeeping.stop();
      await database.close();
    },
  };
}
