/**
 * The records of a zone that are answered, with no more of them than an answer is made of: at its start a node reads all
 * that it has.
 */
import { OperatorError } from "../base/errors.ts";
import { keyBytes } from "../model/keys.ts";
import type { NaturalKey, RecordBody } from "../model/objects.ts";
import { isAlive, type ZoneLookup } from "./alive.ts";
import { type Database, TABLE } from "./database.ts";
import { unpackEnvelope } from "./envelope.ts";
import { readPlainRow, valuesOfRow } from "./plain-row.ts";
import type { Seal } from "./seal.ts";
import type { AnsweringPage, AnsweringRecord } from "./store.ts";

/** A page ends behind the row that comes to so many: with certificates in its health check a record is a hundred times another. */
const PAGE_CHARACTERS_MAX = 500_000;

/** `limit` counts rows: a page may have fewer records, and no cursor where it is the last. */
export function readAnswering(
  database: Pick<Database, "values">,
  zoneRow: ZoneLookup,
  seal: Seal,
  zone: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: Uint8Array },
): AnsweringPage {
  const row = zoneRow(zone);
  const prefix = keyBytes("record", [zone]);
  const page = database.values(TABLE.OBJECT, {
    prefix,
    limit,
    charactersMax: PAGE_CHARACTERS_MAX,
    ...(cursor !== undefined && { after: cursor }),
  });
  const records: AnsweringRecord[] = [];
  for (const value of page.values) {
    const record = plainRecord(value, row.floor) ?? anyRecord(value, () => row, seal);
    if (record !== undefined && row.alive) records.push(record);
  }
  return { records, cursor: page.isLast ? undefined : page.lastKey };
}

function plainRecord(text: string, floor: string): AnsweringRecord | undefined {
  const row = readPlainRow(text);
  if (row === undefined || row.life !== floor) return undefined;
  const { id, name, type, ttl } = row;
  return { id, name, type, ttl, values: valuesOfRow(row) };
}

function anyRecord(text: string, zoneRow: ZoneLookup, seal: Seal): AnsweringRecord | undefined {
  const stored = unpackEnvelope(text);
  const { content } = stored.envelope;
  if (content.kind !== "body" || stored.hidden !== undefined || !isAlive("record", stored, zoneRow)) return undefined;
  // Rows of this prefix are records.
  const body = content.body as RecordBody;
  return stored.sealed ? openedRecord(stored.key, body, seal) : body;
}

/** The secrets of a record are those of its health check: where they are damaged, the record answers without it. */
function openedRecord(key: NaturalKey, body: RecordBody, seal: Seal): AnsweringRecord {
  try {
    return seal.open("record", key, body) as RecordBody;
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const { health_check_template: _, ...ungated } = body;
    return { ...ungated, fault: `its health check is left out: ${error.message}` };
  }
}
