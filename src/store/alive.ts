/** Which versions count: those of the present, and of those of zones the ones of the zone's present life. */
import { type Kind, RECORD_TYPES } from "../model/objects.ts";
import type { StoredEnvelope } from "./envelope.ts";
import { isOfZone } from "./open-envelope.ts";
import type { ZoneRow } from "./zone-row.ts";

export type ZoneLookup = (zone: string) => ZoneRow;

const TYPES: ReadonlySet<string> = new Set(RECORD_TYPES);

/**
 * Whether a version of that kind and key is alive: no tombstone, in the zone's present life, not moved elsewhere, and of a type
 * that this version can answer: what a later one has made is kept for that, and nobody here would know its wire form.
 */
export function isAlive(kind: Kind, { key, envelope, hidden }: StoredEnvelope, zoneRow: ZoneLookup): boolean {
  if (envelope.content.kind !== "body" || hidden?.by === "id") return false;
  if ((kind === "record" || kind === "override") && !TYPES.has(key.at(-1) ?? "")) return false;
  if (!isOfZone(kind)) return true;
  const row = zoneRow(key[0] ?? "");
  return row.alive && row.floor === envelope.life;
}
