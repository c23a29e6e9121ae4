/** A zone of the store as the messages of its transfer: the full set that is stored, whatever health says of it. */
import { NAME_ROOM_BYTES, putName } from "../dns/name.ts";
import { APEX } from "../model/names.ts";
import { typeNumber } from "../model/record-values.ts";
import { createMiddleEncoder, type TransferAlias } from "../primary/axfr-encode.ts";
import type { ZoneSnapshot } from "../store/zone-snapshot.ts";
import { aliasOf, rdatasOf, shared, type TransferZone, wireOf } from "./transfer-zone.ts";

/** Throws where it takes longer than until `untilMs` of the thread's clock. What answers leave out is left out here too. */
export function encodeZone(snapshot: ZoneSnapshot, untilMs = Number.POSITIVE_INFINITY): TransferZone {
  const { name: zoneName, soa, default_ttl } = snapshot.body;
  const apex = wireOf(zoneName);
  const encoder = createMiddleEncoder();
  const aliases: TransferAlias[] = [];
  const owner = new Uint8Array(NAME_ROOM_BYTES);
  let hasNs = false;
  for (const records of snapshot.records()) {
    if (performance.now() > untilMs) throw new Error("the zone takes too long to encode");
    for (const record of records) {
      if (record.values.length === 0) continue;
      const length = putName(record.name, apex, owner);
      if (length < 0) continue;
      const ttl = record.ttl === 0 ? default_ttl : record.ttl;
      if (record.type === "ALIAS") {
        const alias = aliasOf(record, owner.slice(0, length), ttl);
        if (alias !== undefined) aliases.push(alias);
        continue;
      }
      const rdatas = rdatasOf(record);
      if (record.type === "NS" && record.name === APEX && rdatas.length > 0) hasNs = true;
      const type = typeNumber(record.type);
      for (const rdata of rdatas) encoder.add(owner, length, type, ttl, rdata);
    }
  }
  const body = { name: zoneName, soa, default_ttl };
  return { body, serial: snapshot.serial, middle: shared(encoder.finish()), aliases, hasNs };
}
