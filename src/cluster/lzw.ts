/**
 * LZW with codes of 9 to 12 bits, least significant bit first, over bytes (as in GIF, without its blocks): what members
 * compress by. It is read only; ours are small enough as they are.
 */

const LITERALS = 256;
const CLEAR = 256;
const END = 257;
const FIRST_WIDTH = 9;
const WIDTH_MAX = 12;
const CODES_MAX = 1 << WIDTH_MAX;

export type Inflated = { readonly bytes: Uint8Array } | { readonly fault: "malformed" | "oversized" };

const MALFORMED: Inflated = { fault: "malformed" };

/** Output that grows up to a limit. */
type Output = { bytes: Uint8Array; length: number; readonly bytesMax: number };

function hasRoom(output: Output, length: number): boolean {
  const needed = output.length + length;
  if (needed > output.bytesMax) return false;
  if (needed <= output.bytes.length) return true;
  const grown = new Uint8Array(Math.min(output.bytesMax, Math.max(needed, output.bytes.length * 2)));
  grown.set(output.bytes.subarray(0, output.length));
  output.bytes = grown;
  return true;
}

/**
 * What the codes stand for. A text that does not end with its end code, or that has a code that cannot stand there, is
 * malformed; one of more than `bytesMax` bytes is oversized. Time and memory follow the output, not what the text claims.
 */
export function inflateLzw(text: Uint8Array, bytesMax: number): Inflated {
  // Every code beyond the literals repeats a part of the output: where it begins there, and its length.
  const starts = new Uint32Array(CODES_MAX);
  const lengths = new Uint16Array(CODES_MAX);
  const output: Output = { bytes: new Uint8Array(Math.min(bytesMax, text.length * 4)), length: 0, bytesMax };
  let width = FIRST_WIDTH;
  let next = END + 1;
  let lastLength = 0;
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  for (;;) {
    while (bitCount < width) {
      if (at === text.length) return MALFORMED;
      bits |= text[at++]! << bitCount;
      bitCount += 8;
    }
    const code = bits & ((1 << width) - 1);
    bits >>>= width;
    bitCount -= width;
    if (code === END) return { bytes: output.bytes.subarray(0, output.length) };
    if (code === CLEAR) {
      width = FIRST_WIDTH;
      next = END + 1;
      lastLength = 0;
      continue;
    }
    // A new code stands for what the last one stood for, and the first byte of this one.
    if (lastLength > 0 && next < CODES_MAX) {
      starts[next] = output.length - lastLength;
      lengths[next] = lastLength + 1;
      next += 1;
    }
    if (code >= next) return MALFORMED;
    const length = code < LITERALS ? 1 : lengths[code]!;
    if (!hasRoom(output, length)) return { fault: "oversized" };
    if (code < LITERALS) output.bytes[output.length] = code;
    else repeat(output.bytes, output.length, starts[code]!, length);
    output.length += length;
    lastLength = length;
    if (next === 1 << width && width < WIDTH_MAX) width += 1;
  }
}

/** Byte by byte, because the code that was made just now ends with a byte that this very copy writes. */
function repeat(bytes: Uint8Array, target: number, start: number, length: number): void {
  for (let index = 0; index < length; index++) bytes[target + index] = bytes[start + index]!;
}
