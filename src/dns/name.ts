/**
 * Domain names as wire bytes (RFC 1035 section 3.1): uncompressed labels, the root label last, case as it was given.
 * A name made here is valid: labels of 1 to 63 bytes, 255 in all. Text is RFC 1035 section 5.1 (`\X`, `\DDD`).
 * Length octets are below 0x40 and letters above it, so a whole wire name can be folded byte by byte.
 */

export const NAME_BYTES_MAX = 255;
export const LABEL_BYTES_MAX = 63;

/** The name of the root. */
export const ROOT_NAME: Uint8Array = Uint8Array.of(0);

/** What is wrong with the text of a name, as the negative results of `writeName`. */
export const NAME_FAULT = {
  EMPTY: -1,
  EMPTY_LABEL: -2,
  LABEL_TOO_LONG: -3,
  NAME_TOO_LONG: -4,
  BAD_ESCAPE: -5,
  NO_ORIGIN: -6,
} as const;

export type NameResult =
  | { readonly kind: "name"; readonly name: Uint8Array }
  | { readonly kind: "error"; readonly reason: string };

const FAULT_TEXT = [
  "",
  "empty name",
  "empty label",
  `label longer than ${LABEL_BYTES_MAX} bytes`,
  `name longer than ${NAME_BYTES_MAX} bytes`,
  "bad escape: a backslash takes three digits up to 255, or one other character",
  "relative name without an origin",
];

const DOT = 0x2e;
const AT = 0x40;
const BACKSLASH = 0x5c;
const encoder = new TextEncoder();
const leftLabels = new Uint8Array(128);
const rightLabels = new Uint8Array(128);
/** For `nameFromText`, which copies its result out: texts of up to so many characters, three bytes each at most. */
const NAME_TEXT_USUAL = 1024;
const textBytes = new Uint8Array(NAME_TEXT_USUAL * 3);
const nameBytes = new Uint8Array(NAME_BYTES_MAX + LABEL_BYTES_MAX + 2);

/** ASCII lower case of each byte value (RFC 4343: letters outside ASCII have no case in DNS). */
export const LOWER: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
);

/** A sentence for a negative result of `writeName`. */
export function nameFaultText(fault: number): string {
  return FAULT_TEXT[-fault] ?? "bad name";
}

/**
 * Writes the name in `text[start, end)` to `target` at `offset`, completed by `origin` where it is relative; `@` is the
 * origin. Returns its wire length, or a NAME_FAULT. `originLength` 0 means that there is no origin. On a fault, bytes of
 * `target` behind `offset` may have changed.
 */
export function writeName(
  text: Uint8Array,
  start: number,
  end: number,
  origin: Uint8Array,
  originLength: number,
  target: Uint8Array,
  offset: number,
): number {
  if (start >= end) return NAME_FAULT.EMPTY;
  if (end - start === 1 && text[start] === DOT) {
    target[offset] = 0;
    return 1;
  }
  const isOrigin = end - start === 1 && text[start] === AT;
  let labelAt = offset;
  let at = offset + 1;
  for (let index = isOrigin ? end : start; index < end; index++) {
    let byte = text[index]!;
    if (byte === DOT) {
      if (at === labelAt + 1) return NAME_FAULT.EMPTY_LABEL;
      target[labelAt] = at - labelAt - 1;
      labelAt = at;
      at++;
      if (at - offset > NAME_BYTES_MAX) return NAME_FAULT.NAME_TOO_LONG;
      continue;
    }
    if (byte === BACKSLASH) {
      const escaped = readEscape(text, index, end);
      if (escaped < 0) return NAME_FAULT.BAD_ESCAPE;
      index += escaped >> 8;
      byte = escaped & 0xff;
    }
    if (at - labelAt > LABEL_BYTES_MAX) return NAME_FAULT.LABEL_TOO_LONG;
    target[at] = byte;
    at++;
  }
  if (at === labelAt + 1 && !isOrigin) {
    target[labelAt] = 0;
    return at - offset;
  }
  if (originLength === 0) return NAME_FAULT.NO_ORIGIN;
  if (isOrigin) at = labelAt;
  else target[labelAt] = at - labelAt - 1;
  if (at - offset + originLength > NAME_BYTES_MAX) return NAME_FAULT.NAME_TOO_LONG;
  for (let index = 0; index < originLength; index++) target[at + index] = origin[index]!;
  return at - offset + originLength;
}

/**
 * Reads the escape whose backslash is at `at`: the byte it stands for in the low eight bits, and above them how many
 * bytes follow the backslash. -1 when it is none.
 */
export function readEscape(text: Uint8Array, at: number, end: number): number {
  if (at + 1 >= end) return -1;
  const first = text[at + 1]! - 0x30;
  if (first < 0 || first > 9) return (1 << 8) | text[at + 1]!;
  if (at + 3 >= end) return -1;
  const second = text[at + 2]! - 0x30;
  const third = text[at + 3]! - 0x30;
  if (second < 0 || second > 9 || third < 0 || third > 9) return -1;
  const value = first * 100 + second * 10 + third;
  return value > 255 ? -1 : (3 << 8) | value;
}

/** True where the text of a name ends in a dot of its own, so that no origin is added to it. */
export function isAbsoluteText(text: Uint8Array, start: number, end: number): boolean {
  if (end <= start || text[end - 1] !== DOT) return false;
  let backslashes = 0;
  while (end - 2 - backslashes >= start && text[end - 2 - backslashes] === BACKSLASH) backslashes++;
  return backslashes % 2 === 0;
}

/** The wire name of a text (as UTF-8), completed by the wire name `origin` where it is relative. */
export function nameFromText(text: string, origin?: Uint8Array): NameResult {
  const length = putName(text, origin, nameBytes);
  if (length < 0) return { kind: "error", reason: nameFaultText(length) };
  return { kind: "name", name: nameBytes.slice(0, length) };
}

/** Room for any name, and for what `putName` writes of one that is none. */
export const NAME_ROOM_BYTES = NAME_BYTES_MAX + LABEL_BYTES_MAX + 2;

/** As `nameFromText`, into NAME_ROOM_BYTES of the caller's. Returns the length, or a NAME_FAULT. */
export function putName(text: string, origin: Uint8Array | undefined, target: Uint8Array): number {
  const isLong = text.length > NAME_TEXT_USUAL;
  const bytes = isLong ? encoder.encode(text) : textBytes;
  const end = isLong ? bytes.length : putText(text);
  return writeName(bytes, 0, end, origin ?? ROOT_NAME, origin?.length ?? 0, target, 0);
}

/** Puts the text into `textBytes` as UTF-8 and returns its length. */
function putText(text: string): number {
  const { length } = text;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return encoder.encodeInto(text, textBytes).written;
    textBytes[at] = code;
  }
  return length;
}

/**
 * The text of the wire name at `offset`, absolute and with its final dot. What zone files would read otherwise is
 * escaped, so the text gives the same bytes again.
 */
export function nameToText(name: Uint8Array, offset = 0): string {
  if (name[offset] === 0) return ".";
  let text = "";
  let at = offset;
  for (;;) {
    const length = name[at]!;
    if (length === 0) return text;
    for (let index = at + 1; index <= at + length; index++) text += labelByteToText(name[index]!);
    text += ".";
    at += length + 1;
  }
}

function labelByteToText(byte: number): string {
  if (byte <= 0x20 || byte >= 0x7f) return `\\${String(byte).padStart(3, "0")}`;
  const character = String.fromCharCode(byte);
  return '"$().;@\\'.includes(character) ? `\\${character}` : character;
}

/** Wire length of the uncompressed name at `offset`, or -1 where it is not a valid name that ends before `limit`. */
export function nameLengthAt(bytes: Uint8Array, offset: number, limit: number): number {
  let at = offset;
  while (at < limit && at - offset < NAME_BYTES_MAX) {
    const length = bytes[at]!;
    if (length === 0) return at - offset + 1;
    if (length > LABEL_BYTES_MAX) return -1;
    at += length + 1;
  }
  return -1;
}

/** Number of labels, the root label not counted; a `*` counts as one. */
export function labelCount(name: Uint8Array, offset = 0): number {
  let count = 0;
  for (let at = offset; name[at]! !== 0 && at < name.length; at += name[at]! + 1) count++;
  return count;
}

/** True where both are the same name without regard to case (RFC 4343). */
export function namesEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && foldedEqual(left, 0, right, 0, left.length);
}

/** True where `length` bytes at both places are equal without regard to ASCII case. */
export function foldedEqual(
  left: Uint8Array,
  leftOffset: number,
  right: Uint8Array,
  rightOffset: number,
  length: number,
): boolean {
  for (let index = 0; index < length; index++) {
    if (LOWER[left[leftOffset + index]!] !== LOWER[right[rightOffset + index]!]) return false;
  }
  return true;
}

/** True where `name` is `ancestor` or below it. The lengths are for names that lie at the start of larger buffers. */
export function isSubdomain(
  name: Uint8Array,
  ancestor: Uint8Array,
  nameLength = name.length,
  ancestorLength = ancestor.length,
): boolean {
  let at = 0;
  while (nameLength - at > ancestorLength) at += name[at]! + 1;
  return nameLength - at === ancestorLength && foldedEqual(name, at, ancestor, 0, ancestorLength);
}

/** Canonical order (RFC 4034 section 6.1): labels from the root leftwards, in lower case, a missing label first. */
export function compareNames(left: Uint8Array, right: Uint8Array): number {
  let leftIndex = collectLabels(left, leftLabels);
  let rightIndex = collectLabels(right, rightLabels);
  while (leftIndex > 0 && rightIndex > 0) {
    leftIndex--;
    rightIndex--;
    const order = compareLabels(left, leftLabels[leftIndex]!, right, rightLabels[rightIndex]!);
    if (order !== 0) return order;
  }
  return leftIndex - rightIndex;
}

function collectLabels(name: Uint8Array, offsets: Uint8Array): number {
  let count = 0;
  for (let at = 0; name[at]! !== 0; at += name[at]! + 1) {
    offsets[count] = at;
    count++;
  }
  return count;
}

function compareLabels(left: Uint8Array, leftAt: number, right: Uint8Array, rightAt: number): number {
  const leftLength = left[leftAt]!;
  const rightLength = right[rightAt]!;
  for (let index = 1; index <= leftLength && index <= rightLength; index++) {
    const order = LOWER[left[leftAt + index]!]! - LOWER[right[rightAt + index]!]!;
    if (order !== 0) return order;
  }
  return leftLength - rightLength;
}
