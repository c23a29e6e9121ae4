/** Addresses of members as configuration has them: "host:port", "[2001:db8::1]:port". */
import { ipFromText } from "../base/ip.ts";
import type { Endpoint } from "./messages.ts";
import { RESOLVED_ADDRESSES_MAX } from "./settings.ts";

/** The addresses of a host name, 4 or 16 bytes each; rejects where it has none. */
export type ResolveHost = (host: string) => Promise<readonly Uint8Array[]>;

export type HostAndPort = { readonly host: string; readonly port: number };

/** Undefined where the text is no address of a member. */
export function parseHostAndPort(address: string): HostAndPort | undefined {
  const parts = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([^:[\]\s]{1,253})):([0-9]{1,5})$/.exec(address);
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3]);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

/** Rejects with why the name has no address. */
export async function resolveEndpoints(
  { host, port }: HostAndPort,
  resolveHost: ResolveHost,
): Promise<readonly Endpoint[]> {
  const ip = ipFromText(host);
  const addresses = ip === undefined ? await resolveHost(host) : [ip];
  if (addresses.length === 0) throw new Error("the name has no address");
  return addresses.slice(0, RESOLVED_ADDRESSES_MAX).map((address) => ({ address, port }));
}
