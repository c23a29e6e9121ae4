/**
 * The audit log as stores exchange it: by the last sequence of each instance. Entries of others lie in the same tables as
 * the own ones. What is pruned leaves no hole to be filled again: the last sequence that was here is kept beside them.
 */
import { isShallow } from "../model/body-shapes.ts";
import { AUDIT_ENTRY_CHARACTERS_MAX, auditSequenceKey, putAuditEntry, sequenceOfKey } from "./audit.ts";
import { behindPrefix, type Database, TABLE } from "./database.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import { textKey } from "./objects.ts";
import type { AuditVector } from "./replica.ts";
import type { AuditEntry } from "./store.ts";

export const OWN_SEQUENCE = "audit-sequence";
/** Of an instance: the last sequence that was here. */
export const AUDIT_MARK = "audit-of ";
const INSTANCE = /^[0-9a-z]{1,64}$/;
const SEQUENCE_MAX = 2 ** 48 - 1;
/** More are never sent; each is one reinstallation or one restored backup. */
export const INSTANCES_MAX = 10_000;
/**
 * Beyond them none that is new is taken: a vector that peers refuse because it is too long would end all replication, and what
 * says who has what stays for ever.
 */
export const INSTANCES_TAKEN_MAX = 5_000;
/** Text of one answer, beside its last entry. */
const ANSWER_CHARACTERS_MAX = 262_144;
/** An entry from further ahead would stay here beyond its time. */
const AHEAD_MAX_MS = 86_400_000;

export type AuditSyncParts = {
  readonly database: Database;
  /** Of this store's own entries, as of now. */
  readonly instanceId: () => string;
  readonly now: () => number;
  readonly retentionMs: number;
};

export function auditVector({ database, instanceId }: AuditSyncParts): AuditVector {
  const own = Number(readMetaText(database, OWN_SEQUENCE) ?? 0);
  const prefix = Buffer.from(AUDIT_MARK);
  const rows = database.range(TABLE.META, { prefix, limit: INSTANCES_MAX });
  const marks = rows.map(({ key, value }): [string, number] => {
    return [Buffer.from(key.subarray(prefix.length, -1)).toString(), Number(value)];
  });
  // A restored backup has a new instance and the log of the old one, which it numbered itself.
  const old = previousInstances(database).map((instance): [string, number] => [
    instance,
    lastSequence(database, instance),
  ]);
  return Object.fromEntries([...old, ...marks, ...(own > 0 ? ([[instanceId(), own]] as const) : [])]);
}

/** The instances that have entries, each found by one read. */
function previousInstances(database: Database): readonly string[] {
  const instances: string[] = [];
  let after: Uint8Array | undefined;
  while (instances.length < INSTANCES_MAX) {
    const [row] = database.range(TABLE.AUDIT_SEQUENCE, {
      prefix: new Uint8Array(),
      limit: 1,
      ...(after && { after }),
    });
    if (row === undefined) break;
    const { instance } = sequenceOfKey(row.key);
    instances.push(instance);
    after = behindPrefix(textKey(instance));
  }
  return instances;
}

function lastSequence(database: Database, instance: string): number {
  const [row] = database.range(TABLE.AUDIT_SEQUENCE, { prefix: textKey(instance), limit: 1, reverse: true });
  return row === undefined ? 0 : sequenceOfKey(row.key).sequence;
}

/** In the order of sequences; fewer where they are long, none at the end. */
export function auditAfter(
  database: Database,
  instance: string,
  sequence: number,
  limit: number,
): readonly AuditEntry[] {
  if (!INSTANCE.test(instance) || !(sequence >= 0 && sequence <= SEQUENCE_MAX)) return [];
  const prefix = textKey(instance);
  const rows = database.range(TABLE.AUDIT_SEQUENCE, { prefix, after: auditSequenceKey(instance, sequence), limit });
  const entries: AuditEntry[] = [];
  let characters = 0;
  for (const { value } of rows) {
    const text = database.get(TABLE.AUDIT, Buffer.from(value, "base64url"));
    if (text === undefined) continue;
    entries.push(JSON.parse(text));
    characters += text.length;
    if (characters >= ANSWER_CHARACTERS_MAX) break;
  }
  return entries;
}

/**
 * Takes entries of other instances, in the order of their sequences. What is malformed, past its time or from far ahead is
 * left out, and counts as seen where its id can be read. Nothing is taken of instances for which there is no room.
 */
export function applyAudit(parts: AuditSyncParts, entries: readonly AuditEntry[]): Promise<void> {
  const { database, instanceId, now, retentionMs } = parts;
  return database.run(() => {
    const marks = new Map<string, number>();
    const markOf = (instance: string) =>
      marks.get(instance) ?? Number(readMetaText(database, AUDIT_MARK + instance) ?? lastSequence(database, instance));
    let room: number | undefined;
    const hasRoom = () => {
      room ??= INSTANCES_TAKEN_MAX - Object.keys(auditVector(parts)).length;
      return room-- > 0;
    };
    for (const entry of entries) {
      const id = idOf(entry);
      if (id === undefined || id.instance === instanceId()) continue;
      const mark = markOf(id.instance);
      if (id.sequence <= mark || (mark === 0 && !hasRoom())) continue;
      marks.set(id.instance, id.sequence);
      const timeMs = timeOf(entry);
      const isWanted = timeMs !== undefined && timeMs >= now() - retentionMs && timeMs <= now() + AHEAD_MAX_MS;
      if (!isWanted || JSON.stringify(entry).length > AUDIT_ENTRY_CHARACTERS_MAX) continue;
      putAuditEntry(database, entry, { instanceId: id.instance, sequence: id.sequence, timeMs });
    }
    for (const [instance, sequence] of marks) writeMetaText(database, AUDIT_MARK + instance, String(sequence));
    return marks.size > 0;
  });
}

function idOf(entry: unknown): { readonly instance: string; readonly sequence: number } | undefined {
  if (typeof entry !== "object" || entry === null || !("id" in entry) || typeof entry.id !== "string") return undefined;
  const at = entry.id.lastIndexOf("-");
  const [instance, text] = [entry.id.slice(0, at), entry.id.slice(at + 1)];
  const sequence = Number(text);
  const isOne = INSTANCE.test(instance) && /^[1-9]\d{0,14}$/.test(text) && sequence <= SEQUENCE_MAX;
  return isOne ? { instance, sequence } : undefined;
}

const TEXT_FIELDS = [
  "node_id",
  "user_id",
  "user_name",
  "source_address",
  "request_id",
  "action",
  "resource",
  "resource_id",
  "resource_name",
  "result",
] as const;

/** The time of a whole entry; undefined: it is none. */
function timeOf(entry: AuditEntry): number | undefined {
  if (TEXT_FIELDS.some((field) => typeof entry[field] !== "string") || !isShallow(entry)) return undefined;
  const timeMs = typeof entry.time === "string" ? Date.parse(entry.time) : Number.NaN;
  return Number.isFinite(timeMs) && timeMs >= 0 ? timeMs : undefined;
}
