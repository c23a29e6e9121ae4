/**
 * Strict text and bytes of IPv4 and IPv6 addresses and of CIDR blocks.
 * Text is ASCII; addresses are 4 or 16 bytes in network order. The byte-level functions read a slice of a larger text
 * and write in place, because zone files with a million addresses go through them.
 */

export const IPV4_BYTES = 4;
export const IPV6_BYTES = 16;

/** A block of addresses. `hostBitsSet` tells that `address` has bits below the prefix. */
export type Cidr = { readonly address: Uint8Array; readonly prefixBits: number; readonly hostBitsSet: boolean };

const DOT = 0x2e;
const COLON = 0x3a;
/** The longest text: six groups of four digits and a dotted tail. For `ipFromText`, which copies its result out. */
const TEXT_MAX = 45;
const textBytes = new Uint8Array(TEXT_MAX);

/** Writes the address in `text[start, end)` to 4 bytes of `target`. False when it is not four decimal octets without leading zeros. */
export function writeIpv4(text: Uint8Array, start: number, end: number, target: Uint8Array, offset: number): boolean {
  let octets = 0;
  let value = 0;
  let digits = 0;
  for (let at = start; at <= end; at++) {
    const byte = at === end ? DOT : text[at]!;
    if (byte === DOT) {
      if (digits === 0 || octets === IPV4_BYTES) return false;
      target[offset + octets] = value;
      octets++;
      value = 0;
      digits = 0;
      continue;
    }
    const digit = byte - 0x30;
    // A leading zero is octal to some readers and decimal to others, so it is neither here.
    if (digit < 0 || digit > 9 || (digits === 1 && value === 0)) return false;
    value = value * 10 + digit;
    digits++;
    if (value > 255) return false;
  }
  return octets === IPV4_BYTES;
}

/** Writes the address in `text[start, end)` (RFC 4291 section 2.2, no zone id) to 16 bytes of `target`. */
export function writeIpv6(text: Uint8Array, start: number, end: number, target: Uint8Array, offset: number): boolean {
  let written = 0;
  let gapAt = -1;
  let at = start;
  if (end - start >= 2 && text[at] === COLON) {
    if (text[at + 1] !== COLON) return false;
    gapAt = 0;
    at += 2;
  }
  while (at < end) {
    const groupStart = at;
    let value = 0;
    while (at < end) {
      const digit = hexDigit(text[at]!);
      if (digit < 0) break;
      value = value * 16 + digit;
      at++;
      if (at - groupStart > 4) return false;
    }
    if (at < end && text[at] === DOT) {
      if (written > IPV6_BYTES - IPV4_BYTES) return false;
      if (!writeIpv4(text, groupStart, end, target, offset + written)) return false;
      written += IPV4_BYTES;
      break;
    }
    if (at === groupStart || written === IPV6_BYTES) return false;
    target[offset + written] = value >> 8;
    target[offset + written + 1] = value & 0xff;
    written += 2;
    if (at === end) break;
    if (text[at] !== COLON) return false;
    at++;
    if (at === end) return false;
    if (text[at] === COLON) {
      if (gapAt >= 0) return false;
      gapAt = written;
      at++;
    }
  }
  if (gapAt < 0) return written === IPV6_BYTES;
  if (written > IPV6_BYTES - 2) return false;
  target.copyWithin(offset + IPV6_BYTES - (written - gapAt), offset + gapAt, offset + written);
  target.fill(0, offset + gapAt, offset + IPV6_BYTES - (written - gapAt));
  return true;
}

/** The 4 or 16 bytes of an address, or undefined when the text is not one. */
export function ipFromText(text: string): Uint8Array | undefined {
  const { length } = text;
  if (length > TEXT_MAX) return undefined;
  let isIpv6 = false;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return undefined;
    if (code === COLON) isIpv6 = true;
    textBytes[at] = code;
  }
  const address = new Uint8Array(isIpv6 ? IPV6_BYTES : IPV4_BYTES);
  const isAddress = isIpv6 ? writeIpv6(textBytes, 0, length, address, 0) : writeIpv4(textBytes, 0, length, address, 0);
  return isAddress ? address : undefined;
}

/** Text of the `length` (4 or 16) bytes at `offset`: dotted quad, or RFC 5952. */
export function ipToText(bytes: Uint8Array, offset = 0, length = bytes.length - offset): string {
  return length === IPV4_BYTES ? ipv4ToText(bytes, offset) : ipv6ToText(bytes, offset);
}

/** A block `address/bits`; an address alone is the block of that one address. Undefined when the text is neither. */
export function cidrFromText(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  const address = ipFromText(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const bitsMax = address.length * 8;
  if (slash < 0) return { address, prefixBits: bitsMax, hostBitsSet: false };
  const bitsText = text.slice(slash + 1);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(bitsText)) return undefined;
  const prefixBits = Number(bitsText);
  if (prefixBits > bitsMax) return undefined;
  return { address, prefixBits, hostBitsSet: hasHostBits(address, prefixBits) };
}

/** Whether the 4 or 16 bytes of an address lie in the block. */
export function cidrHolds({ address: network, prefixBits }: Cidr, address: Uint8Array): boolean {
  if (address.length !== network.length) return false;
  return network.every((byte, index) => {
    const prefixBitsHere = Math.min(8, Math.max(0, prefixBits - index * 8));
    return ((byte ^ address[index]!) & (0xff00 >> prefixBitsHere) & 0xff) === 0;
  });
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** An IPv4 address that came over an IPv6 socket (RFC 4291 section 2.5.5.2) as IPv4; any other as it is. */
export function unmappedIp(address: Uint8Array): Uint8Array {
  const isMapped = address.length === IPV6_BYTES && MAPPED_PREFIX.every((byte, index) => address[index] === byte);
  return isMapped ? address.subarray(IPV6_BYTES - IPV4_BYTES) : address;
}

function hasHostBits(address: Uint8Array, prefixBits: number): boolean {
  return address.some((byte, index) => {
    const prefixBitsHere = Math.min(8, Math.max(0, prefixBits - index * 8));
    return (byte & (0xff >> prefixBitsHere)) !== 0;
  });
}

function ipv4ToText(bytes: Uint8Array, offset: number): string {
  return `${bytes[offset]}.${bytes[offset + 1]}.${bytes[offset + 2]}.${bytes[offset + 3]}`;
}

function ipv6ToText(bytes: Uint8Array, offset: number): string {
  const groups: number[] = [];
  for (let at = offset; at < offset + IPV6_BYTES; at += 2) groups.push((bytes[at]! << 8) | bytes[at + 1]!);
  // RFC 5952 section 5: the well-known IPv4-mapped prefix is the one place for a dotted tail.
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (isMapped) return `::ffff:${ipv4ToText(bytes, offset + IPV6_BYTES - IPV4_BYTES)}`;
  const gap = longestZeroRun(groups);
  const hex = groups.map((group) => group.toString(16));
  if (gap.length < 2) return hex.join(":");
  return `${hex.slice(0, gap.start).join(":")}::${hex.slice(gap.start + gap.length).join(":")}`;
}

/** The first of the longest runs of zero groups (RFC 5952 section 4.2.3). */
function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === 0) continue;
    if (index - start > best.length) best = { start, length: index - start };
    start = index + 1;
  }
  return best;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
