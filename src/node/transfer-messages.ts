/** What the threads that encode zones for transfer are asked, and answer. */
import type { EncodedTransfer } from "../primary/axfr-encode.ts";

/** Which version of a zone is known already. */
export type TransferVersion = { readonly serial: number; readonly born: string };

export type TransferQuestion = {
  readonly zone: string;
  /** Where the zone is still this one, its messages are not made again. */
  readonly known: TransferVersion | undefined;
};

export type TransferAnswer =
  | { readonly kind: "zone"; readonly transfer: EncodedTransfer; readonly version: TransferVersion }
  | { readonly kind: "same" }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly detail: string };
