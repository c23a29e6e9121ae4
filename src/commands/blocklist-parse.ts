/**
 * Reads the body of a PUT of the blocklist, `{"domains": [...]}`, and cuts the list into parts. It goes over the bytes:
 * a million names as JSON values would take ten times their memory. Names are written over the text that they were read
 * from, which is never shorter.
 */
import { parseJson } from "../base/json.ts";
import { LOWER, NAME_BYTES_MAX } from "../dns/name.ts";
import { nameHash } from "../dns/name-hash.ts";
import { BLOCKLIST_NAME, BLOCKLIST_SHARDS, packPart, partHash } from "../model/blocklist.ts";
import {
  BLOCKLIST_DOMAINS_MAX,
  BLOCKLIST_PART_BYTES_MAX,
  BLOCKLIST_PARTS_MAX,
  BLOCKLIST_SHARD_BYTES_MAX,
  FAULTS_MAX,
} from "../model/limits.ts";
import { anyFullName } from "../model/names.ts";
import type { BlocklistBody, BlocklistPartBody } from "../model/objects.ts";
import { type FieldFault, Refusal, refuseFaults } from "../model/refusal.ts";
import { pointerToken } from "../model/shape.ts";

export type ParsedBlocklist = {
  readonly list: BlocklistBody;
  /** The part of the list with that key. */
  readonly part: (key: string) => BlocklistPartBody | undefined;
};

/** A name's hash and its place in the list make one number, which sorts fast and is exact up to 2^53. */
const PLACE_FACTOR = 2 ** 21;
if (BLOCKLIST_DOMAINS_MAX >= PLACE_FACTOR) throw new Error("places of the blocklist do not fit beside a hash");

/** Names in wire form in `bytes`, at `places`, of which `keys` has hash and index. */
type Names = {
  readonly bytes: Uint8Array;
  readonly places: Uint32Array;
  readonly keys: Float64Array;
  count: number;
};

/** Takes the bytes over and changes them. Throws `invalid_request` with the first faults. */
export function parseBlocklist(body: Uint8Array): ParsedBlocklist {
  const names = readBody(body);
  names.keys.subarray(0, names.count).sort();
  const order = withoutRepeats(names);
  return cutList(names, order);
}

/** Memory that goes back to the system when it is given up; what the allocator has of this size it mostly keeps. */
function ownPages(bytes: number): ArrayBuffer {
  return new ArrayBuffer(bytes, { maxByteLength: Math.max(1, bytes) });
}

type Reader = { readonly bytes: Uint8Array; at: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const DOT = 0x2e;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;

function readBody(bytes: Uint8Array): Names {
  const reader: Reader = { bytes, at: 0 };
  let names: Names | undefined;
  const seen = new Set<string>();
  expect(reader, OPEN_OBJECT, 'must be an object: {"domains": [...]}');
  for (let isFirst = true; ; isFirst = false) {
    const byte = peek(reader);
    if (byte === CLOSE_OBJECT && isFirst) break;
    const member = readText(reader);
    expect(reader, COLON);
    if (seen.has(member)) throw refusal(`/${pointerToken(member)}`, "is there twice");
    seen.add(member);
    if (member === "domains") names = readDomains(reader);
    else if (member === "count") readCount(reader);
    else throw refusal(`/${pointerToken(member)}`, "is not known here");
    if (peek(reader) === CLOSE_OBJECT) break;
    expect(reader, COMMA);
  }
  reader.at++;
  if (peek(reader) !== -1) throw syntaxFault(reader);
  if (names === undefined) throw refusal("/domains", "is missing");
  return names;
}

function readDomains(reader: Reader): Names {
  if (peek(reader) !== OPEN_LIST) throw refusal("/domains", "must be an array of strings");
  reader.at++;
  const { bytes } = reader;
  const most = Math.min(BLOCKLIST_DOMAINS_MAX, (bytes.length >>> 2) + 1);
  const names: Names = {
    bytes,
    places: new Uint32Array(ownPages(most * 4), 0, most),
    keys: new Float64Array(ownPages(most * 8), 0, most),
    count: 0,
  };
  const faults: FieldFault[] = [];
  let to = 0;
  if (peek(reader) === CLOSE_LIST) {
    reader.at++;
    return names;
  }
  for (let index = 0; ; index++) {
    if (index === BLOCKLIST_DOMAINS_MAX)
      throw refusal("/domains", `must not have more than ${BLOCKLIST_DOMAINS_MAX} names`);
    if (peek(reader) !== QUOTE) throw refusal(`/domains/${index}`, "must be a string");
    const result = readDomain(reader, to);
    if (typeof result === "number") {
      names.places[names.count] = to;
      names.keys[names.count] = nameHash(bytes, to, result - 1) * PLACE_FACTOR + names.count;
      names.count++;
      to = result;
    } else {
      faults.push({ pointer: `/domains/${index}`, detail: result });
      if (faults.length === FAULTS_MAX) break;
    }
    const byte = peek(reader);
    reader.at++;
    if (byte === CLOSE_LIST) break;
    if (byte !== COMMA) throw syntaxFault({ bytes, at: reader.at - 1 });
  }
  refuseFaults(faults);
  return names;
}

/** Reads a string and writes its name at `to`. Returns the end of that, or what is wrong with the name. */
function readDomain(reader: Reader, to: number): number | string {
  const { bytes } = reader;
  const from = reader.at + 1;
  const end = usualEnd(bytes, from);
  if (end >= 0) {
    reader.at = end + 1;
    return writeUsual(bytes, from, bytes[end - 1] === DOT ? end - 1 : end, to);
  }
  const text = readText(reader);
  const outcome = anyFullName(text);
  if (outcome.kind === "fault") return outcome.detail;
  if (text.startsWith("*.")) return "must be without the asterisk: a name covers all that lies below it";
  if (outcome.wire.length === 1) return "must not be the root: all names lie below it";
  bytes.set(outcome.wire, to);
  return to + outcome.wire.length;
}

/** Characters of host names and the underscore; everything else is left to the rules of the model. */
const USUAL = Uint8Array.from({ length: 256 }, (_, byte) => (/[A-Za-z0-9_-]/.test(String.fromCharCode(byte)) ? 1 : 0));

/** Where a string from `from` on ends that is a name without surprises; else -1. */
function usualEnd(bytes: Uint8Array, from: number): number {
  let labelAt = from;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (USUAL[byte] === 1) continue;
    const length = at - labelAt;
    if (length > 63 || at - from > NAME_BYTES_MAX - 2) return -1;
    if (byte === QUOTE) return at > from && (length > 0 || bytes[at - 1] === DOT) ? at : -1;
    if (byte !== DOT || length === 0) return -1;
    labelAt = at + 1;
  }
  return -1;
}

/** Writes the text bytes[from, end) at `to`, which lies ahead of `from`. Returns the end. */
function writeUsual(bytes: Uint8Array, from: number, end: number, to: number): number {
  let lengthAt = to;
  let next = to + 1;
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === DOT) {
      bytes[lengthAt] = next - lengthAt - 1;
      lengthAt = next++;
    } else bytes[next++] = LOWER[byte]!;
  }
  bytes[lengthAt] = next - lengthAt - 1;
  bytes[next++] = 0;
  return next;
}

/** The number of names that GET shows is taken back and not listened to: whoever edits the list changes it. */
function readCount(reader: Reader): void {
  if (peek(reader) === -1) throw syntaxFault(reader);
  const { bytes, at: from } = reader;
  while (NUMBER[bytes[reader.at] ?? 0] === 1 && reader.at - from < NUMBER_BYTES_MAX) reader.at++;
  const parsed = parseJson(bytes.subarray(from, reader.at));
  const value = "fault" in parsed ? undefined : parsed.value;
  if (Number.isSafeInteger(value) && Number(value) >= 0) return;
  throw refusal("/count", "must be a whole number");
}

/** What JSON writes numbers with. */
const NUMBER = Uint8Array.from({ length: 256 }, (_, byte) => (/[-+.0-9eE]/.test(String.fromCharCode(byte)) ? 1 : 0));
const NUMBER_BYTES_MAX = 32;

/** The next byte that is no white space (RFC 8259 section 2), which is not passed; -1 at the end. */
function peek(reader: Reader): number {
  const { bytes } = reader;
  for (; reader.at < bytes.length; reader.at++) {
    const byte = bytes[reader.at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
  }
  return -1;
}

function expect(reader: Reader, byte: number, otherwise?: string): void {
  const found = peek(reader);
  if (found !== byte) throw otherwise === undefined ? syntaxFault(reader) : refusal("", otherwise);
  reader.at++;
}

/** No text that means something here is longer: a name of which each byte is written as an escape of an escape. */
const TEXT_BYTES_MAX = 16_384;

/** The string that begins here, whatever is in it. */
function readText(reader: Reader): string {
  if (peek(reader) !== QUOTE) throw syntaxFault(reader);
  const { bytes, at: from } = reader;
  let end = from + 1;
  while (end < bytes.length && bytes[end] !== QUOTE) end += bytes[end] === BACKSLASH ? 2 : 1;
  if (end >= bytes.length || end - from > TEXT_BYTES_MAX) throw syntaxFault(reader);
  const parsed = parseJson(bytes.subarray(from, end + 1));
  if ("fault" in parsed || typeof parsed.value !== "string") throw syntaxFault(reader);
  reader.at = end + 1;
  return parsed.value;
}

function syntaxFault({ bytes, at }: Reader): Refusal {
  const detail =
    at >= bytes.length ? "the body is not valid JSON: it ends early" : `the body is not valid JSON at byte ${at}`;
  return new Refusal("invalid_request", detail, [{ pointer: "", detail }]);
}

function refusal(pointer: string, detail: string): Refusal {
  return new Refusal("invalid_request", `${pointer === "" ? "the body" : pointer} ${detail}`, [{ pointer, detail }]);
}

/** The places of all names, each once, in the order of their hashes and, where those are equal, of their bytes. */
function withoutRepeats({ bytes, places, keys, count }: Names): Uint32Array {
  const order = new Uint32Array(ownPages(count * 4), 0, count);
  let kept = 0;
  for (let from = 0; from < count; ) {
    const first = keys[from]!;
    const hash = Math.floor(first / PLACE_FACTOR);
    let to = from + 1;
    while (to < count && Math.floor(keys[to]! / PLACE_FACTOR) === hash) to++;
    if (to === from + 1) order[kept++] = places[first % PLACE_FACTOR]!;
    else {
      const alike = Array.from(keys.subarray(from, to), (key) => places[key % PLACE_FACTOR]!);
      alike.sort((a, b) => compareNames(bytes, a, b));
      for (const [index, place] of alike.entries()) {
        if (index === 0 || compareNames(bytes, alike[index - 1]!, place) !== 0) order[kept++] = place;
      }
    }
    from = to;
  }
  return order.subarray(0, kept);
}

/** Names of different lengths differ ahead of where the shorter ends: its root has length 0. */
function compareNames(bytes: Uint8Array, left: number, right: number): number {
  const end = Math.min(endOf(bytes, left) - left, endOf(bytes, right) - right);
  for (let index = 0; index < end; index++) {
    const difference = bytes[left + index]! - bytes[right + index]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Where the name at `place` ends, its root included. */
function endOf(bytes: Uint8Array, place: number): number {
  let at = place;
  while (bytes[at] !== 0) at += bytes[at]! + 1;
  return at + 1;
}

/** What is cut: names in order, with the bytes that those ahead of each have, and the end. */
type Cutting = { readonly bytes: Uint8Array; readonly order: Uint32Array; readonly sizes: Float64Array };

function cutList(names: Names, order: Uint32Array): ParsedBlocklist {
  const { bytes } = names;
  const sizes = new Float64Array(ownPages((order.length + 1) * 8), 0, order.length + 1);
  const shardStarts = new Uint32Array(BLOCKLIST_SHARDS + 1).fill(order.length);
  let shard = 0;
  for (const [index, place] of order.entries()) {
    const end = endOf(bytes, place);
    sizes[index + 1] = sizes[index]! + end - place;
    const own = nameHash(bytes, place, end - 1) >>> 24;
    while (shard <= own) shardStarts[shard++] = index;
  }
  const cutting: Cutting = { bytes, order, sizes };
  const parts = new Map<string, readonly [from: number, to: number]>();
  const shards = Array.from({ length: BLOCKLIST_SHARDS }, (_, each) => {
    const [from, to] = [shardStarts[each]!, shardStarts[each + 1]!];
    if (sizes[to]! - sizes[from]! > BLOCKLIST_SHARD_BYTES_MAX) throw tooUneven();
    let text = "";
    for (const range of cutRange(cutting, from, to, 23)) {
      const key = partHash(packed(cutting, range));
      parts.set(key, range);
      text += key;
    }
    return text;
  });
  if (parts.size > BLOCKLIST_PARTS_MAX) throw tooUneven();
  return {
    list: { name: BLOCKLIST_NAME, count: order.length, shards },
    part: (key) => {
      const range = parts.get(key);
      return range === undefined ? undefined : packPart(key, packed(cutting, range));
    },
  };
}

function tooUneven(): Refusal {
  return refusal("/domains", "cannot be stored: too much of it falls into one part of the list");
}

/** Halves a range at a bit of the hashes until it fits into a part: where a name is cut off does not depend on the others. */
function cutRange(cutting: Cutting, from: number, to: number, bit: number): (readonly [number, number])[] {
  const { bytes, order, sizes } = cutting;
  if (from === to) return [];
  if (sizes[to]! - sizes[from]! <= BLOCKLIST_PART_BYTES_MAX) return [[from, to]];
  let middle = (from + to) >>> 1;
  if (bit >= 0) {
    let low = from;
    let high = to;
    while (low < high) {
      const at = (low + high) >>> 1;
      const place = order[at]!;
      if (((nameHash(bytes, place, endOf(bytes, place) - 1) >>> bit) & 1) === 1) high = at;
      else low = at + 1;
    }
    middle = low;
  }
  return [...cutRange(cutting, from, middle, bit - 1), ...cutRange(cutting, middle, to, bit - 1)];
}

/** The names of a range, one behind the other. */
function packed({ bytes, order, sizes }: Cutting, [from, to]: readonly [number, number]): Uint8Array {
  const start = sizes[from]!;
  const names = new Uint8Array(sizes[to]! - start);
  for (let index = from; index < to; index++) {
    const place = order[index]!;
    const at = sizes[index]! - start;
    for (let offset = sizes[index + 1]! - start - at - 1; offset >= 0; offset--)
      names[at + offset] = bytes[place + offset]!;
  }
  return names;
}
