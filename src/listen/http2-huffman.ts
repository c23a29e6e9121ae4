/** The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B), decoding only. */

/**
 * Bits of the code of each byte, and of the end of the string, in the order of appendix B. The code is canonical: codes of one
 * length follow one another in the order of their bytes, and begin behind those that are shorter.
 */
// biome-ignore format: sixteen a row, as the bytes are.
const BITS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];
const END = 256;
const BITS_MAX = 30;

/** Of each length: its first code, how many there are, and where in SYMBOLS they begin. */
const FIRST_CODE = new Int32Array(BITS_MAX + 2);
const COUNT = new Int32Array(BITS_MAX + 2);
const BEGIN = new Int32Array(BITS_MAX + 2);
const SYMBOLS: number[] = [];
/** By the next eight bits: the byte whose code they begin with, and its bits above; 0 for a longer code. */
const SHORT_BITS = 8;
const SHORT = new Uint16Array(1 << SHORT_BITS);

for (let bits = 1, code = 0; bits <= BITS_MAX; bits++) {
  FIRST_CODE[bits] = code;
  BEGIN[bits] = SYMBOLS.length;
  for (const [symbol, length] of BITS.entries()) if (length === bits) SYMBOLS.push(symbol);
  COUNT[bits] = SYMBOLS.length - BEGIN[bits]!;
  if (bits <= SHORT_BITS) {
    for (let index = 0; index < COUNT[bits]!; index++) {
      const from = (code + index) << (SHORT_BITS - bits);
      const entry = (bits << 8) | SYMBOLS[BEGIN[bits]! + index]!;
      SHORT.fill(entry, from, from + (1 << (SHORT_BITS - bits)));
    }
  }
  code = (code + COUNT[bits]!) << 1;
}

/** The text, one character a byte; undefined where the bytes are no string in this code. */
export function decodeHuffman(bytes: Uint8Array, from: number, end: number): string | undefined {
  const text: number[] = [];
  /** Bits that are read and not yet used, at most 30 of them. */
  let held = 0;
  let heldBits = 0;
  let at = from;
  for (;;) {
    while (heldBits <= 22 && at < end) {
      held = (held << 8) | bytes[at++]!;
      heldBits += 8;
    }
    if (heldBits < SHORT_BITS && at === end) return finish(held, heldBits, text);
    const entry = SHORT[(held >>> (heldBits - SHORT_BITS)) & 0xff]!;
    if (entry !== 0) {
      text.push(entry & 0xff);
      heldBits -= entry >> 8;
    } else {
      // More than 32 bits: no longer a matter of shifts. A code takes at least nine of them away again.
      for (; heldBits < BITS_MAX && at < end; heldBits += 8) held = held * 256 + bytes[at++]!;
      const taken = longCode(held, heldBits);
      if (taken < 0) return at === end ? finish(held, heldBits, text) : undefined;
      text.push(taken & 0xff);
      heldBits -= taken >> 8;
      held %= 2 ** heldBits;
    }
    held &= (1 << heldBits) - 1;
  }
}

/** A code of more than SHORT_BITS: its byte and its bits above, -1 where there is none, or only the end of the string. */
function longCode(held: number, heldBits: number): number {
  for (let bits = SHORT_BITS + 1; bits <= Math.min(heldBits, BITS_MAX); bits++) {
    const index = Math.floor(held / 2 ** (heldBits - bits)) - FIRST_CODE[bits]!;
    if (index < 0 || index >= COUNT[bits]!) continue;
    const symbol = SYMBOLS[BEGIN[bits]! + index]!;
    return symbol === END ? -1 : (bits << 8) | symbol;
  }
  return -1;
}

/** What is left may have whole codes of fewer than eight bits, then fewer than eight ones (section 5.2). */
function finish(held: number, heldBits: number, text: number[]): string | undefined {
  let left = heldBits;
  let rest = held;
  while (left > 0) {
    const padded = ((rest << SHORT_BITS) | 0xff) >>> left;
    const entry = left >= SHORT_BITS ? 0 : SHORT[padded & 0xff]!;
    const bits = entry >> 8;
    if (entry === 0 || bits > left) break;
    text.push(entry & 0xff);
    left -= bits;
    rest &= (1 << left) - 1;
  }
  if (left >= 8 || rest !== (1 << left) - 1) return undefined;
  return String.fromCharCode(...text);
}
