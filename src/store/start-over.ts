/**
 * The end of a store that others have gone on without: tombstones that it never saw have left, so what it holds may be what
 * they deleted. It begins with nothing, and what others may not know goes to the journal. In slices, each a transaction;
 * where the process dies in between, the last agreement still says that it has to be done again.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Kind } from "../model/objects.ts";
import { lastAgreementMs, setAgreement } from "./agreement.ts";
import type { Changes } from "./changes.ts";
import { type Database, type Row, type RowPage, TABLE, type Table } from "./database.ts";
import type { DigestKeeper } from "./digest.ts";
import { type Engine, runRemoval } from "./engine.ts";
import { type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { SLICE_CHARACTERS_MAX } from "./housekeeping.ts";
import { writeJournal } from "./journal.ts";
import { readObject } from "./objects.ts";
import { kindOfRow } from "./refs.ts";
import { STAMP_ZERO, stampMs, stampNode } from "./stamp.ts";
import { freshZoneRow, raisedSerial, type ZoneRow } from "./zone-row.ts";

/** Written so shortly before an agreement, it may not have been part of it; clocks differ too. */
const AGREEMENT_MARGIN_MS = 60_000;
const SLICE_ROWS = 200;
const NOTHING = new Uint8Array();

/** Up to when the others have what that node wrote, milliseconds since 1970. */
type KnownMs = (nodeId: string) => number;

export function startOver(
  engine: Engine,
  digest: Pick<DigestKeeper, "rebuildAfter">,
  given: KnownMs | undefined,
): Promise<void> {
  const { database } = engine;
  const agreedMs = lastAgreementMs(database) || Number.NEGATIVE_INFINITY;
  const knownMs = given ?? (() => agreedMs);
  return digest.rebuildAfter(async () => {
    // Zones first: from then on nothing of them answers.
    await removeAll(engine, TABLE.ZONE, (changes, { value }) =>
      removeZone(engine, changes, JSON.parse(value), knownMs),
    );
    await removeAll(engine, TABLE.OBJECT, (changes, { key, value }) => {
      const stored = unpackEnvelope(value);
      const kind = kindOfRow(key);
      keep(database, kind, stored, knownMs, engine.now());
      changes.discard(kind, stored);
    });
    // They came from others, who have them.
    for (const table of [TABLE.ALIAS, TABLE.FOREIGN]) {
      await removeAll(engine, table, (changes, { key }) => {
        changes.markDirty();
        database.remove(table, key);
      });
    }
    await setAgreement(database, 0, {});
  });
}

async function removeAll(engine: Engine, table: Table, remove: (changes: Changes, row: Row) => void): Promise<void> {
  for (let after: Uint8Array | undefined, isLast = false; !isLast; ) {
    let page: RowPage = { rows: [], lastKey: undefined, isLast: true };
    await runRemoval(engine, (changes) => {
      const bounds = { prefix: NOTHING, limit: SLICE_ROWS, charactersMax: SLICE_CHARACTERS_MAX };
      page = engine.database.page(table, { ...bounds, ...(after && { after }) });
      for (const row of page.rows) remove(changes, row);
    });
    after = page.lastKey;
    isLast = page.isLast;
    await nextTurn();
  }
}

function removeZone({ database, nodeId, now }: Engine, changes: Changes, row: ZoneRow, knownMs: KnownMs): void {
  const { zone } = row;
  const nowMs = now();
  const stored = readObject(database, "zone", [zone]);
  if (stored !== undefined) {
    keep(database, "zone", stored, knownMs, nowMs);
    changes.discard("zone", stored);
  }
  const serial = serialToPass(row, knownMs(nodeId) - AGREEMENT_MARGIN_MS, nowMs);
  changes.setZoneRow({ ...freshZoneRow(zone), ...(serial !== undefined && { serial }) });
}

/**
 * Of a zone that changed here unseen secondaries of this node have a serial that the others lack. It stays, raised, so that they do
 * not take the zone as it will be for an older one. Serials are times; one that was imported may only look later.
 */
function serialToPass({ serial }: ZoneRow, knownMs: number, nowMs: number): ZoneRow["serial"] {
  if (serial === undefined || serial.serial * 1000 <= knownMs) return undefined;
  return { life: serial.life, serial: raisedSerial(serial.serial, nowMs) };
}

/** Sessions are not worth keeping: whoever had one signs in again. */
function keep(database: Database, kind: Kind, stored: StoredEnvelope, knownMs: KnownMs, nowMs: number): void {
  const { stamp, born, content } = stored.envelope;
  if (content.kind !== "body" || kind === "session") return;
  if (stampMs(stamp === STAMP_ZERO ? born : stamp) <= knownMs(stampNode(stamp)) - AGREEMENT_MARGIN_MS) return;
  writeJournal(database, kind, stored, "stale", "", nowMs);
}
