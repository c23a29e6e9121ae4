/**
 * The networks that no packet of the public Internet rightly comes from: those of the IANA special-purpose address registries
 * (RFC 6890, updated by RFC 8190) that are not globally reachable and that a host may have addresses of. Not among them are
 * addresses that no host has: unspecified, mapped, discarded, broadcast and reserved ones, and multicast.
 */
export const NOT_PUBLIC_NETWORKS: readonly string[] = [
  // Loopback (RFC 1122), private use (RFC 1918), shared address space (RFC 6598), link local (RFC 3927).
  "127.0.0.0/8",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "169.254.0.0/16",
  // Service continuity of IPv4 (RFC 7335), documentation (RFC 5737), benchmarking (RFC 2544).
  "192.0.0.0/29",
  "192.0.2.0/24",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "198.18.0.0/15",
  // Loopback and link local (RFC 4291), unique local (RFC 4193), local translation to IPv4 (RFC 8215).
  "::1/128",
  "fe80::/10",
  "fc00::/7",
  "64:ff9b:1::/48",
  // Documentation (RFC 3849, RFC 9637), benchmarking (RFC 5180).
  "2001:db8::/32",
  "3fff::/20",
  "2001:2::/48",
];
