/**
 * The audit log of a store. An entry lies under its time, so that the newest are the last; beside it its sequence leads
 * to it. Sequences belong to the instance of the store and have no gaps.
 */
import { hash } from "node:crypto";
import { type Database, TABLE } from "./database.ts";
import { textKey } from "./objects.ts";
import type { AuditEntry, AuditFilter, AuditInput } from "./store.ts";
import { momentBytes } from "./tombstones.ts";

/** A body before or after that is longer is entered as its hash and size. */
export const AUDIT_BODY_BYTES_MAX = 65_536;
/** Entries looked at for one page; a filter that matches few gives short pages and a cursor to go on with. */
export const AUDIT_SCAN_MAX = 5_000;
/** Their text, in characters: about a millisecond's. One entry may have 130,000. */
export const AUDIT_SCAN_CHARACTERS_MAX = 65_536;

/** Of an entry of another store: two bodies, and what is beside them. */
export const AUDIT_ENTRY_CHARACTERS_MAX = 4 * AUDIT_BODY_BYTES_MAX;

const SEQUENCE_BYTES = 6;

function sequenceBytes(sequence: number): Uint8Array {
  const bytes = Buffer.alloc(SEQUENCE_BYTES);
  bytes.writeUIntBE(sequence, 0, SEQUENCE_BYTES);
  return bytes;
}

function auditKey(timeMs: number, instanceId: string, sequence: number): Uint8Array {
  return Buffer.concat([momentBytes(timeMs), textKey(instanceId), sequenceBytes(sequence)]);
}

export function auditSequenceKey(instanceId: string, sequence: number): Uint8Array {
  return Buffer.concat([textKey(instanceId), sequenceBytes(sequence)]);
}

/** What `auditSequenceKey` made a key of. */
export function sequenceOfKey(key: Uint8Array): { readonly instance: string; readonly sequence: number } {
  const bytes = Buffer.from(key);
  const end = bytes.length - SEQUENCE_BYTES;
  return { instance: bytes.subarray(0, end - 1).toString(), sequence: bytes.readUIntBE(end, SEQUENCE_BYTES) };
}

/** The key of an entry is its moment and then its sequence's key. */
export function sequenceKeyOf(key: Uint8Array): Uint8Array {
  return key.subarray(momentBytes(0).length);
}

/** The entry as it will be stored. */
export function makeAuditEntry(
  input: AuditInput,
  { instanceId, sequence, timeMs, nodeId }: { instanceId: string; sequence: number; timeMs: number; nodeId: string },
): AuditEntry {
  const { before, after, ...rest } = input;
  return {
    id: `${instanceId}-${sequence}`,
    time: new Date(timeMs).toISOString(),
    node_id: nodeId,
    ...rest,
    ...(before !== undefined && { before: bounded(before) }),
    ...(after !== undefined && { after: bounded(after) }),
  };
}

function bounded(body: unknown): unknown {
  const text = JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  return bytes <= AUDIT_BODY_BYTES_MAX ? body : { sha256: hash("sha256", text), bytes };
}

export function putAuditEntry(
  database: Database,
  entry: AuditEntry,
  at: { readonly instanceId: string; readonly sequence: number; readonly timeMs: number },
): void {
  const key = auditKey(at.timeMs, at.instanceId, at.sequence);
  database.put(TABLE.AUDIT, key, JSON.stringify(entry));
  database.put(
    TABLE.AUDIT_SEQUENCE,
    auditSequenceKey(at.instanceId, at.sequence),
    Buffer.from(key).toString("base64url"),
  );
}

const FIELDS = ["user_id", "user_name", "resource", "resource_id", "action"] as const;

function matching(text: string, filter: AuditFilter): AuditEntry | undefined {
  // Parsing costs more than looking for the words first.
  for (const field of FIELDS) {
    const wanted = filter[field];
    if (wanted !== undefined && !text.includes(JSON.stringify(wanted))) return undefined;
  }
  const entry: AuditEntry = JSON.parse(text);
  return FIELDS.every((field) => filter[field] === undefined || entry[field] === filter[field]) ? entry : undefined;
}

/**
 * Newest first, or oldest first. A cursor that is none gives the page that begins where its bytes would lie. Never looks
 * at more than AUDIT_SCAN_MAX entries, and ends behind the one with which their text is AUDIT_SCAN_CHARACTERS_MAX long: a
 * page may be short, or empty, and still have a cursor.
 */
export function readAuditPage(
  database: Database,
  filter: AuditFilter,
  { limit, cursor, oldestFirst }: { readonly limit: number; readonly cursor?: string; readonly oldestFirst?: true },
): { readonly entries: readonly AuditEntry[]; readonly cursor: string | undefined } {
  const entries: AuditEntry[] = [];
  const reverse = oldestFirst !== true;
  let after = startOf(filter, cursor, reverse);
  let scanned = 0;
  let charactersLeft = AUDIT_SCAN_CHARACTERS_MAX;
  while (scanned < AUDIT_SCAN_MAX && charactersLeft > 0) {
    const chunk = Math.min(AUDIT_SCAN_MAX - scanned, Math.max(CHUNK_MIN, limit - entries.length));
    const bounds = { prefix: NOTHING, limit: chunk, charactersMax: charactersLeft, reverse };
    const page = database.page(TABLE.AUDIT, { ...bounds, ...(after && { after }) });
    after = page.lastKey ?? after;
    for (const { key, value } of page.rows) {
      if (isBeyond(filter, timeOfKey(key), reverse)) return { entries, cursor: undefined };
      scanned++;
      charactersLeft -= value.length;
      const entry = matching(value, filter);
      if (entry === undefined) continue;
      entries.push(entry);
      if (entries.length >= limit) return { entries, cursor: Buffer.from(key).toString("base64url") };
    }
    if (page.isLast) return { entries, cursor: undefined };
  }
  return { entries, cursor: after && Buffer.from(after).toString("base64url") };
}
const NOTHING = new Uint8Array();
const CHUNK_MIN = 200;

/** Of the key of an entry: its time, milliseconds since 1970. */
export function timeOfKey(key: Uint8Array): number {
  return Buffer.from(key).readUIntBE(0, 6);
}

/** Whether the scan has passed the other end of the filter's time. */
function isBeyond({ fromMs, toMs }: AuditFilter, timeMs: number, reverse: boolean): boolean {
  return reverse ? fromMs !== undefined && timeMs < fromMs : toMs !== undefined && timeMs >= toMs;
}

/** The key that the scan begins behind: the cursor's, or the filter's end of time, whichever is further along. */
function startOf({ fromMs, toMs }: AuditFilter, cursor: string | undefined, reverse: boolean): Uint8Array | undefined {
  const bound = reverse ? toMs : fromMs;
  // No key is as short as a moment alone, so that none is left out by beginning behind it.
  const edge = bound === undefined ? undefined : momentBytes(Math.min(Math.max(Math.ceil(bound), 0), TIME_MAX));
  if (cursor === undefined) return edge;
  const key = Buffer.from(cursor, "base64url");
  if (edge === undefined) return key;
  return Buffer.compare(key, edge) < 0 === reverse ? key : edge;
}
const TIME_MAX = 2 ** 48 - 1;
