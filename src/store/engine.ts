/** Runs transactions: local work and merges, each with its clock reading, its audit entries and its place in the feed. */
import { Refusal } from "../model/refusal.ts";
import { makeAuditEntry, putAuditEntry } from "./audit.ts";
import { OWN_SEQUENCE } from "./audit-sync.ts";
import { beginChanges, type Changes } from "./changes.ts";
import type { Database } from "./database.ts";
import type { Feed, Ticket } from "./feed.ts";
import type { Instance } from "./instance.ts";
import { mergeItems, type RefusedItem, type RemoteOptions, STAMP_AHEAD_MAX_MS } from "./merge.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import type { RawItem } from "./raw-items.ts";
import type { Seal } from "./seal.ts";
import type { Clock } from "./stamp.ts";
import type { AuditInput, ChangeBatch, StoreTransaction } from "./store.ts";
import { beginTransaction, Overtaken } from "./transaction.ts";
import type { News, Watchers } from "./watchers.ts";

const CLOCK = "clock";

export type Engine = {
  readonly database: Database;
  readonly clock: Clock;
  readonly seal: Seal;
  readonly feed: Feed;
  readonly watchers: Watchers;
  readonly nodeId: string;
  readonly instance: Instance;
  readonly now: () => number;
  /** Called when there is something to remove in the background. */
  readonly wakeHousekeeping: () => void;
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
    const local = beginLocal(engine);
    try {
      const result = work(local.tx);
      if (result instanceof Promise) {
        result.catch(() => undefined);
        throw new TypeError("the work of a transaction must not be async");
      }
      return local.outcome(result);
    } finally {
      local.end();
    }
  });
}

/** A transaction in slices is overtaken so often before its caller is told to try again. */
const OVERTAKEN_MAX = 5;

/** Runs the steps of `work` as one durable transaction, in slices between which the thread does other things. */
export async function runLocalInSlices<T>(
  engine: Engine,
  work: (tx: StoreTransaction) => Generator<void, T>,
): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await runLocalOnce(engine, work);
    } catch (thrown) {
      if (!(thrown instanceof Overtaken)) throw thrown;
      if (times === OVERTAKEN_MAX) throw new Refusal("conflict", "what is to be changed kept changing; try again");
    }
  }
}

async function runLocalOnce<T>(engine: Engine, work: (tx: StoreTransaction) => Generator<void, T>): Promise<T> {
  const { database } = engine;
  const committing = committingOf<T>(engine, false);
  return committing.settle(
    database.runInSlices(function* () {
      const local = beginLocal(engine);
      try {
        return yield* committing.keep(local.outcome(yield* work(local.tx)));
      } finally {
        local.end();
      }
    }),
  );
}

/** A transaction of this node's own, for as long as its work runs. */
function beginLocal(engine: Engine) {
  const { clock, now, nodeId, database, seal } = engine;
  // Peers would refuse what is written here.
  if (clock.aheadMs() > STAMP_AHEAD_MAX_MS) {
    throw new Refusal("clock_skew", "this node's clock lies more than 10 s behind the stamps of what it holds");
  }
  const nowMs = now();
  const changes = beginChanges(database, seal, engine.watchers.trace(true, seal));
  const audit = auditWriter(engine, nowMs);
  const tx = beginTransaction({ changes, nodeId, stamp: clock.next(), nowMs, audit: audit.enter });
  const ended = endable(tx);
  return {
    tx: ended.tx,
    end: ended.end,
    outcome: <T>(result: T): Outcome<T> => {
      return { result, changes, origin: "local", hasAudit: audit.save() };
    },
  };
}

/** So few items are merged at a stretch. */
const AT_ONCE_ITEMS_MAX = 32;

/** Merges what another store has, many items in slices between which the thread does other things. */
export async function runMerge(
  engine: Engine,
  items: readonly RawItem[],
  { firstSync, partial, rows = [] }: RemoteOptions = {},
): Promise<readonly RefusedItem[]> {
  type Refused = readonly RefusedItem[];
  const { clock, now, database, seal, watchers } = engine;
  const merge = function* (): Generator<void, Outcome<Refused>> {
    const changes = beginChanges(database, seal, watchers.trace(false, seal));
    const options = { isFirstSync: firstSync === true, isPartial: partial === true };
    const result = yield* mergeItems({ changes, database, seal, clock, nowMs: now(), ...options }, items, rows);
    return { result, changes, origin: "remote", hasAudit: false };
  };
  if (items.length + rows.length <= AT_ONCE_ITEMS_MAX)
    return commit(engine, { rehearse: false }, () => atOnce(merge()));
  const committing = committingOf<Refused>(engine, false);
  return committing.settle(
    database.runInSlices(function* () {
      return yield* committing.keep(yield* merge());
    }),
  );
}

/** Takes out what is no longer to be there, as no write of anybody's: listeners hear of it, other stores do not. */
export async function runRemoval(engine: Engine, work: (changes: Changes) => void): Promise<void> {
  return commit(engine, { rehearse: false }, () => {
    const changes = beginChanges(engine.database, engine.seal, undefined);
    work(changes);
    return { result: undefined, changes, origin: "remote", hasAudit: false };
  });
}

type Outcome<T> = {
  readonly result: T;
  readonly changes: Changes;
  readonly origin: ChangeBatch["origin"];
  /** Whether it entered anything in the audit log. */
  readonly hasAudit: boolean;
};

async function commit<T>(
  engine: Engine,
  { rehearse }: { readonly rehearse: boolean },
  execute: () => Outcome<T>,
): Promise<T> {
  const committing = committingOf<T>(engine, rehearse);
  return committing.settle(engine.database.run(() => atOnce(committing.keep(execute())), committing.takenBack));
}

function atOnce<T>(steps: Generator<void, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** The end of a transaction: inside of it what is to be kept, and, once it is on the disk, who hears of it. */
function committingOf<T>({ database, clock, feed, watchers, wakeHousekeeping }: Engine, rehearse: boolean) {
  let done:
    | { readonly result: T; readonly batch: ChangeBatch; readonly news: News; readonly hasEnded: boolean }
    | undefined;
  let ticket: Ticket | undefined;
  return {
    /** Whether the transaction is to be kept. */
    keep: function* ({ result, changes, origin, hasAudit }: Outcome<T>): Generator<void, boolean> {
      const isKept = changes.isDirty() && !rehearse;
      const { batch, traced } = yield* changes.finish(origin);
      // Every transaction writes it: no earlier than at the end of one in slices, which others would have to wait for.
      if (isKept) writeMetaText(database, CLOCK, clock.reading());
      const order = isKept ? watchers.enter() : watchers.lastOrder();
      done = { result, batch, news: { order, traced, hasAudit }, hasEnded: isKept && changes.hasEnded() };
      if (isKept) ticket = feed.enter();
      return isKept;
    },
    /** It runs once more, and has its place in the feed then: nobody waits for the one that it had. */
    takenBack: () => {
      ticket?.failed();
      ticket = undefined;
    },
    settle: async (written: Promise<void>): Promise<T> => {
      try {
        await written;
      } catch (thrown) {
        ticket?.failed();
        throw thrown;
      }
      if (done === undefined) throw new Error("the transaction did not run");
      await ticket?.committed(done.batch, done.news);
      if (done.hasEnded) wakeHousekeeping();
      return done.result;
    },
  };
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

function auditWriter({ database, instance, nodeId }: Engine, timeMs: number) {
  const instanceId = instance.id();
  let sequence: number | undefined;
  return {
    enter: (input: AuditInput) => {
      sequence = (sequence ?? Number(readMetaText(database, OWN_SEQUENCE) ?? 0)) + 1;
      const at = { instanceId, sequence, timeMs };
      putAuditEntry(database, makeAuditEntry(input, { ...at, nodeId }), at);
    },
    /** Whether there was any. */
    save: (): boolean => {
      if (sequence !== undefined) writeMetaText(database, OWN_SEQUENCE, String(sequence));
      return sequence !== undefined;
    },
  };
}
