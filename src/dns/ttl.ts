/** Decimal numbers and durations of zone files (`3600`, `1w2d3h4m5s`), read from bytes without making a string. */

/** The largest TTL (RFC 2181 section 8). */
export const TTL_SECONDS_MAX = 2_147_483_647;
export const UINT32_MAX = 4_294_967_295;

const UNIT_SECONDS: Readonly<Record<number, number>> = {
  115: 1,
  109: 60,
  104: 3600,
  100: 86_400,
  119: 604_800,
};

/** The decimal number in `text[start, end)`, or -1 where it is none or above `max`. */
export function readDecimal(text: Uint8Array, start: number, end: number, max: number): number {
  if (start >= end) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = text[at]! - 0x30;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
    if (value > max) return -1;
  }
  return value;
}

/**
 * The seconds in `text[start, end)`: a number, or numbers that each have a unit (s, m, h, d, w in either case).
 * -1 where it is neither or above 32 bits. As in BIND, a number without unit may not follow one with a unit.
 */
export function readSeconds(text: Uint8Array, start: number, end: number): number {
  let total = 0;
  let value = 0;
  let digits = 0;
  let hasUnit = false;
  for (let at = start; at < end; at++) {
    const byte = text[at]!;
    const digit = byte - 0x30;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digits++;
    } else {
      const unitSeconds = byte < 0x41 ? undefined : UNIT_SECONDS[byte | 0x20];
      if (unitSeconds === undefined || digits === 0) return -1;
      total += value * unitSeconds;
      value = 0;
      digits = 0;
      hasUnit = true;
    }
    if (value > UINT32_MAX || total > UINT32_MAX) return -1;
  }
  if (digits > 0) return hasUnit ? -1 : value;
  return hasUnit ? total : -1;
}
