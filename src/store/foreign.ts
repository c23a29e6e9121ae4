/**
 * Items of kinds that this version does not know: kept and passed on, so that nodes of different versions agree and none is
 * lost while a cluster is upgraded. They lie apart, sealed as a whole, for nobody here knows where their secrets are. Of two
 * versions the one that `compareVersions` prefers stays. A version that knows the kind merges them when it opens the store.
 */
import { KEY_BYTES_MAX, KEY_BYTES_RESERVED } from "../model/keys.ts";
import { Refusal } from "../model/refusal.ts";
import { versionOfZero } from "./counted.ts";
import { type Database, TABLE, VALUE_BYTES_MAX } from "./database.ts";
import type { Counted } from "./digest-tree.ts";
import { compareVersions } from "./envelope.ts";
import type { RawItem } from "./raw-items.ts";
import { isKnownKind, refOf } from "./refs.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import { collectionMs } from "./tombstones.ts";
import type { Trace } from "./trace.ts";

export type KindItem = Extract<RawItem, { item: "object" | "alias" }>;

type ForeignRow = { readonly version: string; readonly dueMs: number; readonly sealed: string };

/** The item, where its kind is not known here. */
export function foreignOf(item: RawItem): KindItem | undefined {
  return (item.item === "object" || item.item === "alias") && !isKnownKind(item.kind) ? item : undefined;
}

function keyOf(item: KindItem): Buffer {
  return Buffer.from(refOf(item).slice(1), "latin1");
}

function countedItem(item: KindItem): Counted {
  const nothing = { zone: "", life: STAMP_ZERO };
  if (item.item === "alias") return { ...nothing, dueMs: 0, version: "alias" };
  const { stamp, content } = item.envelope;
  const version = stamp === STAMP_ZERO ? versionOfZero(item.envelope) : stamp;
  return { ...nothing, dueMs: content.kind === "tombstone" ? collectionMs(stamp) : 0, version };
}

/** Whether it is news. Throws Refusal where it takes more than a row may hold, before anything is written. */
export function mergeForeign(database: Database, seal: Seal, trace: Trace | undefined, item: KindItem): boolean {
  const key = keyOf(item);
  const json = JSON.stringify(item);
  if (key.length > KEY_BYTES_MAX - KEY_BYTES_RESERVED || Buffer.byteLength(json) > VALUE_BYTES_MAX)
    throw new Refusal("invalid_request", `this ${item.kind} takes more than may be stored`);
  const text = database.get(TABLE.FOREIGN, key);
  const current: ForeignRow | undefined = text === undefined ? undefined : JSON.parse(text);
  if (current !== undefined && !isLater(openRow(key, current, seal), item)) return false;
  const after = countedItem(item);
  const { version, dueMs } = after;
  const row: ForeignRow = { version, dueMs, sealed: seal.sealText(purposeOf(key), json) };
  database.put(TABLE.FOREIGN, key, JSON.stringify(row));
  trace?.noteForeign(refOf(item), current && countedForeign(current), after);
  return true;
}

function isLater(current: KindItem, item: KindItem): boolean {
  if (current.item === "alias" || item.item === "alias") return false;
  return compareVersions(current.envelope, item.envelope) < 0;
}

export function countedForeign({ version, dueMs }: ForeignRow): Counted {
  return { zone: "", life: STAMP_ZERO, dueMs, version };
}

export function readForeignRow(value: string): ForeignRow {
  return JSON.parse(value);
}

export function openForeign(key: Uint8Array, value: string, seal: Seal): KindItem {
  return openRow(key, readForeignRow(value), seal);
}

function openRow(key: Uint8Array, { sealed }: ForeignRow, seal: Seal): KindItem {
  return JSON.parse(seal.openText(purposeOf(key), sealed));
}

/** The row as it is to lie under another key. */
export function sealForeignAnew(key: Uint8Array, value: string, from: Seal, to: Seal): string {
  const row = readForeignRow(value);
  const purpose = purposeOf(key);
  return JSON.stringify({ ...row, sealed: to.sealText(purpose, from.openText(purpose, row.sealed)) });
}

/** Bound to its place, as single secrets are. */
function purposeOf(key: Uint8Array): string {
  return `foreign ${Buffer.from(key).toString("latin1")}`;
}
