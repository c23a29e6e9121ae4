/** What of each row counts among stores: under which version, in which life, and until when. */
import { hash } from "node:crypto";
import type { Kind } from "../model/objects.ts";
import type { Counted } from "./digest-tree.ts";
import { canonicalJson, contentHash, type StoredEnvelope } from "./envelope.ts";
import { isOfZone, openEnvelope } from "./open-envelope.ts";
import type { Seal } from "./seal.ts";
import { STAMP_ZERO } from "./stamp.ts";
import { collectionMs } from "./tombstones.ts";
import type { ZoneRow } from "./zone-row.ts";

const HASH_CHARACTERS = 16;

/** Stamp zero names no maker: what is in the version does. Secrets are sealed anew on each node, so they are opened for it. */
export function countedObject(kind: Kind, stored: StoredEnvelope, seal: Seal): Counted {
  const { key, envelope } = stored;
  return {
    zone: isOfZone(kind) ? (key[0] ?? "") : "",
    life: isOfZone(kind) ? envelope.life : STAMP_ZERO,
    dueMs: dueMsOf(stored),
    version: envelope.stamp === STAMP_ZERO ? versionOfZero(openEnvelope(kind, stored, seal)) : envelope.stamp,
  };
}

export function versionOfZero(envelope: StoredEnvelope["envelope"]): string {
  return `${envelope.born}#${contentHash(envelope).slice(0, HASH_CHARACTERS)}`;
}

/** When it leaves: a tombstone in its time, and what a tombstone hides with that one. 0: never. */
export function dueMsOf({ envelope, hidden }: Pick<StoredEnvelope, "envelope" | "hidden">): number {
  if (envelope.content.kind === "tombstone") return collectionMs(envelope.stamp);
  return hidden?.untilMs ?? 0;
}

/** The registers of a zone; those of a dead one leave with its tombstone. */
export function countedZone({ floor, ending, serial, activation, alive }: ZoneRow): Counted {
  const parts = [
    floor,
    ending === undefined ? "" : hash("sha256", canonicalJson(ending)).slice(0, HASH_CHARACTERS),
    serial === undefined ? "" : `${serial.serial}@${serial.life}`,
    activation === undefined ? "" : `${activation.state}@${activation.life}`,
  ];
  return { zone: "", life: STAMP_ZERO, dueMs: alive ? 0 : collectionMs(floor), version: parts.join("|") };
}

/** Of the registers of a zone, its object and its records, whose digest is `records`. */
export function digestOfZone(row: ZoneRow, object: StoredEnvelope, records: string, seal: Seal): string {
  const parts = [countedZone(row).version, countedObject("zone", object, seal).version, records];
  return hash("sha256", parts.join("\n")).slice(0, HASH_CHARACTERS);
}

/** A fact has one version only. */
export const COUNTED_ALIAS: Counted = { zone: "", life: STAMP_ZERO, dueMs: 0, version: "alias" };

export function isDue({ dueMs }: Pick<Counted, "dueMs">, nowMs: number): boolean {
  return dueMs !== 0 && dueMs <= nowMs;
}
