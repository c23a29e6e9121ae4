/** Where a request comes from, behind proxies that the operator trusts. */
import { type Cidr, cidrHolds, ipFromText, ipToText, unmappedIp } from "../base/ip.ts";

/** One spelling of an address, an IPv4 one that came over an IPv6 socket as IPv4. Undefined: it is none. */
export function plainAddress(text: string): string | undefined {
  const bytes = ipFromText(text);
  return bytes === undefined ? undefined : ipToText(unmappedIp(bytes));
}

/**
 * The address of the client: the peer's, unless that is a trusted proxy; then the last entry of X-Forwarded-For that is
 * not one. Entries to the left of it are what the client says of itself.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | readonly string[] | undefined,
  trustedProxies: readonly Cidr[],
): string {
  let address = plainAddress(peer) ?? peer;
  const entries = forwardedFor === undefined ? [] : [forwardedFor].flat().join(",").split(",");
  while (trustedProxies.some((block) => isInside(address, block))) {
    const entry = plainAddress(withoutPort((entries.pop() ?? "").trim()));
    if (entry === undefined) break;
    address = entry;
  }
  return address;
}

/** Some proxies write the port of their peer behind its address, an IPv6 one in brackets then (as in RFC 7239 section 6). */
function withoutPort(entry: string): string {
  return /^\[([^\]]*)\](?::[0-9]{1,5})?$/.exec(entry)?.[1] ?? /^([0-9.]+):[0-9]{1,5}$/.exec(entry)?.[1] ?? entry;
}

function isInside(text: string, block: Cidr): boolean {
  const address = ipFromText(text);
  return address !== undefined && cidrHolds(block, address);
}
