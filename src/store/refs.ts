/**
 * References to what stores exchange. The first character says what it is, and what follows is the key of its row, one
 * character a byte: sorted references have zones before records. A reference goes from node to node and means the same on
 * nodes of other versions, so that both keep equal digests: kinds that came after the first clustered version are therefore
 * named by their texts, which a node that does not know the kind can make too.
 */
import { KeyError, KIND_BYTES, keyBytes, kindOfByte } from "../model/keys.ts";
import type { Kind, NaturalKey } from "../model/objects.ts";
import { TABLE, type Table } from "./database.ts";
import { idKey } from "./objects.ts";
import { type RowKey, textOf } from "./overlay.ts";
import type { RawItem } from "./raw-items.ts";
import type { ItemRef } from "./replica.ts";

/** The order of all items: floors before the objects that live under them. A number of this list is the head of a reference. */
export const REF_TABLES = [TABLE.ZONE, TABLE.OBJECT, TABLE.ALIAS, TABLE.FOREIGN] as const;

/** The last byte of the kinds that the first clustered version knew. */
const FIRST_KINDS_LAST = 15;

export function isKnownKind(kind: string): kind is Kind {
  return Object.hasOwn(KIND_BYTES, kind);
}

function hasByteRef(kind: string): kind is Kind {
  return isKnownKind(kind) && KIND_BYTES[kind] <= FIRST_KINDS_LAST;
}

const HEADS = REF_TABLES.map((_, index) => String(index));
/** How the references of objects begin, that are made of their keys. */
export const OBJECT_HEAD = "1";

export function rowRef(table: (typeof REF_TABLES)[number], key: RowKey): ItemRef {
  return HEADS[REF_TABLES.indexOf(table)] + (typeof key === "string" ? key : textOf(key));
}

/** All registers of a zone have one reference: floor, serial and activation. */
export function zoneRef(zone: string): ItemRef {
  return rowRef(TABLE.ZONE, keyBytes("zone", [zone]));
}

/** `bytes` is the key of the object, where the caller has it. */
export function objectRef(kind: Kind, key: NaturalKey, bytes = keyBytes(kind, key)): ItemRef {
  return hasByteRef(kind) ? rowRef(TABLE.OBJECT, bytes) : rowRef(TABLE.FOREIGN, foreignKey([kind, ...key]));
}

export function aliasRef(kind: Kind, id: string, key: NaturalKey): ItemRef {
  if (!hasByteRef(kind)) return rowRef(TABLE.FOREIGN, foreignKey(["", kind, id, ...key]));
  return rowRef(TABLE.ALIAS, idKey(kind, id, keyBytes(kind, key)));
}

/** The key of a row of a kind that this version does not know. */
function foreignKey(parts: readonly string[]): Uint8Array {
  return Buffer.from(JSON.stringify(parts));
}

export function refOf(item: RawItem): ItemRef {
  switch (item.item) {
    case "floor":
    case "serial":
    case "activation":
      return zoneRef(item.zone);
    case "alias":
      return aliasRef(item.kind, item.id, item.key);
    case "object":
      return isKnownKind(item.kind)
        ? objectRef(item.kind, item.key)
        : rowRef(TABLE.FOREIGN, foreignKey([item.kind, ...item.key]));
  }
}

export type RowPlace = { readonly table: Table; readonly key: Uint8Array };

/** Where the row of a reference lies here; undefined: it is no reference. */
export function placeOf(ref: ItemRef): RowPlace | undefined {
  const table = REF_TABLES[ref.charCodeAt(0) - 48];
  if (table === undefined) return undefined;
  const key = Buffer.from(ref.slice(1), "latin1");
  if (table !== TABLE.FOREIGN) return { table, key };
  try {
    return placeOfForeign(key);
  } catch (thrown) {
    if (!(thrown instanceof KeyError)) throw thrown;
    return undefined;
  }
}

/** What other versions call by its texts may be known here. */
function placeOfForeign(key: Buffer): RowPlace {
  const parts = textsOf(key);
  const [kind = "", ...rest] = parts ?? [];
  const [aliasKind = "", id = "", ...aliasKey] = rest;
  if (kind === "" && isKnownKind(aliasKind)) {
    return { table: TABLE.ALIAS, key: idKey(aliasKind, id, keyBytes(aliasKind, aliasKey)) };
  }
  if (isKnownKind(kind)) return { table: TABLE.OBJECT, key: keyBytes(kind, rest) };
  return { table: TABLE.FOREIGN, key };
}

function textsOf(key: Buffer): readonly string[] | undefined {
  try {
    const parts: unknown = JSON.parse(key.toString());
    return Array.isArray(parts) && parts.every((part) => typeof part === "string") ? parts : undefined;
  } catch {
    return undefined;
  }
}

/** The kind of an object's row. */
export function kindOfRow(key: RowKey): Kind {
  return kindOfByte(firstByte(key));
}

/** Whether the rows of that key have the key itself in their references. */
export function hasRowRef(key: RowKey): boolean {
  return firstByte(key) <= FIRST_KINDS_LAST;
}

function firstByte(key: RowKey): number {
  return typeof key === "string" ? key.charCodeAt(0) : (key[0] ?? 0);
}
