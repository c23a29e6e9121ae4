/**
 * What `control` and the thread that answers secondaries and updaters say to each other: that thread has the signatures and the
 * connections, `control` has the zones.
 */
import type { Cidr } from "../base/ip.ts";
import type { TsigKey } from "../dns/tsig.ts";
import type { ZoneForTransfer } from "./axfr.ts";
import type { TransferGrant, TransferSettings } from "./transfer-acl.ts";

/** A key that may sign here. Grants absent: every zone; none of them: nothing. */
export type PrimaryKey = TsigKey & {
  readonly grants: readonly TransferGrant[] | undefined;
  /** What it signs is answered with everything that is stored, whatever is healthy or chosen. */
  readonly hasManagementView: boolean;
};

/** All of it at once, whenever something of it changes. */
export type PrimarySettings = {
  readonly keys: readonly PrimaryKey[];
  readonly transfers: TransferSettings;
  readonly updates: { readonly enabled: boolean; readonly unsignedNetworks: readonly Cidr[] };
};

/** From `control`; ids are those of the questions below. */
export type ToPrimary =
  | { readonly kind: "primary-settings"; readonly settings: PrimarySettings }
  | { readonly kind: "updated"; readonly id: number; readonly rcode: number }
  | { readonly kind: "encoded"; readonly id: number; readonly zone: ZoneForTransfer };

/** To `control`. */
export type FromPrimary =
  | {
      readonly kind: "update";
      readonly id: number;
      /** Canonical text of the name of the key whose signature is good; undefined: it is not signed. */
      readonly keyName: string | undefined;
      /** The client's, 4 or 16 bytes. */
      readonly address: Uint8Array;
      /** The message without its TSIG. */
      readonly message: Uint8Array;
    }
  /** Lower-case wire name of a zone that the client may have. */
  | { readonly kind: "encode"; readonly id: number; readonly zone: Uint8Array };
