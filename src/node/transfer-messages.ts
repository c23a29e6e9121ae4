/** What the threads that encode zones for transfer are asked, and answer. */
import type { TransferZone } from "./transfer-zone.ts";

/** The canonical name of a zone. */
export type TransferQuestion = { readonly zone: string };

export type TransferAnswer =
  /** `born` is the stamp of its creation: another life of the zone has another one. */
  | { readonly kind: "zone"; readonly zone: TransferZone; readonly born: string }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly detail: string };
