/** Runs transactions: local work and merges, each with its clock reading, its audit entries and its place in the feed. */
import { Refusal } from "../model/refusal.ts";
import { makeAuditEntry, putAuditEntry } from "./audit.ts";
import { beginChanges, type Changes } from "./changes.ts";
import type { Database } from "./database.ts";
import type { Feed, Ticket } from "./feed.ts";
import { mergeItems, type RefusedItem } from "./merge.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import type { RawItem } from "./raw-items.ts";
import type { Seal } from "./seal.ts";
import type { Clock } from "./stamp.ts";
import type { AuditInput, ChangeBatch, StoreTransaction } from "./store.ts";
import { beginTransaction } from "./transaction.ts";

/** Further ahead of the own clock than this, peers would refuse what is written here. */
export const CLOCK_AHEAD_MAX_MS = 10_000;
const CLOCK = "clock";
const AUDIT_SEQUENCE = "audit-sequence";

export type Engine = {
  readonly database: Database;
  readonly clock: Clock;
  readonly seal: Seal;
  readonly feed: Feed;
  readonly nodeId: string;
  readonly instanceId: string;
  readonly now: () => number;
};

/** The latest clock reading that reached the disk goes into the clock: stamps never go back over a restart. */
export function resumeClock(database: Database, clock: Clock): void {
  const reading = readMetaText(database, CLOCK);
  if (reading !== undefined) clock.observe(`${reading}-`);
}

/** Runs `work` durably, or, with `rehearse`, takes everything back at the end. */
export async function runLocal<T>(
  engine: Engine,
  work: (tx: StoreTransaction) => T,
  options: { readonly rehearse: boolean },
): Promise<T> {
  return commit(engine, options, () => {
    const { clock, now, nodeId, database, seal } = engine;
    if (clock.aheadMs() > CLOCK_AHEAD_MAX_MS) {
      throw new Refusal("clock_skew", "this node's clock lies more than 10 s behind the stamps of what it holds");
    }
    const nowMs = now();
    const changes = beginChanges(database, seal);
    const audit = auditWriter(engine, nowMs);
    const tx = beginTransaction({ changes, nodeId, stamp: clock.next(), nowMs, audit: audit.enter });
    const ended = endable(tx);
    try {
      const result = work(ended.tx);
      if (result instanceof Promise) {
        result.catch(() => undefined);
        throw new TypeError("the work of a transaction must not be async");
      }
      audit.save();
      return { result, changes, origin: "local" };
    } finally {
      ended.end();
    }
  });
}

/** Merges what another store has. */
export async function runMerge(
  engine: Engine,
  items: readonly RawItem[],
  isFirstSync: boolean,
): Promise<readonly RefusedItem[]> {
  return commit(engine, { rehearse: false }, () => {
    const { clock, now, database, seal } = engine;
    const changes = beginChanges(database, seal);
    const result = mergeItems({ changes, database, seal, clock, nowMs: now(), isFirstSync }, items);
    return { result, changes, origin: "remote" };
  });
}

type Outcome<T> = { readonly result: T; readonly changes: Changes; readonly origin: ChangeBatch["origin"] };

async function commit<T>(
  { database, clock, feed }: Engine,
  { rehearse }: { readonly rehearse: boolean },
  execute: () => Outcome<T>,
): Promise<T> {
  let done: { readonly result: T; readonly batch: ChangeBatch } | undefined;
  let ticket: Ticket | undefined;
  try {
    await database.run(() => {
      const { result, changes, origin } = execute();
      const isKept = changes.isDirty() && !rehearse;
      if (isKept) writeMetaText(database, CLOCK, clock.reading());
      done = { result, batch: changes.finish(origin) };
      if (isKept) ticket = feed.enter();
      return isKept;
    });
  } catch (thrown) {
    ticket?.failed();
    throw thrown;
  }
  if (done === undefined) throw new Error("the transaction did not run");
  await ticket?.committed(done.batch);
  return done.result;
}

/** The transaction for its callback only: a write later on would belong to no transaction. */
function endable(tx: StoreTransaction): { readonly tx: StoreTransaction; readonly end: () => void } {
  let hasEnded = false;
  const guard = <Arguments extends unknown[], Result>(call: (...given: Arguments) => Result) => {
    return (...given: Arguments): Result => {
      if (hasEnded) throw new Error("this transaction has ended");
      return call(...given);
    };
  };
  return {
    tx: {
      ...tx,
      put: (kind, body, options) => guard(() => tx.put(kind, body, options))(),
      delete: guard(tx.delete),
      move: (kind, from, body) => guard(() => tx.move(kind, from, body))(),
      deleteZone: guard(tx.deleteZone),
      setSerial: guard(tx.setSerial),
      setState: guard(tx.setState),
      audit: guard(tx.audit),
    },
    end: () => {
      hasEnded = true;
    },
  };
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
