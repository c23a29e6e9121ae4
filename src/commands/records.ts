/** Writes of records. Replacing, protection and the ownership of names are decided here, for whichever door a write came through. */
import type { RecordBody, ZoneBody } from "../model/objects.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { fqdnOf, type RecordCreate, type RecordUpdate, recordFromCreate, recordWithUpdate } from "../model/record.ts";
import { Refusal } from "../model/refusal.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteDelete, noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { permitZone } from "./permit.ts";
import {
  type Caller,
  type CommandContext,
  type CommandTransaction,
  newId,
  requireById,
  requireMatch,
  runCommand,
} from "./run.ts";
import { viewTimes } from "./view-times.ts";

export type RecordOutcome = WriteOutcome<"record"> & { readonly zone: ZoneBody };

/** The record and its zone, or `not_found`. */
export function requireRecord(
  reader: Pick<StoreReader, "byId" | "get">,
  id: string,
): { readonly stored: Stored<"record">; readonly zone: ZoneBody } {
  const stored = requireById(reader, "record", id);
  const zone = reader.get("zone", [stored.body.zone]);
  if (zone === undefined) throw new Refusal("not_found", `the zone of the record ${JSON.stringify(id)} is gone`);
  return { stored, zone: zone.body };
}

/** How audit entries and refusals call a record: its full name and its type. */
export function recordTitle(record: RecordBody): string {
  return `${fqdnOf(record)} ${record.type}`;
}

function collision(record: RecordBody): Record<string, unknown> {
  return { record_id: record.id, record_name: fqdnOf(record), record_type: record.type };
}

/**
 * Throws `name_owned` where the name belongs to a CNAME or ALIAS, or where the record is one and the name has others.
 * Shadowed records count: they would come into effect when their rival goes. One read, whatever the zone's size.
 */
export function refuseOwnedName(tx: Pick<StoreReader, "list">, record: RecordBody): void {
  // There are fewer types than this, so the list is whole.
  const others = tx.list("record", { prefix: [record.zone, record.name], limit: 100 });
  // An incumbent of the same type is replaced; what stands beside it already is no new conflict.
  if (others.some(({ body }) => body.type === record.type)) return;
  const rival = others.find(({ body }) => ownershipConflict(record.type, [body.type], record.name) !== undefined)?.body;
  if (rival === undefined) return;
  throw new Refusal(
    "name_owned",
    `${fqdnOf(record)} has a record of type ${rival.type}; ${record.type} and ${rival.type} cannot stand at one name`,
    [{ pointer: "/name", detail: `a record of type ${rival.type} has this name` }],
    collision(rival),
  );
}

/** Throws `record_protected` where the record that would be replaced is protected. */
export function refuseProtected(incumbent: Stored<"record"> | undefined): void {
  if (incumbent === undefined || !incumbent.body.protected) return;
  throw new Refusal(
    "record_protected",
    `${recordTitle(incumbent.body)} is protected and is not replaced`,
    [{ pointer: "/name", detail: "a protected record has this name and type" }],
    collision(incumbent.body),
  );
}

/** Creates a record inside a transaction. An unprotected incumbent is replaced and its id stays. */
export function createRecordIn(tx: CommandTransaction, zone: ZoneBody, given: RecordCreate): RecordOutcome {
  permitZone(tx, tx.caller, zone);
  const made = recordFromCreate(given, zone, newId("record"));
  const before = tx.get("record", [made.zone, made.name, made.type]);
  refuseProtected(before);
  refuseOwnedName(tx, made);
  const stored = tx.put("record", before === undefined ? made : { ...made, id: before.body.id });
  const outcome = { stored, before, zone };
  noteWrite(tx, "create", outcome, recordTitle(stored.body));
  return outcome;
}

/** Creates a record in the zone with that id, as one command. */
export function createRecord(
  context: CommandContext,
  caller: Caller,
  zoneId: string,
  given: RecordCreate,
): Promise<RecordOutcome> {
  return runCommand(context, caller, (tx) => createRecordIn(tx, requireById(tx, "zone", zoneId).body, given));
}

/** Throws where a record may not come to the name that `renamed` has; returns the unprotected record that it replaces there. */
function renameTarget(tx: CommandTransaction, renamed: RecordBody): Stored<"record"> | undefined {
  const incumbent = tx.get("record", [renamed.zone, renamed.name, renamed.type]);
  refuseProtected(incumbent);
  refuseOwnedName(tx, renamed);
  return incumbent;
}

/** Changes the fields given, as one command. A new name moves the record, which keeps its id; what it replaces there ends. */
export function updateRecord(
  context: CommandContext,
  caller: Caller,
  id: string,
  given: RecordUpdate,
): Promise<RecordOutcome> {
  return runCommand(context, caller, (tx) => {
    const { stored: before, zone } = requireRecord(tx, id);
    permitZone(tx, caller, zone);
    const body = recordWithUpdate(before.body, given, zone, viewTimes(before));
    const isRenamed = body.name !== before.body.name;
    const replaced = isRenamed ? renameTarget(tx, body) : undefined;
    requireMatch(caller, before);
    if (replaced !== undefined) {
      tx.delete("record", replaced.key);
      noteDelete(tx, replaced, recordTitle(replaced.body), `replaced by ${body.id}, which was renamed`);
    }
    const stored = isRenamed ? tx.move("record", before.key, body) : tx.put("record", body);
    const outcome = { stored, before, zone };
    noteWrite(tx, "update", outcome, recordTitle(stored.body));
    return outcome;
  });
}

/** Deletes a record, as one command. A protected one only with `force`. Returns its own id, whatever alias it was asked by. */
export function deleteRecord(context: CommandContext, caller: Caller, id: string, force: boolean): Promise<string> {
  return runCommand(context, caller, (tx) => {
    const { stored, zone } = requireRecord(tx, id);
    permitZone(tx, caller, zone);
    if (stored.body.protected && !force) {
      throw new Refusal(
        "record_protected",
        `${recordTitle(stored.body)} is protected; ?force=true deletes it all the same`,
        [],
        collision(stored.body),
      );
    }
    requireMatch(caller, stored);
    tx.delete("record", stored.key);
    noteDelete(tx, stored, recordTitle(stored.body), stored.body.protected ? "forced" : undefined);
    return stored.body.id;
  });
}
