/** Addresses that public names have no reason to have: what rebinding protection leaves out. */
import { IPV4_BYTES, IPV6_BYTES } from "../base/ip.ts";

/**
 * True for 4 or 16 bytes that name this host, its link or a private network (RFC 6890): unspecified, loopback, link-local,
 * RFC 1918, shared address space (RFC 6598), unique local (RFC 4193), site-local, and IPv6 that carries such an IPv4 address:
 * mapped, compatible (RFC 4291 section 2.5.5) or translated (RFC 6052).
 */
export function isPrivateAddress(address: Uint8Array): boolean {
  if (address.length === IPV4_BYTES) return isPrivateIpv4(address, 0);
  if (address.length !== IPV6_BYTES) return false;
  const first = (address[0]! << 8) | address[1]!;
  if ((first & 0xfe00) === 0xfc00 || (first & 0xff80) === 0xfe80) return true;
  const tail = IPV6_BYTES - IPV4_BYTES;
  if (first === 0x0064)
    return isZero(address, 4, tail) && address[2] === 0xff && address[3] === 0x9b && isPrivateIpv4(address, tail);
  if (!isZero(address, 0, 10)) return false;
  const carrier = (address[10]! << 8) | address[11]!;
  // `::` and `::1` come here as 0.0.0.0 and 0.0.0.1.
  return (carrier === 0xffff || carrier === 0) && isPrivateIpv4(address, tail);
}

function isPrivateIpv4(bytes: Uint8Array, at: number): boolean {
  const first = bytes[at]!;
  const second = bytes[at + 1]!;
  switch (first) {
    case 0:
    case 10:
    case 127:
      return true;
    case 100:
      return (second & 0xc0) === 64;
    case 169:
      return second === 254;
    case 172:
      return (second & 0xf0) === 16;
    case 192:
      return second === 168;
    default:
      return false;
  }
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] !== 0) return false;
  return true;
}
