/**
 * Natural keys as bytes: comparing the bytes is comparing the keys, names in DNSSEC's canonical order (RFC 4034 section
 * 6.1), and the bytes of leading parts are a prefix of the whole. A key is one byte for its kind and then its parts.
 *
 * A part that is a name is its labels from the root leftwards, in lower case, each ended by 0x00, and one more 0x00 at
 * the end of the name, so that `corp.` is no prefix of `sub.corp.`. Any other part is its UTF-8 bytes, ended by 0x00.
 * Inside a label or a text 0x00 is written 01 01 and 0x01 is written 01 02, which keeps the order.
 */
import { LOWER, nameFromText, ROOT_NAME } from "../dns/name.ts";
import type { Kind, NaturalKey } from "./objects.ts";

/** What LMDB takes with pages of 4,096 bytes. */
export const KEY_BYTES_MAX = 1978;
/** What the store puts before a natural key (its table, an id or a stamp) stays below this. */
export const KEY_BYTES_RESERVED = 200;

/** One byte a kind; a number is never used again for another kind. */
export const KIND_BYTES = {
  zone: 1,
  record: 2,
  override: 3,
  user: 4,
  session: 5,
  "service-account": 6,
  "tsig-key": 7,
  "subnet-mapping": 8,
  config: 9,
  healthcheck: 10,
  forwarder: 11,
  "stub-zone": 12,
  blocklist: 13,
  "blocklist-part": 14,
  node: 15,
} as const satisfies Record<Kind, number>;

const KIND_OF_BYTE = new Map(Object.entries(KIND_BYTES).map(([kind, byte]) => [byte as number, kind as Kind]));

/** The kind whose keys begin with that byte. Throws KeyError. */
export function kindOfByte(byte: number): Kind {
  const kind = KIND_OF_BYTE.get(byte);
  if (kind === undefined) throw new KeyError(`no kind has the byte ${byte}`);
  return kind;
}

/** Which parts of a kind's key are names; `relative` is relative to the zone, "@" at its apex. */
type Part = "name" | "relative" | "text";
const PARTS: { readonly [K in Kind]: readonly Part[] } = {
  zone: ["name"],
  record: ["name", "relative", "text"],
  override: ["name", "text"],
  user: ["text"],
  session: ["text"],
  "service-account": ["text"],
  "tsig-key": ["name"],
  "subnet-mapping": ["text"],
  config: ["text"],
  healthcheck: ["text"],
  blocklist: ["text"],
  "blocklist-part": ["text"],
  forwarder: ["name"],
  "stub-zone": ["name"],
  node: ["text"],
};

/** A key that cannot be written: too long, or a name that is none. Rules of the model refuse both before. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}

/** The bytes of a natural key, or of its leading parts. Throws KeyError. */
export function keyBytes(kind: Kind, parts: NaturalKey): Uint8Array {
  const plain = plainKeyCharacters(kind, parts);
  return plain === undefined ? anyKeyBytes(kind, parts) : Buffer.from(plain, "latin1");
}

/** The same bytes, one character each. Throws KeyError. */
export function keyCharacters(kind: Kind, parts: NaturalKey): string {
  return plainKeyCharacters(kind, parts) ?? anyKeyBytes(kind, parts).toString("latin1");
}

/** Lower-case names of usual characters within the lengths of RFC 1035, and plain texts: nothing to escape or refuse. */
const PLAIN_NAME = /^(?:[a-z0-9_*-]{1,63}\.)*[a-z0-9_*-]{1,63}\.?$/;
const PLAIN_TEXT = /^[\x20-\x7e]{0,255}$/;
const PLAIN_NAME_CHARACTERS = 253;

/** A key without surprises, several times as fast; undefined for any other. */
function plainKeyCharacters(kind: Kind, parts: NaturalKey): string | undefined {
  const kinds = PARTS[kind];
  if (parts.length > kinds.length) return undefined;
  let characters = String.fromCharCode(KIND_BYTES[kind]);
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]!;
    const partKind = kinds[index];
    if (partKind === "text") {
      if (!PLAIN_TEXT.test(part)) return undefined;
      characters += `${part}\0`;
    } else if (partKind === "relative") {
      if (part === "@") characters += "\0";
      else if (part.length > PLAIN_NAME_CHARACTERS || !PLAIN_NAME.test(part)) return undefined;
      else characters += reversedLabels(part);
    } else {
      const reversed = part === latest.name ? latest.reversed : plainName(part);
      if (reversed === undefined) return undefined;
      characters += reversed;
    }
  }
  return characters;
}

/** The keys of an import are those of one zone. */
const latest: { name: string; reversed: string } = { name: ".", reversed: "\0" };

function plainName(name: string): string | undefined {
  if (name.length > PLAIN_NAME_CHARACTERS || !name.endsWith(".") || !PLAIN_NAME.test(name)) return undefined;
  const reversed = reversedLabels(name);
  latest.name = name;
  latest.reversed = reversed;
  return reversed;
}

/** Each label from the last one on, ended by 0x00, and one more 0x00. */
function reversedLabels(name: string): string {
  let reversed = "";
  let end = name.endsWith(".") ? name.length - 1 : name.length;
  while (end > 0) {
    const dot = name.lastIndexOf(".", end - 1);
    reversed += `${name.slice(dot + 1, end)}\0`;
    end = dot;
  }
  return `${reversed}\0`;
}

function anyKeyBytes(kind: Kind, parts: NaturalKey): Buffer {
  const kinds = PARTS[kind];
  if (parts.length > kinds.length)
    throw new KeyError(`a key of ${kind} has ${kinds.length} parts, not ${parts.length}`);
  const bytes: number[] = [KIND_BYTES[kind]];
  for (const [index, part] of parts.entries()) putPart(bytes, kinds[index] ?? "text", part);
  if (bytes.length > KEY_BYTES_MAX - KEY_BYTES_RESERVED) throw new KeyError(`the key of this ${kind} is too long`);
  return Buffer.from(bytes);
}

/** The key as a short text for maps; equal for equal keys and for nothing else. */
export function keyText(kind: Kind, parts: NaturalKey): string {
  return `${kind}\0${parts.join("\0")}`;
}

function putPart(bytes: number[], kind: Part, text: string): void {
  if (kind === "text") {
    putEscaped(bytes, Buffer.from(text), 0, Infinity);
    return;
  }
  const wire = kind === "relative" && text === "@" ? ROOT_NAME : wireName(text, kind);
  const labels: number[] = [];
  for (let at = 0; wire[at] !== 0; at += wire[at]! + 1) labels.push(at);
  for (const at of labels.reverse()) putEscaped(bytes, wire, at + 1, at + 1 + wire[at]!);
  bytes.push(0);
}

function wireName(text: string, kind: Part): Uint8Array {
  const result = nameFromText(text, kind === "relative" ? ROOT_NAME : undefined);
  if (result.kind === "error") throw new KeyError(`${JSON.stringify(text)}: ${result.reason}`);
  return result.name;
}

function putEscaped(bytes: number[], source: Uint8Array, start: number, end: number): void {
  const stop = Math.min(end, source.length);
  const isLabel = end !== Infinity;
  for (let at = start; at < stop; at++) {
    const byte = isLabel ? LOWER[source[at]!]! : source[at]!;
    if (byte > 1) bytes.push(byte);
    else bytes.push(1, byte + 1);
  }
  bytes.push(0);
}
