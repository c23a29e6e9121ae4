/** A server that queries are forwarded to, and its text as settings have it. */
import { IPV4_BYTES, IPV6_BYTES, ipFromText, ipToText } from "../base/ip.ts";

export type Upstream = {
  /** Over UDP with TCP behind it, or over TLS (RFC 7858). */
  readonly transport: "dns" | "tls";
  /** An address, or a host name without its last dot. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly port: number;
  /** The name that the certificate must have; undefined: `host`, name or address. Of transport "tls" only. */
  readonly tlsName: string | undefined;
};

export const UPSTREAM_PORT = { dns: 53, tls: 853 } as const;

export type UpstreamOutcome =
  | { readonly kind: "upstream"; readonly upstream: Upstream }
  /** A sentence without its subject, as faults of fields are told. */
  | { readonly kind: "fault"; readonly detail: string };

const PORT_MAX = 65_535;
/** RFC 1035 section 2.3.4, as text without the last dot. */
const HOST_CHARACTERS_MAX = 253;
const LABEL = /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;

/**
 * Reads `host`, `host:port`, an IPv6 address with or without brackets, and `tls://` with any of these and the name of the
 * certificate behind `#`.
 */
export function parseUpstream(text: string): UpstreamOutcome {
  const scheme = SCHEME.exec(text);
  if (scheme === null) return text.includes("#") ? fault('may have a "#" behind tls:// only') : parsePlace(text, "dns");
  if (scheme[1]!.toLowerCase() !== "tls") {
    return fault(`must not begin with ${scheme[0]}: plain DNS is written without, DNS over TLS with tls://`);
  }
  const rest = text.slice(scheme[0].length);
  const hash = rest.indexOf("#");
  const name = hash < 0 ? undefined : rest.slice(hash + 1);
  if (name !== undefined && (!isHostName(name) || ipFromText(name) !== undefined)) {
    return fault('must have the name of the certificate behind "#", such as tls://192.0.2.1#dns.example');
  }
  return parsePlace(hash < 0 ? rest : rest.slice(0, hash), "tls", name === undefined ? undefined : plainName(name));
}

function parsePlace(text: string, transport: Upstream["transport"], tlsName?: string): UpstreamOutcome {
  const parts = splitPort(text);
  if (parts === undefined) {
    return fault(
      "must be an address or a host name, with or without a port: 192.0.2.1:53, [2001:db8::1]:53, ns.example",
    );
  }
  const port = parts.port === undefined ? UPSTREAM_PORT[transport] : Number(parts.port);
  if (port < 1 || port > PORT_MAX || (parts.port !== undefined && String(port) !== parts.port)) {
    return fault(`must have a port between 1 and ${PORT_MAX}`);
  }
  const address = ipFromText(parts.host);
  if (address === undefined) {
    if (parts.isBracketed) return fault("must have an IPv6 address within its brackets");
    if (!isHostName(parts.host)) return fault("must be an address or the name of a host");
    return { kind: "upstream", upstream: { transport, host: plainName(parts.host), isAddress: false, port, tlsName } };
  }
  const wrong = addressFault(address, parts.isBracketed);
  if (wrong !== undefined) return fault(wrong);
  return { kind: "upstream", upstream: { transport, host: ipToText(address), isAddress: true, port, tlsName } };
}

type Parts = { readonly host: string; readonly port: string | undefined; readonly isBracketed: boolean };

function splitPort(text: string): Parts | undefined {
  if (ipFromText(text) !== undefined) return { host: text, port: undefined, isBracketed: false };
  const bracketed = /^\[([^\]]*)\](?::([0-9]{1,5}))?$/.exec(text);
  if (bracketed !== null) return { host: bracketed[1] ?? "", port: bracketed[2], isBracketed: true };
  const plain = /^([^:[\]]+)(?::([0-9]{1,5}))?$/.exec(text);
  return plain === null ? undefined : { host: plain[1] ?? "", port: plain[2], isBracketed: false };
}

/** The same address must not be written in two ways, and must be one that a server can have. */
function addressFault(address: Uint8Array, isBracketed: boolean): string | undefined {
  if (isBracketed && address.length === IPV4_BYTES) return "must not have an IPv4 address in brackets";
  const isMapped =
    address.length === IPV6_BYTES &&
    address.subarray(0, 10).every((byte) => byte === 0) &&
    address[10] === 0xff &&
    address[11] === 0xff;
  if (isMapped) return `must be written as the IPv4 address ${ipToText(address, 12, IPV4_BYTES)}`;
  const isMulticast = address.length === IPV4_BYTES ? address[0]! >= 224 : address[0] === 0xff;
  const isNobody = address.length === IPV4_BYTES ? address[0] === 0 : address.every((byte) => byte === 0);
  if (isMulticast || isNobody) return "must be the address of one server";
  // Which link it is on could not be said.
  const isLinkLocal = address.length === IPV6_BYTES && address[0] === 0xfe && (address[1]! & 0xc0) === 0x80;
  return isLinkLocal ? "must not be a link-local address: no server is found by it alone" : undefined;
}

/** A host name (RFC 1123 section 2.1, underscores allowed), and not a mistyped address: its last label is no number. */
function isHostName(text: string): boolean {
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  if (name.length > HOST_CHARACTERS_MAX) return false;
  const labels = name.split(".");
  return labels.every((label) => LABEL.test(label)) && !/^[0-9]+$/.test(labels.at(-1) ?? "");
}

function plainName(text: string): string {
  return text.toLowerCase().replace(/\.$/, "");
}

/** The one spelling of an upstream, with its port; `parseUpstream` reads it back. */
export function upstreamText({ transport, host, port, tlsName }: Upstream): string {
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (transport === "dns") return place;
  return `tls://${place}${tlsName === undefined ? "" : `#${tlsName}`}`;
}

function fault(detail: string): UpstreamOutcome {
  return { kind: "fault", detail };
}
