/**
 * Whether what came from another store is an item at all. Bodies are not judged by this version's rules, for a newer one may have
 * made them, but for what all who read them take for granted.
 */
import { isBodyOf, isShallow } from "../model/body-shapes.ts";
import { type Bodies, type Kind, NATURAL_KEYS, type NaturalKey } from "../model/objects.ts";
import type { Envelope } from "./envelope.ts";
import type { RawItem } from "./raw-items.ts";
import { isKnownKind } from "./refs.ts";
import { isStamp } from "./stamp.ts";
import { SERIAL_MAX } from "./zone-row.ts";

const KIND = /^[a-z][a-z0-9-]{0,63}$/;
export const ID = /^[\x21-\x7e]{0,128}$/;
const KEY_PARTS_MAX = 8;
export const PART_CHARACTERS_MAX = 1024;
const SEEN_MAX = 1000;
const TEXT_MAX = 256;
const RENAMES_MAX = 2 ** 31;

type Loose = Readonly<Record<string, unknown>>;

export function isWellFormed(item: unknown): item is RawItem {
  if (!isLoose(item)) return false;
  switch (item.item) {
    case "floor":
      return isZoneName(item.zone) && isStampText(item.floor) && (item.ending === undefined || isEnding(item.ending));
    case "serial":
      return isZoneName(item.zone) && isStampText(item.life) && isCount(item.serial, SERIAL_MAX);
    case "activation": {
      const isState = item.state === "pending" || item.state === "active";
      return isZoneName(item.zone) && isStampText(item.life) && isState;
    }
    case "alias":
      return isKind(item.kind) && isId(item.id) && item.id !== "" && isKey(item.key);
    case "object":
      return (
        isKind(item.kind) &&
        isKey(item.key) &&
        isEnvelope(item.envelope) &&
        isKeyOfBody(item.kind, item.key, item.envelope)
      );
    default:
      return false;
  }
}

function isLoose(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStampText(value: unknown): value is string {
  return typeof value === "string" && isStamp(value);
}

function isCount(value: unknown, max: number): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max;
}

function isKind(value: unknown): value is string {
  return typeof value === "string" && KIND.test(value);
}

function isId(value: unknown): value is string {
  return typeof value === "string" && ID.test(value);
}

function isKey(value: unknown): value is NaturalKey {
  if (!Array.isArray(value) || value.length === 0 || value.length > KEY_PARTS_MAX) return false;
  return value.every((part) => typeof part === "string" && part.length <= PART_CHARACTERS_MAX);
}

/** As zones are called here: two spellings of one name would be two zones. */
export function isZoneName(value: unknown): value is string {
  return typeof value === "string" && value.endsWith(".") && value.toLowerCase() === value;
}

function isEnding(value: unknown): boolean {
  if (!isLoose(value)) return false;
  const { digest } = value;
  return (
    isStampText(value.life) && isStampText(value.zoneStamp) && typeof digest === "string" && digest.length <= TEXT_MAX
  );
}

function isEnvelope(value: unknown): value is Envelope {
  if (!isLoose(value)) return false;
  const { stamp, born, life, renames, seen, id, content } = value;
  if (!isStampText(stamp) || (born !== stamp && !isStampText(born)) || !isStampText(life)) return false;
  return isCount(renames, RENAMES_MAX) && isId(id) && isSeen(seen) && isContent(content);
}

function isSeen(value: unknown): boolean {
  if (!isLoose(value)) return false;
  let count = 0;
  for (const node in value) {
    count++;
    if (node.length > TEXT_MAX || count > SEEN_MAX || !isStampText(value[node])) return false;
  }
  return true;
}

function isContent(value: unknown): boolean {
  if (!isLoose(value)) return false;
  if (value.kind === "body") return isLoose(value.body) && isShallow(value.body);
  return value.kind === "tombstone" && (value.movedTo === undefined || isKey(value.movedTo));
}

/** An object lies at the key that its body says, and its zone has the name's one spelling. */
function isKeyOfBody(kind: string, key: NaturalKey, { content }: Envelope): boolean {
  if (!isKnownKind(kind)) return true;
  if ((kind === "zone" || kind === "record") && !isZoneName(key[0])) return false;
  if (content.kind !== "body") return true;
  if (!isBodyOf(kind, content.body)) return false;
  const own = naturalKey(kind, content.body);
  return own.length === key.length && own.every((part, index) => part === key[index]);
}

function naturalKey<K extends Kind>(kind: K, body: unknown): NaturalKey {
  // What it lacks is no part of any key.
  return NATURAL_KEYS[kind](body as Bodies[K]);
}
