/** A zone of the store as the messages of its transfer: the full set that is stored, whatever health says of it. */
import { RRTYPE } from "../dns/codes.ts";
import { NAME_ROOM_BYTES, nameFromText, putName } from "../dns/name.ts";
import { APEX } from "../model/names.ts";
import { ownsName } from "../model/ownership.ts";
import { typeNumber, valueRdata } from "../model/record-values.ts";
import { soaRdata } from "../model/soa.ts";
import {
  createTransferEncoder,
  type EncodedTransfer,
  type TransferAlias,
  type TransferEncoder,
} from "../primary/axfr-encode.ts";
import type { AnsweringRecord } from "../store/store.ts";
import type { ZoneSnapshot } from "../store/zone-snapshot.ts";

/**
 * Throws where it takes longer than until `untilMs` of the thread's clock, and where a record is stored that no message can
 * have: the rules of the model leave none.
 */
export function encodeZone(snapshot: ZoneSnapshot, untilMs = Number.POSITIVE_INFINITY): EncodedTransfer {
  const { body, serial } = snapshot;
  const apex = wireOf(body.name);
  const head = { apex, ttl: body.default_ttl, soa: soaRdata(body.soa, serial) };
  const encoder = createTransferEncoder(head);
  const aliases: TransferAlias[] = [];
  const owner = new Uint8Array(NAME_ROOM_BYTES);
  let hasNs = false;
  for (const records of snapshot.records()) {
    if (performance.now() > untilMs) throw new Error("the zone takes too long to encode");
    for (const record of records) {
      if (record.values.length === 0) continue;
      if (record.type === "NS" && record.name === APEX) hasNs = true;
      const length = putName(record.name, apex, owner);
      if (length < 0) throw new Error(`${JSON.stringify(record.name)} is stored and no name`);
      const ttl = record.ttl === 0 ? body.default_ttl : record.ttl;
      if (record.type === "ALIAS") aliases.push(aliasOf(record, owner.slice(0, length), ttl));
      else addRecord(encoder, record, owner, length, ttl);
    }
  }
  // Answers have it too; without one no secondary loads the zone.
  if (!hasNs) encoder.add(apex, apex.length, RRTYPE.NS, head.ttl, wireOf(body.soa.mname));
  return { ...head, serial, aliases, messages: encoder.finish(aliases.length === 0) };
}

/** A CNAME may hold several values, and a secondary takes one (RFC 1034 section 3.6.2): the first, as in answers. */
function addRecord(
  encoder: TransferEncoder,
  record: AnsweringRecord,
  owner: Uint8Array,
  ownerLength: number,
  ttl: number,
): void {
  const type = typeNumber(record.type);
  for (const value of record.values) {
    encoder.add(owner, ownerLength, type, ttl, valueRdata(record, value).wire);
    if (ownsName(record.type)) return;
  }
}

function aliasOf({ values }: AnsweringRecord, owner: Uint8Array, ttl: number): TransferAlias {
  return { owner, target: wireOf(values[0]?.value ?? ""), ttl };
}

function wireOf(text: string): Uint8Array {
  const result = nameFromText(text);
  if (result.kind === "error") throw new Error(`${JSON.stringify(text)} is stored and no name: ${result.reason}`);
  return result.name;
}
