/** Who may have a zone whole: whom the settings list by address, and whose key says so. */
import type { Cidr } from "../base/ip.ts";

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
  return settings.allowNetworks.some((network) => isWithin(address, network));
}

function grants(given: readonly TransferGrant[] | undefined, zone: string): boolean {
  if (given === undefined) return true;
  return given.some((grant) => grant.zone === zone && grant.transfer === true);
}

const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/** An IPv4 client on a socket of both families comes as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). */
function plainAddress(address: Uint8Array): Uint8Array {
  const isMapped = address.length === 16 && MAPPED_PREFIX.every((byte, at) => address[at] === byte);
  return isMapped ? address.subarray(12) : address;
}

function isWithin(given: Uint8Array, { address: network, prefixBits }: Cidr): boolean {
  const address = plainAddress(given);
  if (address.length !== network.length) return false;
  return network.every((byte, at) => {
    const bits = Math.min(8, Math.max(0, prefixBits - at * 8));
    const mask = (0xff00 >> bits) & 0xff;
    return (byte & mask) === (address[at]! & mask);
  });
}
