/** Text of an address or host name with a port, as settings have it: "192.0.2.1:53", "[2001:db8::1]:53", "ns.example:53". */
import { ipFromText, ipToText } from "../base/ip.ts";
import { hostName } from "./names.ts";

export type Endpoint = { readonly host: string; readonly isAddress: boolean; readonly port: number | undefined };

/** Undefined: it is none. An IPv6 address with a port stands in brackets, and without one with or without them. */
export function parseEndpoint(text: string): Endpoint | undefined {
  if (ipFromText(text) !== undefined) return { host: text, isAddress: true, port: undefined };
  const bracketed = /^\[([^\]]*)\](?::([0-9]{1,5}))?$/.exec(text);
  const plain = /^([^:[\]]+)(?::([0-9]{1,5}))?$/.exec(text);
  const host = bracketed?.[1] ?? plain?.[1];
  if (host === undefined) return undefined;
  const portText = bracketed?.[2] ?? plain?.[2];
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && (port > 65_535 || String(port) !== portText)) return undefined;
  const isAddress = ipFromText(host) !== undefined;
  if (bracketed !== null && !isAddress) return undefined;
  return isAddress || isHost(host) ? { host, isAddress, port } : undefined;
}

/** A host name, and not a mistyped IPv4 address: its last label is no number (RFC 1123 section 2.1). */
function isHost(text: string): boolean {
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  if (/(^|\.)[0-9]+$/.test(name)) return false;
  return /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(name) && hostName(text).kind === "name";
}

/** What a standalone check asks. */
export type CheckTarget = {
  /** As it is stored and shown: lower case, without the last dot of a name, an IPv6 address in brackets. */
  readonly text: string;
  /** An address, or an absolute host name with its last dot. */
  readonly host: string;
  readonly port: number;
};

/** The target behind "host:port"; undefined: it is none. The port must be there. */
export function checkTarget(text: string): CheckTarget | undefined {
  const parsed = parseEndpoint(text);
  if (parsed?.port === undefined || parsed.port === 0) return undefined;
  const address = ipFromText(parsed.host);
  if (address !== undefined) {
    const host = ipToText(address);
    return { text: `${host.includes(":") ? `[${host}]` : host}:${parsed.port}`, host, port: parsed.port };
  }
  const name = parsed.host.toLowerCase().replace(/\.$/, "");
  return { text: `${name}:${parsed.port}`, host: `${name}.`, port: parsed.port };
}
