/** The update section of a dynamic update (RFC 2136 section 3.4.2), carried out on the names that it is about. */
import { RCODE, RRTYPE } from "../dns/codes.ts";
import type { UpdateOperation } from "../dns/update.ts";
import type { RecordType, ZoneBody } from "../model/objects.ts";
import { ownershipConflict, ownsName } from "../model/ownership.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { soaFromRdata } from "../model/soa.ts";
import { ZoneUpdate, zoneWithUpdate } from "../model/zone.ts";
import { readRdata, visibleSet, type WorkingName, type WorkingSet, type WorkingZone } from "./update-names.ts";
import { heldType, titleOf, type UpdateRefusal } from "./update-prerequisites.ts";

export type AppliedUpdate =
  | { readonly kind: "refused"; readonly refusal: UpdateRefusal }
  /** The zone's own fields as the SOA among the updates has them; the same object where none has. */
  | { readonly kind: "applied"; readonly zone: ZoneBody };

/** Carries out one operation after the other, and yields between them; on names and zone as they are held in `working`, nothing is written. */
export function* applyOperations(
  working: WorkingZone,
  serial: number,
  operations: readonly UpdateOperation[],
): Generator<void, AppliedUpdate> {
  let { zone } = working;
  for (const operation of operations) {
    yield;
    const name = working.at(operation.name);
    if (operation.kind === "delete-name") {
      deleteName(name);
      continue;
    }
    const { type } = operation;
    if (type === RRTYPE.SOA) {
      if (operation.kind === "add" && name.isApex) zone = withSoa(zone, serial, operation.rdata);
      continue;
    }
    const held = heldType(type);
    if (held === undefined) return refused(`zones do not hold ${titleOf(name, type)}`);
    if (operation.kind === "delete-rrset") {
      // Section 3.4.2.3: SOA and NS of the apex stay.
      if (!(name.isApex && held === "NS")) name.sets.get(held)?.values.clear();
    } else if (operation.kind === "delete-rr") {
      deleteValue(name, held, operation.rdata);
    } else {
      const refusal = addValue(name, held, operation);
      if (refusal !== undefined) return refused(refusal);
    }
  }
  return { kind: "applied", zone };
}

function refused(detail: string): AppliedUpdate {
  return { kind: "refused", refusal: { rcode: RCODE.REFUSED, detail } };
}

/** An ALIAS goes with the rest: to whoever asks, it is the name's addresses. */
function deleteName(name: WorkingName): void {
  for (const set of name.sets.values()) if (!(name.isApex && set.type === "NS")) set.values.clear();
}

/** Section 3.4.2.4. What no record can hold is not there to be deleted. */
function deleteValue(name: WorkingName, type: RecordType, rdata: Uint8Array): void {
  const set = name.sets.get(type);
  const read = readRdata(type, rdata);
  if (set === undefined || read.kind === "fault") return;
  const isLastNs = name.isApex && type === "NS" && set.values.size === 1;
  if (!isLastNs) set.values.delete(read.key);
}

/** Section 3.4.2.2. Returns why the update is refused. */
function addValue(
  name: WorkingName,
  type: RecordType,
  { rdata, ttl }: { readonly rdata: Uint8Array; readonly ttl: number },
): string | undefined {
  if (type === "CNAME" && name.isApex) return undefined;
  const rival = rivalOf(name, type);
  if (rival === "visible") return undefined;
  // Nobody could tell from outside why the update came to nothing.
  if (rival !== undefined) return `${name.name} belongs to a record that updates do not see: ${rival}`;
  const read = readRdata(type, rdata);
  if (read.kind === "fault") return `${name.name} ${type}: ${read.detail}`;
  const set = name.sets.get(type) ?? newSet(type);
  name.sets.set(type, set);
  // A CNAME is replaced; one of several targets that is sent again is there already.
  if (ownsName(type) && !set.values.has(read.key)) set.values.clear();
  if (!set.values.has(read.key)) set.values.set(read.key, set.before.get(read.key) ?? { kind: "rdata", rdata });
  set.ttl = ttl;
  return undefined;
}

/**
 * Whether what the name has excludes an RR of the type: "visible" where a client sees it and the RFC has the add ignored;
 * else the type of what it does not see: an ALIAS, a record without values or one that is hidden.
 */
function rivalOf(name: WorkingName, type: RecordType): "visible" | RecordType | undefined {
  // What stands beside it already, hidden since a conflict of two nodes, is no new rival.
  if (visibleSet(name, type) !== undefined) return undefined;
  let hidden: RecordType | undefined;
  for (const set of name.sets.values()) {
    const remains = set.values.size > 0 || set.stored?.body.auto_populate === true;
    if (!remains || ownershipConflict(type, [set.type], name.name) === undefined) continue;
    if (set.type !== "ALIAS" && visibleSet(name, set.type) !== undefined) return "visible";
    hidden = set.type;
  }
  return hidden;
}

function newSet(type: RecordType): WorkingSet {
  return { type, stored: undefined, before: new Map(), values: new Map(), ttlBefore: 0, ttl: 0 };
}

/**
 * Section 3.4.2.2: an SOA whose serial is not greater is ignored. Of one that is greater the zone takes names and timers;
 * its serial goes on by the server's own count, and its TTL is the zone's default. Throws `invalid_request` for what no zone takes.
 */
function withSoa(zone: ZoneBody, serial: number, rdata: Uint8Array): ZoneBody {
  const { serial: given, ...soa } = soaFromRdata(rdata);
  if (!isGreaterSerial(given, serial)) return zone;
  const faults = checkShape(ZoneUpdate, { soa });
  if (faults[0] !== undefined) throw new Refusal("invalid_request", `SOA ${faults[0].pointer}: ${faults[0].detail}`);
  return zoneWithUpdate(zone, { soa });
}

/** RFC 1982 section 3.2. */
function isGreaterSerial(left: number, right: number): boolean {
  const distance = (left - right) >>> 0;
  return distance > 0 && distance < 2 ** 31;
}
