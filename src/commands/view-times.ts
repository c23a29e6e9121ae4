/** When an object was made and last changed, as views show it. */
import type { ViewTimes } from "../model/record.ts";
import { stampMs } from "../store/stamp.ts";
import type { Stored } from "../store/store.ts";

/** RFC 3339, UTC, of the stamps that the object carries. */
export function viewTimes(stored: Stored): ViewTimes & { readonly shadowedBy: string | undefined } {
  return {
    createdAt: new Date(stampMs(stored.born)).toISOString(),
    updatedAt: new Date(stampMs(stored.stamp)).toISOString(),
    shadowedBy: stored.shadowedBy,
  };
}
