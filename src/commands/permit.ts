/**
 * What a token confined to some zones may write. The API asks before it reads a body; the commands ask again inside the
 * transaction, so that no other door is left open and a zone re-created meanwhile under another id is refused.
 */
import type { ZoneBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import type { StoreReader } from "../store/store.ts";
import type { Actor, Caller } from "./run.ts";

type ZoneReader = Pick<StoreReader, "byId">;

/**
 * Whether the actor may write in the zone with that id. Ids that lost a merge of two creates stand for the zone that won;
 * ids of dead zones stand for nothing, so that a token with only such ids writes nowhere.
 */
export function mayWriteZone(reader: ZoneReader, actor: Actor, zoneId: string): boolean {
  if (actor.zoneIds === undefined) return true;
  return actor.zoneIds.some((id) => reader.byId("zone", id)?.body.id === zoneId);
}

/** Throws `zone_not_permitted` where the caller is confined to other zones. */
export function permitZone(reader: ZoneReader, caller: Caller, zone: Pick<ZoneBody, "id" | "name">): void {
  if (mayWriteZone(reader, caller.actor, zone.id)) return;
  throw new Refusal("zone_not_permitted", `this token may not write in the zone ${zone.name}`, [], {
    zone_id: zone.id,
  });
}

/** Throws `zone_not_permitted` for every confined caller: of writes that belong to no zone, and of a zone's own end. */
export function permitUnconfined(caller: Caller, what: string): void {
  if (caller.actor.zoneIds === undefined) return;
  throw new Refusal("zone_not_permitted", `a token confined to zones may not ${what}`);
}
