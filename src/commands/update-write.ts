/** What a dynamic update changes in the store: records against what they were, written and noted. */
import { isDeepStrictEqual } from "node:util";
import { withoutOrphans } from "../model/lb-policy.ts";
import { IMPORT_NOTES_MAX } from "../model/limits.ts";
import type { RecordBody, RecordValue, ZoneBody } from "../model/objects.ts";
import { RecordCreate, RecordUpdate, recordFromCreate, recordWithUpdate } from "../model/record.ts";
import { fieldsFromRdata } from "../model/record-values.ts";
import { Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import type { Stored } from "../store/store.ts";
import { noteDelete, noteWrite } from "./audit-outcome.ts";
import { recordTitle, refuseProtected } from "./records.ts";
import { type CommandTransaction, newId } from "./run.ts";
import type { WorkingName, WorkingSet, WorkingZone } from "./update-names.ts";

export type UpdateWrite =
  | { readonly kind: "delete"; readonly before: Stored<"record"> }
  | { readonly kind: "put"; readonly before: Stored<"record"> | undefined; readonly body: RecordBody };

/** Records that one update may change with an entry in the audit log for each; beyond them it has one for all. */
const UPDATE_NOTES_MAX = 100;

/**
 * What is to be written so that the zone is as the update left it; deletions first. Throws `record_protected` where a
 * record that would change is protected, and `invalid_request` where no record can be so. It yields between names.
 */
export function* plannedWrites(working: WorkingZone): Generator<void, readonly UpdateWrite[]> {
  const deletes: UpdateWrite[] = [];
  const puts: UpdateWrite[] = [];
  for (const name of working.all()) {
    for (const set of name.sets.values()) {
      const write = plannedWrite(working.zone, name, set);
      if (write !== undefined) (write.kind === "delete" ? deletes : puts).push(write);
    }
    yield;
  }
  return [...deletes, ...puts];
}

function plannedWrite(zone: ZoneBody, name: WorkingName, set: WorkingSet): UpdateWrite | undefined {
  const { stored, values } = set;
  const ttl = ttlAfter(zone, set);
  const isSame = values.size === set.before.size && [...values.keys()].every((key) => set.before.has(key));
  // A set without RRs has no TTL.
  if (isSame && (ttl === set.ttlBefore || values.size === 0)) return undefined;
  refuseProtected(stored);
  if (stored === undefined) return { kind: "put", before: undefined, body: newRecord(zone, name, set, ttl) };
  if (values.size > 0) return { kind: "put", before: stored, body: changedRecord(zone, stored.body, set, ttl) };
  // What fills such a record is not the update's to take away.
  if (stored.body.auto_populate)
    return { kind: "put", before: stored, body: changedRecord(zone, stored.body, set, ttl) };
  return { kind: "delete", before: stored };
}

/** What the update says, unless that is what the record is answered with already. */
function ttlAfter({ default_ttl }: ZoneBody, { ttl, ttlBefore }: WorkingSet): number {
  return ttl !== 0 && ttl === (ttlBefore || default_ttl) ? ttlBefore : ttl;
}

function newRecord(zone: ZoneBody, { name }: WorkingName, { type, values }: WorkingSet, ttl: number): RecordBody {
  const wires = [...values.values()].flatMap((value) => (value.kind === "rdata" ? [value.rdata] : []));
  const read = fieldsFromRdata(type, wires);
  if (read.kind === "fault") throw new Error(`rdata that was read before cannot be read now: ${read.detail}`);
  const given: unknown = { ...read.fields, name, type, ttl };
  refuseShape(RecordCreate, given, `${name} ${type}`);
  // The shape has been checked.
  return recordFromCreate(given as RecordCreate, zone, newId("record"));
}

/** Values that stay are as they were, in their places; policy, template and all else too, but for what named values that go. */
function changedRecord(zone: ZoneBody, body: RecordBody, set: WorkingSet, ttl: number): RecordBody {
  const stay = [...set.before].filter(([key]) => set.values.has(key));
  const come = [...set.values].filter(([key]) => !set.before.has(key));
  const values = [...stay, ...come].map(([, value]) =>
    value.kind === "stored" ? value.value : valueBeside(body, value.rdata),
  );
  const policy = body.lb_policy === undefined ? undefined : withoutOrphans(body.lb_policy, body.type, values);
  const given: unknown = { ttl, values, ...(policy === body.lb_policy ? {} : { lb_policy: policy }) };
  refuseShape(RecordUpdate, given, recordTitle(body));
  // The shape has been checked.
  return recordWithUpdate(body, given as RecordUpdate, zone);
}

/** The value with the numbers in which it differs from what the record says for all. */
function valueBeside(body: RecordBody, rdata: Uint8Array): RecordValue {
  const read = fieldsFromRdata(body.type, [rdata]);
  if (read.kind === "fault") throw new Error(`rdata that was read before cannot be read now: ${read.detail}`);
  const { values, priority, weight, port, tag } = read.fields;
  return {
    value: values[0]?.value ?? "",
    ...(priority === undefined || priority === body.priority ? {} : { priority }),
    ...(weight === undefined || weight === body.weight ? {} : { weight }),
    ...(port === undefined || port === body.port ? {} : { port }),
    ...(tag === undefined || tag === body.tag ? {} : { tag }),
  };
}

function refuseShape(shape: Parameters<typeof checkShape>[0], given: unknown, title: string): void {
  const [first] = checkShape(shape, given);
  if (first !== undefined) throw new Refusal("invalid_request", `${title}: ${first.pointer} ${first.detail}`);
}

/** Writes and notes. What changes nothing is noted too: it was acknowledged. */
export function* writeUpdate(
  tx: CommandTransaction,
  zone: Stored<"zone">,
  changedZone: ZoneBody,
  writes: readonly UpdateWrite[],
): Generator<void> {
  const isNotedOneByOne = writes.length <= UPDATE_NOTES_MAX;
  for (const write of writes) {
    writeOne(tx, write, isNotedOneByOne);
    yield;
  }
  const isZoneChanged = !isDeepStrictEqual(changedZone, zone.body);
  if (isZoneChanged)
    noteWrite(tx, "update", { stored: tx.put("zone", changedZone), before: zone }, zone.body.name, DETAIL);
  if (!isNotedOneByOne || (writes.length === 0 && !isZoneChanged)) noteAll(tx, zone.body, writes);
}

const DETAIL = "dynamic update";

function writeOne(tx: CommandTransaction, write: UpdateWrite, isNoted: boolean): void {
  if (write.kind === "delete") {
    tx.delete("record", write.before.key);
    if (isNoted) noteDelete(tx, write.before, recordTitle(write.before.body), DETAIL);
    return;
  }
  const { before, body } = write;
  const stored = tx.put("record", body);
  if (isNoted) noteWrite(tx, before === undefined ? "create" : "update", { stored, before }, recordTitle(body), DETAIL);
}

/** One entry for the zone: records may be thousands, and so only the first of them are named. */
function noteAll(tx: CommandTransaction, zone: ZoneBody, writes: readonly UpdateWrite[]): void {
  const entry = { action: "update", resource: "zone", resource_id: zone.id, resource_name: zone.name, detail: DETAIL };
  if (writes.length === 0) {
    tx.note({ ...entry, result: "unchanged" });
    return;
  }
  tx.note({
    ...entry,
    after: {
      created: writes.filter((write) => write.kind === "put" && write.before === undefined).length,
      updated: writes.filter((write) => write.kind === "put" && write.before !== undefined).length,
      deleted: writes.filter((write) => write.kind === "delete").length,
      records: writes.slice(0, IMPORT_NOTES_MAX).map((write) => {
        const { id, name, type } = write.kind === "put" ? write.body : write.before.body;
        return `${name} ${type} ${id}`;
      }),
    },
  });
}
