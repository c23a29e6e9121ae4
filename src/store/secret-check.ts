/** Whether the store's secrets open under the key that the node has, found out before anything is written. */
import { OperatorError } from "../base/errors.ts";
import { kindOfByte } from "../model/keys.ts";
import { type Database, TABLE } from "./database.ts";
import { packEnvelope, type StoredEnvelope, unpackEnvelope } from "./envelope.ts";
import { sealForeignAnew } from "./foreign.ts";
import type { JournalRow } from "./journal.ts";
import { FORMAT, freshInstance, type Meta, readMeta, writeMeta } from "./meta.ts";
import { openEnvelope } from "./open-envelope.ts";
import { makeSeal, type Seal } from "./seal.ts";

export type SecretKey = {
  /** The node's own key file, or the key that the cluster shares. */
  readonly kind: "file" | "cluster";
  readonly key: Uint8Array;
};

const ROWS_AT_ONCE = 1000;

/**
 * The seal of this store. A fresh store takes the key as its own; a store that was sealed under the
 * node's own key is sealed anew under the cluster's when that comes for the first time. A fresh one is noted to lie in `place`. Throws OperatorError, and then
 * nothing has changed.
 */
export async function settleSecrets(
  database: Database,
  secretKey: SecretKey,
  previousFileKey: Uint8Array | undefined,
  place: string,
): Promise<Seal> {
  const seal = makeSeal(secretKey.key);
  const meta = readMeta(database);
  if (meta === undefined) {
    const secret = { kind: secretKey.kind, check: seal.check };
    await save(database, { format: FORMAT, instance: freshInstance(), places: [place], secret });
    return seal;
  }
  if (meta.format !== FORMAT) {
    throw new OperatorError(`the store has format ${meta.format}; this version of Signpost reads format ${FORMAT}`);
  }
  if (meta.secret.check === seal.check) return seal;
  const previous = previousFileKey === undefined ? undefined : makeSeal(previousFileKey);
  const isFirstClusterKey = secretKey.kind === "cluster" && meta.secret.kind === "file";
  if (!isFirstClusterKey || previous?.check !== meta.secret.check) throw new OperatorError(faultText(secretKey, meta));
  await database.run(() => {
    sealObjectsAnew(database, previous, seal);
    sealJournalAnew(database, previous, seal);
    forEachRow(database, TABLE.FOREIGN, (key, value) => {
      database.put(TABLE.FOREIGN, key, sealForeignAnew(key, value, previous, seal));
    });
    writeMeta(database, { ...meta, secret: { kind: "cluster", check: seal.check } });
    return true;
  });
  return seal;
}

function faultText({ kind }: SecretKey, { secret }: Meta): string {
  if (secret.kind === "cluster" && kind === "file") {
    return "replication.encrypt_key is missing: the secrets in the store were sealed under a cluster encryption key";
  }
  if (secret.kind === "cluster") {
    return "replication.encrypt_key does not match the key that the secrets in the store were sealed under: start with that one (where nothing in it is needed, start with an empty data directory)";
  }
  return "the key file of the data directory is not the one that the secrets in the store were sealed under";
}

async function save(database: Database, meta: Meta): Promise<void> {
  await database.run(() => {
    writeMeta(database, meta);
    return true;
  });
}

function sealObjectsAnew(database: Database, from: Seal, to: Seal): void {
  forEachRow(database, TABLE.OBJECT, (key, value) => {
    const stored = unpackEnvelope(value);
    if (stored.sealed) database.put(TABLE.OBJECT, key, packEnvelope(sealAnew(key, stored, from, to)));
  });
}

function sealJournalAnew(database: Database, from: Seal, to: Seal): void {
  forEachRow(database, TABLE.JOURNAL, (key, value) => {
    const row: JournalRow = JSON.parse(value);
    const stored = unpackEnvelope(row.packed);
    if (!stored.sealed) return;
    const packed = packEnvelope(sealAnew(key, stored, from, to));
    database.put(TABLE.JOURNAL, key, JSON.stringify({ ...row, packed }));
  });
}

function sealAnew(rowKey: Uint8Array, stored: StoredEnvelope, from: Seal, to: Seal): StoredEnvelope {
  const kind = kindOfByte(rowKey[0]!);
  const envelope = openEnvelope(kind, stored, from);
  if (envelope.content.kind !== "body") return stored;
  const { body } = to.seal(kind, stored.key, envelope.content.body);
  return { ...stored, envelope: { ...envelope, content: { kind: "body", body } } };
}

function forEachRow(
  database: Database,
  table: typeof TABLE.OBJECT | typeof TABLE.JOURNAL | typeof TABLE.FOREIGN,
  visit: (key: Uint8Array, value: string) => void,
): void {
  let after: Uint8Array | undefined;
  for (;;) {
    const rows = database.range(table, { prefix: new Uint8Array(), limit: ROWS_AT_ONCE, ...(after && { after }) });
    for (const { key, value } of rows) visit(key, value);
    after = rows.at(-1)?.key;
    if (after === undefined) return;
  }
}
