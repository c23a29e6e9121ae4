/**
 * What the store removes in the background: records of zones that ended, tombstones past their time, entries of the
 * audit log and the journal past theirs. In slices, each a transaction of its own, and others run in between.
 */
import { setImmediate } from "node:timers/promises";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { keyBytes, keyText } from "../model/keys.ts";
import { sequenceKeyOf } from "./audit.ts";
import { changeCounts, strikeTally, versionText } from "./counts.ts";
import { type Database, type Row, TABLE } from "./database.ts";
import { type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { type JournalRow, writeJournal } from "./journal.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import { readId, readObject, readZoneRow, removeZoneRow, writeId } from "./objects.ts";
import { STAMP_ZERO, stampMs } from "./stamp.ts";
import { nextSweeps, type Sweep, strikeSweep } from "./sweep-list.ts";
import { collectionMs, momentBytes, strikeTombstone, type TombstoneRow } from "./tombstones.ts";
import { isForgotten } from "./zone-row.ts";

export type Housekeeping = {
  /** Begins a round soon, unless one is under way, which then looks again. */
  readonly wake: () => void;
  /** Settles when nothing is left to do. */
  readonly idle: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

export type HousekeepingParts = {
  readonly database: Database;
  readonly now: () => number;
  readonly auditRetentionMs: number;
  readonly log: Log;
};

const ROUND_MS = 60_000;
const SLICE_ROWS = 500;
/** Of the rows that a slice reads, beside the last of them: rows differ a thousandfold in size, and a slice holds up all else. */
export const SLICE_CHARACTERS_MAX = 131_072;
/** As long as the audit log keeps what it says by default. */
const JOURNAL_RETENTION_MS = 90 * 86_400_000;
const COLLECTED_UP_TO = "collected-up-to";
const NOTHING = new Uint8Array();

export function startHousekeeping(parts: HousekeepingParts): Housekeeping {
  let stopped = false;
  let round: Promise<void> | undefined;
  let again = false;
  const slices = [sweepSlice(parts.database), collectSlice, pruneAuditSlice, pruneJournalSlice()];
  const runRound = async () => {
    do {
      again = false;
      for (const slice of slices) {
        let isMore = true;
        while (isMore && !stopped) {
          isMore = await slice(parts);
          await setImmediate();
        }
      }
    } while (again && !stopped);
  };
  const wake = () => {
    again = true;
    if (stopped || round !== undefined) return;
    round = runRound()
      .catch((thrown) => parts.log("error", `the store could not tidy up: ${errorText(thrown)}`))
      .finally(() => {
        round = undefined;
      });
  };
  const timer = setInterval(wake, ROUND_MS);
  timer.unref();
  const idle = async () => {
    while (round !== undefined) await round;
  };
  return {
    wake,
    idle,
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await idle();
    },
  };
}

/** Does a part of the work and tells whether there may be more. */
type Slice = (parts: HousekeepingParts) => Promise<boolean>;

/** Walks over the records of one zone at a time, and begins anew where the list of ended lives has changed. */
function sweepSlice(database: Database): Slice {
  let after: Uint8Array | undefined;
  let under: string | undefined;
  return async () => {
    if (nextSweeps(database).length === 0) return false;
    let reached: Uint8Array | undefined;
    let signature = "";
    await database.run(() => {
      // As they are where this stands: meanwhile another life may have ended, with records that nobody had seen.
      const sweeps = nextSweeps(database);
      signature = JSON.stringify(sweeps);
      reached = undefined;
      const [first] = sweeps;
      if (first === undefined) return false;
      const page = database.page(TABLE.OBJECT, {
        prefix: keyBytes("record", [first.zone]),
        limit: SLICE_ROWS,
        charactersMax: SLICE_CHARACTERS_MAX,
        ...(signature === under && after && { after }),
      });
      for (const row of page.rows) sweepRow(database, row, first.zone, sweeps);
      reached = page.lastKey;
      if (!page.isLast) return true;
      for (const sweep of sweeps) {
        strikeSweep(database, sweep);
        strikeTally(database, sweep.zone, sweep.life);
      }
      return true;
    });
    under = signature;
    after = reached;
    return true;
  };
}

function sweepRow(database: Database, { value }: Row, zone: string, sweeps: readonly Sweep[]): void {
  const stored = unpackEnvelope(value);
  const { envelope } = stored;
  if (envelope.life >= readZoneRow(database, zone).floor) return;
  const isUnseen = sweeps.find(({ life }) => life === envelope.life)?.hasUnseen === true;
  if (isUnseen && envelope.content.kind === "body") {
    writeJournal(database, "record", stored, "zone-deleted", readZoneRow(database, zone).floor);
  }
  discard(database, "record", stored);
}

/** Takes out what nobody sees any more. */
function discard(database: Database, kind: TombstoneRow["kind"], stored: StoredEnvelope): void {
  const bytes = keyBytes(kind, stored.key);
  database.remove(TABLE.OBJECT, bytes);
  const { id } = stored.envelope;
  if (id !== "") {
    const gone = keyText(kind, stored.key);
    writeId(
      database,
      kind,
      id,
      readId(database, kind, id).filter(({ key }) => key !== gone),
    );
  }
  strikeTombstone(database, bytes, stored);
}

const collectSlice: Slice = async ({ database, now }) => {
  const due = (): readonly Row[] => {
    const rows = database.range(TABLE.TOMBSTONE, { prefix: NOTHING, limit: SLICE_ROWS });
    const end = Buffer.from(momentBytes(now() + 1));
    return rows.filter(({ key }) => Buffer.compare(key, end) < 0);
  };
  if (due().length === 0) return false;
  await database.run(() => {
    const rows = due();
    for (const row of rows) collect(database, row, now());
    const moment = Buffer.from(rows.at(-1)?.key ?? momentBytes(0)).readUIntBE(0, 6);
    writeMetaText(database, COLLECTED_UP_TO, String(Math.max(moment, collectedUpToMs(database))));
    return rows.length > 0;
  });
  return true;
};

/** Tombstones that were to leave before this moment have left, milliseconds since 1970. */
export function collectedUpToMs(database: Database): number {
  return Number(readMetaText(database, COLLECTED_UP_TO) ?? 0);
}

function collect(database: Database, { key: listKey, value }: Row, nowMs: number): void {
  const { kind, key }: TombstoneRow = JSON.parse(value);
  database.remove(TABLE.TOMBSTONE, listKey);
  const stored = readObject(database, kind, key);
  if (stored === undefined || stored.envelope.content.kind !== "tombstone") return;
  const { id, stamp } = stored.envelope;
  discard(database, kind, stored);
  // What this tombstone held down must not rise when it is gone; the journal has it.
  const counts = changeCounts(database);
  for (const row of readId(database, kind, id)) {
    const other = readObject(database, kind, row.naturalKey);
    if (other?.hidden?.by !== "id" || other.hidden.untilMs !== collectionMs(stamp)) continue;
    if (kind === "record") counts.addToZone(key[0] ?? "", other.envelope.life, 0, versionText(row.key, other.envelope));
    discard(database, kind, other);
  }
  counts.save();
  const zone = key[0] ?? "";
  if (kind === "zone" && isForgotten(readZoneRow(database, zone), nowMs)) removeZoneRow(database, zone);
}

const pruneAuditSlice: Slice = async ({ database, now, auditRetentionMs }) => {
  const end = Buffer.from(momentBytes(Math.max(now() - auditRetentionMs, 0)));
  const old = (limit: number): readonly Row[] => {
    const bounds = { prefix: NOTHING, limit, charactersMax: SLICE_CHARACTERS_MAX };
    return database.range(TABLE.AUDIT, bounds).filter(({ key }) => Buffer.compare(key, end) < 0);
  };
  if (old(1).length === 0) return false;
  await database.run(() => {
    for (const { key } of old(SLICE_ROWS)) {
      database.remove(TABLE.AUDIT, key);
      database.remove(TABLE.AUDIT_SEQUENCE, sequenceKeyOf(key));
    }
    return true;
  });
  return true;
};

/** The journal lies by keys, not by time: one look at each entry a round. */
function pruneJournalSlice(): Slice {
  let after: Uint8Array | undefined;
  return async ({ database, now }) => {
    const bounds = { prefix: NOTHING, limit: SLICE_ROWS, charactersMax: SLICE_CHARACTERS_MAX };
    const page = database.page(TABLE.JOURNAL, { ...bounds, ...(after && { after }) });
    after = page.isLast ? undefined : page.lastKey;
    const old = page.rows.filter(({ value }) => {
      const row: JournalRow = JSON.parse(value);
      const { stamp, born } = unpackEnvelope(row.packed).envelope;
      const sinceMs = row.atMs ?? stampMs(stamp === STAMP_ZERO ? born : stamp);
      return sinceMs < now() - JOURNAL_RETENTION_MS;
    });
    if (old.length > 0) {
      await database.run(() => {
        for (const { key } of old) database.remove(TABLE.JOURNAL, key);
        return true;
      });
    }
    return after !== undefined;
  };
}
