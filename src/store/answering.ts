/**
 * The records of a zone that are answered, with no more of them than an answer is made of: at its start a node reads all
 * that it has.
 */
import { OperatorError } from "../base/errors.ts";
import { keyBytes } from "../model/keys.ts";
import type { NaturalKey, RecordBody, RecordType } from "../model/objects.ts";
import { isAlive, type ZoneLookup } from "./alive.ts";
import { type Database, TABLE } from "./database.ts";
import { unpackEnvelope } from "./envelope.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import type { AnsweringPage, AnsweringRecord } from "./store.ts";

/** By the text that a row has. MX, SRV and CAA have numbers beside their values. */
const PLAIN_TYPES: ReadonlyMap<string, RecordType> = new Map(
  (["A", "AAAA", "CNAME", "NS", "PTR", "TXT", "ALIAS"] as const).map((type) => [type, type]),
);

/**
 * The row of a record with one value and nothing special, which is nearly every one, as `packEnvelope` writes it: its life,
 * name, type, TTL and value. Reading it so takes an eighth of what JSON.parse takes; any other row goes that way.
 */
const PLAIN_ROW =
  /^\{"s":"[^"\\]*",(?:"b":"[^"\\]*",)?(?:"l":"([^"\\]*)",)?"v":\{"id":"([^"\\]*)","zone":"[^"\\]*","name":"([^"\\]*)","type":"([A-Z]+)","ttl":(\d+),"values":\[\{"value":"([^"\\]*)"\}\],"protected":(?:true|false),"auto_populate":(?:true|false)\}\}$/;

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
  const match = PLAIN_ROW.exec(text);
  if (match === null) return undefined;
  const type = PLAIN_TYPES.get(match[4] ?? "");
  const [, life = STAMP_ZERO, id = "", name = "", , ttl, value = ""] = match;
  return type === undefined || life !== floor ? undefined : { id, name, type, ttl: Number(ttl), values: [{ value }] };
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
