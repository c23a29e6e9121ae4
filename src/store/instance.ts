/**
 * The instance of a store: a random name that its audit entries carry, numbered without gaps. A copy of the store must not go on
 * under that name, and neither may an old copy that was put back: other nodes would have other entries of the same number.
 * Copies are told by a file beside the database, whose inode and birth no copy shares, and by the machine; what those do not
 * tell (a whole disk put back) peers do, who have more entries than the store.
 */
import { hash, randomBytes } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { auditSequenceKey, putAuditEntry, timeOfKey } from "./audit.ts";
import { AUDIT_MARK, OWN_SEQUENCE } from "./audit-sync.ts";
import { type Database, TABLE } from "./database.ts";
import { freshInstance, readMeta, readMetaText, writeMeta, writeMetaText } from "./meta.ts";
import { textKey } from "./objects.ts";

export type Instance = {
  readonly id: () => string;
  /**
   * A new one from now on: somebody has later entries of the present one. Those that were made since the store was opened are
   * numbered anew. Nothing happens where it is not `id` any more.
   */
  readonly renew: (id: string) => Promise<void>;
};

const PLACE_FILE = "place";
const MACHINE_FILE = "/etc/machine-id";
const ROWS_AT_ONCE = 200;

/** The machine's own name; "" where it has none, as containers often do. */
export function machineId(): string {
  try {
    return readFileSync(MACHINE_FILE, "utf8").trim();
  } catch {
    return "";
  }
}

/** What is known of the place before anything is written into the database. */
export type Place = {
  readonly path: string;
  /** Of the file that is there; undefined where there is none. */
  readonly found: string | undefined;
  /** Of the one that takes its name. */
  readonly next: string;
};

/** Throws OperatorError where a file cannot be written into `directory`, the database's. */
export function preparePlace(directory: string, machine: string): Place {
  const path = join(directory, PLACE_FILE);
  return { path, found: placeOf(path, machine), next: writePlace(`${path}.new`, machine) };
}

/** `database` has its meta already; that of a fresh one names the place. */
export async function settleInstance(database: Database, place: Place, log: Log): Promise<Instance> {
  const { found, next, path } = place;
  const places = readMeta(database)?.places;
  const isFresh = places?.includes(next) === true;
  const isHere = isFresh || places === undefined || (found !== undefined && places.includes(found));
  if (!isFresh) await database.run(() => settlePlace(database, place, isHere));
  renameSync(`${path}.new`, path);
  if (!isHere) log("warn", "this store is a copy: its audit log goes on as another instance");
  return instanceOf(database);
}

function settlePlace(database: Database, { found, next }: Place, isHere: boolean): true {
  const meta = readMeta(database);
  if (meta === undefined) throw new Error("a store without meta");
  // The one that is there stands until the other takes its name.
  const places = [next, ...(found === undefined ? [] : [found])];
  writeMeta(database, { ...meta, places, ...(!isHere && { instance: freshInstance() }) });
  if (isHere) return true;
  writeMetaText(database, AUDIT_MARK + meta.instance, readMetaText(database, OWN_SEQUENCE) ?? "0");
  writeMetaText(database, OWN_SEQUENCE, "0");
  return true;
}

/** What tells this file from every copy of it; undefined where there is none. */
function placeOf(path: string, machine: string): string | undefined {
  try {
    const { ino, birthtimeNs } = statSync(path, { bigint: true });
    return hash("sha256", `${readFileSync(path, "utf8")}\n${ino}\n${birthtimeNs}\n${machine}`);
  } catch {
    return undefined;
  }
}

/** A file that is not renamed yet: it keeps its inode and its birth. */
function writePlace(path: string, machine: string): string {
  try {
    writeFileSync(path, `${randomBytes(16).toString("hex")}\n`, { mode: 0o600 });
  } catch (thrown) {
    throw new OperatorError(`cannot write ${path}: ${errorText(thrown)}`);
  }
  const place = placeOf(path, machine);
  if (place === undefined) throw new OperatorError(`cannot read ${path}`);
  return place;
}

function instanceOf(database: Database): Instance {
  let id = readMeta(database)?.instance ?? "";
  let openedAt = Number(readMetaText(database, OWN_SEQUENCE) ?? 0);
  return {
    id: () => id,
    renew: (old) =>
      database.runInSlices(function* () {
        const meta = readMeta(database);
        if (old !== id || meta === undefined) return false;
        const fresh = freshInstance();
        writeMeta(database, { ...meta, instance: fresh });
        const sequence = yield* renumber(database, { instance: id, after: openedAt }, fresh);
        writeMetaText(database, AUDIT_MARK + id, String(openedAt));
        writeMetaText(database, OWN_SEQUENCE, String(sequence));
        id = fresh;
        openedAt = 0;
        return true;
      }),
  };
}

/** Gives the entries behind a sequence to another instance, a step each, and gives the last sequence of it. */
function* renumber(
  database: Database,
  from: { readonly instance: string; readonly after: number },
  fresh: string,
): Generator<void, number> {
  let sequence = 0;
  let after = auditSequenceKey(from.instance, from.after);
  for (;;) {
    const rows = database.range(TABLE.AUDIT_SEQUENCE, { prefix: textKey(from.instance), after, limit: ROWS_AT_ONCE });
    for (const { key, value } of rows) {
      const entryKey = Buffer.from(value, "base64url");
      const text = database.get(TABLE.AUDIT, entryKey);
      database.remove(TABLE.AUDIT_SEQUENCE, key);
      if (text === undefined) continue;
      database.remove(TABLE.AUDIT, entryKey);
      sequence++;
      const at = { instanceId: fresh, sequence, timeMs: timeOfKey(entryKey) };
      putAuditEntry(database, { ...JSON.parse(text), id: `${fresh}-${sequence}` }, at);
      yield;
    }
    const last = rows.at(-1);
    if (last === undefined) return sequence;
    after = Buffer.from(last.key);
  }
}
