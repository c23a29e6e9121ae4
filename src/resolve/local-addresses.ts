/** Whether an address is one of this machine's own. */
import { networkInterfaces } from "node:os";
import { ipFromText, ipToText } from "../base/ip.ts";

export type LocalAddresses = (address: Uint8Array) => boolean;

/** Addresses come and go; to read them takes a while. */
const KEPT_MS = 10_000;
const MAPPED_BYTES = 12;

/** `read` gives the addresses of all interfaces, in text, with or without a zone. */
export function createLocalAddresses(nowMs: () => number, read: () => readonly string[] = readAll): LocalAddresses {
  let known = new Set<string>();
  let untilMs = Number.NEGATIVE_INFINITY;
  return (address) => {
    // All of 127.0.0.0/8, of which an interface tells one; and what stands for any address leads here too.
    if (address.length === 4 && address[0] === 127) return true;
    if (address.every((byte) => byte === 0)) return true;
    if (nowMs() >= untilMs) {
      known = new Set(read().map((text) => canonical(text)));
      untilMs = nowMs() + KEPT_MS;
    }
    return known.has(ipToText(address));
  };
}

/** The IPv4 address where one is written as IPv6 (RFC 4291 section 2.5.5.2), else the address. */
export function unmapped(address: Uint8Array): Uint8Array {
  if (address.length !== 16 || address[10] !== 0xff || address[11] !== 0xff) return address;
  for (let at = 0; at < 10; at++) if (address[at] !== 0) return address;
  return address.subarray(MAPPED_BYTES);
}

function canonical(text: string): string {
  const bytes = ipFromText(text.split("%", 1)[0] ?? "");
  return bytes === undefined ? text : ipToText(bytes);
}

function readAll(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
}
