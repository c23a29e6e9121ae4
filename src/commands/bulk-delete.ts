/** Deletes many records of one zone at once: all that may go, in one transaction. */
import type { ZoneBody } from "../model/objects.ts";
import { Refusal } from "../model/refusal.ts";
import type { Stored } from "../store/store.ts";
import { noteDelete } from "./audit-outcome.ts";
import { readConfig } from "./config-documents.ts";
import { permitZone } from "./permit.ts";
import { recordTitle } from "./records.ts";
import {
  type Caller,
  type CommandContext,
  type CommandTransaction,
  requireById,
  runCommand,
  runCommandInSlices,
} from "./run.ts";

export type BulkDeleteInput = {
  readonly ids: readonly string[];
  /** Deletes protected records too. */
  readonly force?: boolean;
};

/** How many of the distinct ids went which way. */
export type BulkDeleteResult = {
  readonly deleted: number;
  readonly protected_skipped: number;
  readonly not_found: number;
};

/** Throws `bulk_cap_exceeded` for more ids than `/config/delete-guardrails` allows, counted as they were sent. */
function refuseOverCap(tx: CommandTransaction, ids: readonly string[]): void {
  const cap = readConfig(tx, "delete-guardrails").effective.bulk_delete_cap;
  if (ids.length <= cap) return;
  throw new Refusal(
    "bulk_cap_exceeded",
    `${ids.length} ids are more than the cap of ${cap}; nothing was deleted`,
    [{ pointer: "/ids", detail: `at most ${cap} ids` }],
    { bulk_delete_cap: cap },
  );
}

/** The zone's records with those ids, each once though an alias and an id may both name it, and how many ids name none. */
function resolveIds(tx: CommandTransaction, zone: string, ids: readonly string[]) {
  const records = new Map<string, Stored<"record">>();
  let notFound = 0;
  for (const id of new Set(ids)) {
    const stored = tx.byId("record", id);
    if (stored?.body.zone === zone) records.set(stored.body.id, stored);
    else notFound++;
  }
  return { records: [...records.values()], notFound };
}

/** Each deletion has an entry of its own; where there was none the call has one, for it was acknowledged. */
function noteNothing(tx: CommandTransaction, { id, name }: ZoneBody, result: BulkDeleteResult): void {
  tx.note({
    action: "bulk-delete",
    resource: "zone",
    resource_id: id,
    resource_name: name,
    result: "unchanged",
    after: result,
  });
}

/** Deletes the zone's records with those ids. Ids of other zones count as not found, an id sent twice counts once. */
export function bulkDelete(
  context: CommandContext,
  caller: Caller,
  zoneId: string,
  { ids, force = false }: BulkDeleteInput,
): Promise<BulkDeleteResult> {
  function* work(tx: CommandTransaction): Generator<void, BulkDeleteResult> {
    const zone = requireById(tx, "zone", zoneId).body;
    permitZone(tx, caller, zone);
    refuseOverCap(tx, ids);
    const { records, notFound } = resolveIds(tx, zone.name, ids);
    const deletable = force ? records : records.filter(({ body }) => !body.protected);
    for (const stored of deletable) {
      tx.delete("record", stored.key);
      noteDelete(tx, stored, recordTitle(stored.body), stored.body.protected ? "bulk-delete, forced" : "bulk-delete");
      yield;
    }
    const skipped = records.length - deletable.length;
    const result = { deleted: deletable.length, protected_skipped: skipped, not_found: notFound };
    if (deletable.length === 0) noteNothing(tx, zone, result);
    return result;
  }
  if (caller.dryRun) return runCommand(context, caller, (tx) => toEnd(work(tx)));
  return runCommandInSlices(context, caller, work);
}

function toEnd<T>(steps: Generator<void, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
