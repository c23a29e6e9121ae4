/** What `/config/delete-guardrails` says, for the commands that heed it. */
import type { StoreReader } from "../store/store.ts";

export const BULK_DELETE_CAP_DEFAULT = 100;

export type Guardrails = { readonly bulkDeleteCap: number; readonly defaultZoneDeletionLock: boolean };

/** As configured; 0 or nothing stands for the default. */
export function readGuardrails(reader: Pick<StoreReader, "get">): Guardrails {
  const settings = reader.get("config", ["delete-guardrails"])?.body.settings ?? {};
  const cap = settings.bulk_delete_cap;
  return {
    bulkDeleteCap: typeof cap === "number" && cap > 0 ? cap : BULK_DELETE_CAP_DEFAULT,
    defaultZoneDeletionLock: settings.default_zone_deletion_lock === true,
  };
}
