/** The entry in the audit log that every write of one object leaves, whichever command made it. */
import type { Kind } from "../model/objects.ts";
import type { Stored } from "../store/store.ts";
import type { CommandTransaction } from "./run.ts";

/** What a write did to one object. */
export type WriteOutcome<K extends Kind> = {
  readonly stored: Stored<K>;
  /** The version before; undefined: created. */
  readonly before: Stored<K> | undefined;
};

/** Whether the object is another one than before: an equal body keeps its stamp. */
export function hasChanged<K extends Kind>({ stored, before }: WriteOutcome<K>): boolean {
  return before === undefined || before.stamp !== stored.stamp;
}

type Identified = { readonly id: string };

/**
 * Notes a create or an update. A write that changed nothing is noted too, without bodies and with the result
 * `unchanged`: it was acknowledged, and it was somebody's act.
 */
export function noteWrite<K extends Kind>(
  tx: CommandTransaction,
  action: "create" | "update",
  outcome: WriteOutcome<K> & { readonly stored: { readonly body: Identified } },
  name: string,
  detail?: string,
): void {
  const { stored, before } = outcome;
  const entry = { action, resource: stored.kind, resource_id: stored.body.id, resource_name: name };
  const because = detail === undefined ? {} : { detail };
  if (!hasChanged(outcome)) tx.note({ ...entry, ...because, result: "unchanged" });
  else tx.note({ ...entry, ...because, ...(before === undefined ? {} : { before: before.body }), after: stored.body });
}

/** Notes a deletion, with the body that is gone. */
export function noteDelete<K extends Kind>(
  tx: CommandTransaction,
  gone: Stored<K> & { readonly body: Identified },
  name: string,
  detail?: string,
): void {
  tx.note({
    action: "delete",
    resource: gone.kind,
    resource_id: gone.body.id,
    resource_name: name,
    before: gone.body,
    ...(detail === undefined ? {} : { detail }),
  });
}
