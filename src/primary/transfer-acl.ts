/** Who may have a zone whole: whom the settings list by address, and whose key says so. */
import { type Cidr, cidrHolds, unmappedIp } from "../base/ip.ts";

/** The settings of transfers, as they apply. */
export type TransferSettings = {
  readonly enabled: boolean;
  /** Networks that may transfer without a key. */
  readonly allowNetworks: readonly Cidr[];
};

/** What a key may do with a zone; `zone` is a canonical name, as `zone` of `mayTransfer`. */
export type TransferGrant = { readonly zone: string; readonly transfer?: boolean };

/** Who asks: the address that the request came from, 4 or 16 bytes, and the key that it was signed with, where it verified. */
export type TransferClient = {
  readonly address: Uint8Array;
  /** Grants absent: every zone; none of them: nothing. */
  readonly key: { readonly grants?: readonly TransferGrant[] | undefined } | undefined;
};

/** An address that is listed is enough, and so is a key that grants it; a key that does not takes nothing from an address. */
export function mayTransfer(settings: TransferSettings, client: TransferClient, zone: string): boolean {
  if (!settings.enabled) return false;
  const { key, address } = client;
  if (key !== undefined && grants(key.grants, zone)) return true;
  return settings.allowNetworks.some((network) => cidrHolds(network, unmappedIp(address)));
}

function grants(given: readonly TransferGrant[] | undefined, zone: string): boolean {
  if (given === undefined) return true;
  return given.some((grant) => grant.zone === zone && grant.transfer === true);
}
