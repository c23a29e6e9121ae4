import { ipFromText, ipToText } from "../base/ip.ts";

/** An IP address (4 or 16 bytes) and a port; port 0 lets the system choose. */
export type Address = { readonly bytes: Uint8Array; readonly port: number };

/** Reads `192.0.2.1:53` or `[2001:db8::1]:53`; undefined when the text is neither. */
export function addressFromText(text: string): Address | undefined {
  const parts = /^(?:\[([^\]]*:[^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  if (parts === null) return undefined;
  const bytes = ipFromText(parts[1] ?? parts[2] ?? "");
  const port = Number(parts[3]);
  return bytes === undefined || port > 65535 ? undefined : { bytes, port };
}

/** The address without its port, as a program that connects to it writes it. */
export function hostText(address: Address): string {
  return ipToText(address.bytes);
}

export function addressToText(address: Address): string {
  const host = hostText(address);
  return `${address.bytes.length === 16 ? `[${host}]` : host}:${address.port}`;
}

/** Whether the address stands for every address of the machine. */
export function isWildcard(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

export function sameAddress(one: Address, other: Address): boolean {
  return one.port === other.port && Buffer.compare(one.bytes, other.bytes) === 0;
}

const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/**
 * The 4 or 16 bytes of a client's address as Node's sockets tell it. A zone id says by which link it came, not who it
 * is; an IPv4 client of a dual-stack socket is an IPv4 client (RFC 4291 section 2.5.5.2).
 */
export function clientAddress(text: string): Uint8Array | undefined {
  const bytes = ipFromText(text.split("%", 1)[0] ?? "");
  if (bytes?.length !== 16) return bytes;
  return Buffer.compare(bytes.subarray(0, 12), MAPPED_PREFIX) === 0 ? bytes.slice(12) : bytes;
}
