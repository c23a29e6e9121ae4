/** Opens the store of a node: its database, clock, seal, change feed and what goes on in the background. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { readAuditPage } from "./audit.ts";
import { readCounts } from "./counts.ts";
import { type Database, openDatabase, STORE_FOLDER } from "./database.ts";
import { type Engine, resumeClock, runLocal, runLocalInSlices, runMerge } from "./engine.ts";
import { makeFeed } from "./feed.ts";
import { collectedUpToMs, type Housekeeping, startHousekeeping } from "./housekeeping.ts";
import { type JournalPage, readJournal } from "./journal.ts";
import type { RefusedItem } from "./merge.ts";
import { readZoneRow } from "./objects.ts";
import { type RawItem, type RawPage, readRawItems } from "./raw-items.ts";
import { makeReader } from "./reader.ts";
import { type SecretKey, settleSecrets } from "./secret-check.ts";
import { makeClock } from "./stamp.ts";
import type { Store } from "./store.ts";

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
};

type PageOptions = { readonly limit: number; readonly cursor?: string };

/** What the node and the replication see of the store, beyond what commands do. */
export type NodeStore = Store & {
  /** Merges what another store has, as one transaction. Resolves, durably, with the items that it refused. */
  applyRemote(items: readonly RawItem[], options?: { readonly firstSync?: true }): Promise<readonly RefusedItem[]>;
  /** All that another store would have to know, by pages; secrets are in the clear. */
  rawItems(options: PageOptions): RawPage;
  /** Versions that lost unseen, in the order of keys; secrets are masked. */
  journalPage(options: PageOptions): JournalPage;
  /** How long the oldest read transaction has been open. */
  readerAgeMs(): number;
  /** Why a commit failed; from then on nothing is written until the store is opened anew. */
  failure(): string | undefined;
  /** How far stamps run ahead of this node's clock; beyond 10,000 writes are refused. */
  clockAheadMs(): number;
  /** Tombstones that were to leave before this moment have left: milliseconds since 1970. */
  collectedUpToMs(): number;
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
    const { seal, instanceId } = await settleSecrets(database, secretKey, previousFileKey);
    const clock = makeClock(nodeId, now);
    resumeClock(database, clock);
    const feed = makeFeed((thrown) => log("error", `a listener of the store threw: ${errorText(thrown)}`));
    const auditRetentionMs = (options.auditRetentionDays ?? AUDIT_RETENTION_DAYS) * DAY_MS;
    const housekeeping = startHousekeeping({ database, now, auditRetentionMs, log });
    housekeeping.wake();
    const wakeHousekeeping = () => housekeeping.wake();
    return assemble({ database, clock, seal, feed, nodeId, instanceId, now, wakeHousekeeping }, housekeeping);
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

function assemble(engine: Engine, housekeeping: Housekeeping): NodeStore {
  const { database, seal, feed, clock, now } = engine;
  const reader = makeReader({
    database,
    seal,
    counts: readCounts(database),
    zoneRow: (zone) => readZoneRow(database, zone),
  });
  return {
    ...reader,
    nodeId: engine.nodeId,
    instanceId: engine.instanceId,
    write: (work) => runLocal(engine, work, { rehearse: false }),
    writeInSlices: (work) => runLocalInSlices(engine, work),
    rehearse: (work) => runLocal(engine, work, { rehearse: true }),
    onChange: (listener) => feed.listen(listener),
    auditPage: (filter, page) => readAuditPage(database, filter, page),
    applyRemote: (items, given) => runMerge(engine, items, given?.firstSync === true),
    rawItems: (page) => readRawItems(database, seal, now(), page),
    journalPage: (page) => readJournal(database, page),
    readerAgeMs: () => database.readerAgeMs(),
    failure: () => database.failure(),
    clockAheadMs: () => clock.aheadMs(),
    collectedUpToMs: () => collectedUpToMs(database),
    idle: () => housekeeping.idle(),
    [Symbol.asyncDispose]: async () => {
      await housekeeping.stop();
      await database.close();
    },
  };
}
