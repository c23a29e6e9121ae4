/** Opens the store of a node: its database, clock, seal, change feed and what goes on in the background. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Refusal } from "../model/refusal.ts";
import { makeAuditEntry, putAuditEntry, readAuditPage } from "./audit.ts";
import { beginChanges, type Changes } from "./changes.ts";
import { readCounts } from "./counts.ts";
import { type Database, openDatabase, TABLE } from "./database.ts";
import { makeFeed } from "./feed.ts";
import { FORMAT, readMeta, readMetaText, writeMeta, writeMetaText } from "./meta.ts";
import { readZoneRow, textKey } from "./objects.ts";
import { makeReader } from "./reader.ts";
import { makeSeal, type Seal } from "./seal.ts";
import { type Clock, makeClock } from "./stamp.ts";
import type { AuditInput, ChangeBatch, Store, StoreTransaction } from "./store.ts";
import { beginTransaction } from "./transaction.ts";

export type SecretKey = {
  /** The node's own key file, or the key that the cluster shares. */
  readonly kind: "file" | "cluster";
  readonly key: Uint8Array;
};

export type StoreOptions = {
  /** The node's data directory, which the caller has locked. The database lies in a folder of it. */
  readonly directory: string;
  readonly nodeId: string;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly secretKey: SecretKey;
  /** With a cluster key: the node's own key, which sealed the secrets before the node had a cluster key. */
  readonly previousFileKey?: Uint8Array;
  readonly auditRetentionDays?: number;
  readonly log?: Log;
};

/** Further ahead of the own clock than this, peers would refuse what is written here. */
export const CLOCK_AHEAD_MAX_MS = 10_000;
const FOLDER = "store";
const INSTANCE_BYTES = 10;
const CLOCK = "clock";
const AUDIT_SEQUENCE = "audit-sequence";

type Engine = {
  readonly database: Database;
  readonly clock: Clock;
  readonly seal: Seal;
  readonly nodeId: string;
  readonly instanceId: string;
  readonly now: () => number;
};

export async function openStore(options: StoreOptions): Promise<Store> {
  const { nodeId, now = Date.now, log = () => undefined } = options;
  const database = open(join(options.directory, FOLDER));
  const seal = makeSeal(options.secretKey.key);
  const clock = makeClock(nodeId, now);
  const instanceId = await instanceOf(database, options, seal);
  const reading = readMetaText(database, CLOCK);
  if (reading !== undefined) clock.observe(`${reading}-`);
  const engine: Engine = { database, clock, seal, nodeId, instanceId, now };
  const feed = makeFeed((thrown) => log("error", `a listener of the store threw: ${errorText(thrown)}`));
  const reader = makeReader({
    database,
    seal,
    counts: readCounts(database),
    zoneRow: (zone) => readZoneRow(database, zone),
  });
  return {
    ...reader,
    nodeId,
    instanceId,
    write: async (work) => {
      const run = oneRun(engine, work);
      let ticket: ReturnType<typeof feed.enter> | undefined;
      try {
        await database.run(() => {
          const batch = run.execute();
          ticket = feed.enter();
          return batch;
        });
      } catch (thrown) {
        ticket?.failed();
        throw thrown;
      }
      const { batch, result } = run.outcome();
      await ticket?.committed(batch);
      return result;
    },
    rehearse: async (work) => {
      const run = oneRun(engine, work);
      await database.run(() => {
        run.execute();
        return false;
      });
      return run.outcome().result;
    },
    onChange: (listener) => feed.listen(listener),
    auditPage: (filter, page) => readAuditPage(database, filter, page),
    [Symbol.asyncDispose]: () => database.close(),
  };
}

function open(directory: string): Database {
  try {
    return openDatabase(directory);
  } catch (thrown) {
    throw new OperatorError(`cannot open the store in ${directory}: ${errorText(thrown)}`);
  }
}

async function instanceOf(database: Database, { secretKey }: StoreOptions, seal: Seal): Promise<string> {
  const meta = readMeta(database);
  if (meta !== undefined) return meta.instance;
  const instance = randomBytes(INSTANCE_BYTES).toString("hex");
  await database.run(() => {
    writeMeta(database, { format: FORMAT, instance, secret: { kind: secretKey.kind, check: seal.check } });
    return true;
  });
  return instance;
}

/** One transaction of `work`: what it gave, and what it changed. */
function oneRun<T>(engine: Engine, work: (tx: StoreTransaction) => T) {
  let done: { readonly result: T; readonly batch: ChangeBatch } | undefined;
  return {
    /** Whether anything was written. */
    execute: (): boolean => {
      const { clock, now, nodeId, database, seal } = engine;
      if (clock.aheadMs() > CLOCK_AHEAD_MAX_MS) {
        throw new Refusal("clock_skew", "this node's clock lies more than 10 s behind the stamps of what it holds");
      }
      const changes = beginChanges(database, seal);
      const nowMs = now();
      const stamp = clock.next();
      const audit = auditWriter(engine, nowMs);
      const tx = beginTransaction({
        changes,
        nodeId,
        stamp,
        nowMs,
        audit: audit.enter,
        sweep: (zone, life) => database.put(TABLE.SWEEP, textKey(zone, life), "{}"),
      });
      const result = work(tx);
      if (result instanceof Promise) throw new TypeError("the work of a transaction must not be async");
      done = { result, batch: finish(engine, changes) };
      audit.save();
      return changes.isDirty();
    },
    outcome: () => {
      if (done === undefined) throw new Error("the transaction did not run");
      return done;
    },
  };
}

function finish({ database, clock }: Engine, changes: Changes): ChangeBatch {
  const batch = changes.finish("local");
  if (changes.isDirty()) writeMetaText(database, CLOCK, clock.reading());
  return batch;
}

function auditWriter({ database, instanceId, nodeId }: Engine, timeMs: number) {
  let sequence: number | undefined;
  return {
    enter: (input: AuditInput) => {
      sequence = (sequence ?? Number(readMetaText(database, AUDIT_SEQUENCE) ?? 0)) + 1;
      const at = { instanceId, sequence, timeMs };
      putAuditEntry(database, makeAuditEntry(input, { ...at, nodeId }), at);
    },
    save: () => {
      if (sequence !== undefined) writeMetaText(database, AUDIT_SEQUENCE, String(sequence));
    },
  };
}
