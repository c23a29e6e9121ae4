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
