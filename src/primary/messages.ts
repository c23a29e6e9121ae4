/**
 * What `control` and the thread that answers secondaries and updaters say to each other: that thread has the signatures and the
 * connections, `control` has the zones.
 */
import type { Cidr } from "../base/ip.ts";
import type { TsigKey } from "../dns/tsig.ts";
import type { TransferStats, ZoneForTransfer } from "./axfr.ts";
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

/** Totals since the thread began, but for what is `underWay`, `running` or `waiting` now. */
export type PrimaryFigures = {
  /** Messages with a signature, by what it came to (RFC 8945 section 5.2). */
  readonly signatures: {
    readonly ok: number;
    readonly badkey: number;
    readonly badsig: number;
    readonly badtime: number;
    readonly badtrunc: number;
    readonly formerr: number;
  };
  readonly updates: {
    readonly underWay: number;
    /** By the RCODE of their answers. */
    readonly byRcode: readonly { readonly rcode: number; readonly count: number }[];
    /** Retransmitted while the first was under way; of those above, SERVFAIL because there were too many, or `control` was too slow. */
    readonly joined: number;
    readonly tooMany: number;
    readonly late: number;
  };
  readonly transfers: TransferStats & {
    /** Requests of those who may not have the zone, and requests that were none in form. */
    readonly denied: number;
    readonly malformed: number;
  };
};

/** From `control`; ids are those of the questions below, but for the last one's, which are its own. */
export type ToPrimary =
  | { readonly kind: "primary-settings"; readonly settings: PrimarySettings }
  | { readonly kind: "updated"; readonly id: number; readonly rcode: number }
  | { readonly kind: "encoded"; readonly id: number; readonly zone: ZoneForTransfer }
  | { readonly kind: "ask-primary-figures"; readonly id: number };

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
  | { readonly kind: "encode"; readonly id: number; readonly zone: Uint8Array }
  | { readonly kind: "told-primary-figures"; readonly id: number; readonly figures: PrimaryFigures };
