/** Writes of overrides: answers for single full names whose zones are not hosted. They follow the rules of records. */
import type { OverrideBody } from "../model/objects.ts";
import { type OverrideCreate, type OverrideUpdate, overrideFromCreate, overrideWithUpdate } from "../model/override.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { Refusal } from "../model/refusal.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteDelete, noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, newId, requireById, requireMatch, runCommand } from "./run.ts";
import { viewTimes } from "./view-times.ts";

function overrideTitle(override: OverrideBody): string {
  return `${override.name} ${override.type}`;
}

/** Throws `name_owned` where a CNAME or ALIAS would stand beside another type. */
function refuseOwnedName(tx: Pick<StoreReader, "list">, override: OverrideBody): void {
  const others = tx.list("override", { prefix: [override.name], limit: 100 });
  if (others.some(({ body }) => body.type === override.type)) return;
  const rival = others.find(
    ({ body }) => ownershipConflict(override.type, [body.type], override.name) !== undefined,
  )?.body;
  if (rival === undefined) return;
  throw new Refusal(
    "name_owned",
    `${override.name} has an override of type ${rival.type}; ${override.type} and ${rival.type} cannot stand at one name`,
    [{ pointer: "/name", detail: `an override of type ${rival.type} has this name` }],
    { override_id: rival.id, override_name: rival.name, override_type: rival.type },
  );
}

/** Creates an override as one command; one of the same name and type is replaced and its id stays. */
export function createOverride(
  context: CommandContext,
  caller: Caller,
  given: OverrideCreate,
): Promise<WriteOutcome<"override">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write overrides");
    const made = overrideFromCreate(given, newId("override"));
    const before = tx.get("override", [made.name, made.type]);
    refuseOwnedName(tx, made);
    const stored = tx.put("override", before === undefined ? made : { ...made, id: before.body.id });
    const outcome = { stored, before };
    noteWrite(tx, "create", outcome, overrideTitle(stored.body));
    return outcome;
  });
}

/** Changes the fields given, as one command. A new name moves the override, which keeps its id; what it replaces there ends. */
export function updateOverride(
  context: CommandContext,
  caller: Caller,
  id: string,
  given: OverrideUpdate,
): Promise<WriteOutcome<"override">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write overrides");
    const before = requireById(tx, "override", id);
    const body = overrideWithUpdate(before.body, given, viewTimes(before));
    const isRenamed = body.name !== before.body.name;
    const replaced = isRenamed ? tx.get("override", [body.name, body.type]) : undefined;
    if (isRenamed) refuseOwnedName(tx, body);
    requireMatch(caller, before);
    if (replaced !== undefined) {
      tx.delete("override", replaced.key);
      noteDelete(tx, replaced, overrideTitle(replaced.body), `replaced by ${body.id}, which was renamed`);
    }
    const stored: Stored<"override"> = isRenamed ? tx.move("override", before.key, body) : tx.put("override", body);
    const outcome = { stored, before };
    noteWrite(tx, "update", outcome, overrideTitle(stored.body));
    return outcome;
  });
}

/** Deletes an override as one command. Returns its own id. */
export function deleteOverride(context: CommandContext, caller: Caller, id: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write overrides");
    const stored = requireById(tx, "override", id);
    requireMatch(caller, stored);
    tx.delete("override", stored.key);
    noteDelete(tx, stored, overrideTitle(stored.body));
    return stored.body.id;
  });
}
