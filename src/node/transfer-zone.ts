/**
 * A zone as messages of its transfer that can be brought up to date: between a first message with the SOA and a last one the
 * RRs stand in messages of their own, in the order of their names. A changed record is taken out of, or put into, the one that its
 * name belongs to, and the others stay as they are.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { RRTYPE } from "../dns/codes.ts";
import { decodeMessage, HEADER_BYTES, type ResourceRecord } from "../dns/message.ts";
import { compareNames, nameFromText } from "../dns/name.ts";
import { APEX, absoluteName } from "../model/names.ts";
import type { RecordBody, RecordType, ZoneBody } from "../model/objects.ts";
import { ownsName } from "../model/ownership.ts";
import { typeNumber, valueRdata } from "../model/record-values.ts";
import { soaRdata } from "../model/soa.ts";
import {
  createMiddleEncoder,
  createTransferEncoder,
  type EncodedTransfer,
  encodeRest,
  type TransferAlias,
  type TransferRecord,
} from "../primary/axfr-encode.ts";
import { PATCHED_MESSAGES_MAX } from "./transfer-limits.ts";

export type TransferZone = {
  readonly body: Pick<ZoneBody, "name" | "soa" | "default_ttl">;
  readonly serial: number;
  /** RRs in canonical order of their owners, some of one owner at a boundary on either side of it. No SOA. */
  readonly middle: readonly Uint8Array[];
  readonly aliases: readonly TransferAlias[];
  /** Whether the zone has NS of its own. */
  readonly hasNs: boolean;
};

/** What of a record its RRs are made of. */
export type TransferSource = Pick<RecordBody, "values" | "priority" | "weight" | "port" | "tag"> & {
  readonly name: string;
  readonly type: RecordType;
  readonly ttl: number;
};

/** The RRs of one owner and type as they are now; without values there are none. */
export type RecordChange = TransferSource;

/** The whole transfer. A zone that fits into one message is one. */
export function transferOf(zone: TransferZone): EncodedTransfer {
  const { body, serial, middle, aliases, hasNs } = zone;
  const apex = wireOf(body.name);
  const head = { apex, ttl: body.default_ttl, soa: soaRdata(body.soa, serial) };
  const encoder = createTransferEncoder(head);
  // Answers have it too; without one no secondary loads the zone.
  if (!hasNs) encoder.add(apex, apex.length, RRTYPE.NS, head.ttl, wireOf(body.soa.mname));
  const isWhole = aliases.length === 0;
  const [only] = middle;
  if (middle.length <= 1) {
    for (const { name, type, ttl, rdata } of only === undefined ? [] : recordsOf(only)) {
      encoder.add(name, name.length, type, ttl, rdata);
    }
    return { ...head, serial, aliases, messages: encoder.finish(isWhole) };
  }
  const messages = [...encoder.finish(false), ...middle, ...(isWhole ? encodeRest(head, []) : [])];
  return { ...head, serial, aliases, messages };
}

/**
 * The RRs of a record. A CNAME may hold several values, and a secondary takes one (RFC 1034 section 3.6.2): the first, as in
 * answers. None where answers leave the record out, because another node has let in what no command would.
 */
export function rdatasOf(record: TransferSource): readonly Uint8Array[] {
  const { name, type, values } = record;
  if (ownsName(type) && name === APEX) return [];
  try {
    return (ownsName(type) ? values.slice(0, 1) : values).map((value) => valueRdata(record, value).wire);
  } catch {
    return [];
  }
}

/** Undefined where the target is no name. */
export function aliasOf({ values }: TransferSource, owner: Uint8Array, ttl: number): TransferAlias | undefined {
  const target = nameFromText(values[0]?.value ?? "");
  return target.kind === "name" ? { owner, target: target.name, ttl } : undefined;
}

/**
 * The zone with these changes, no two of one owner and type, and its SOA as `body` and `serial` say. Gives way to other work
 * between messages. Undefined where too much changes: encoding all of it anew costs less.
 */
export async function patchZone(
  zone: TransferZone,
  body: TransferZone["body"],
  serial: number,
  changes: Iterable<RecordChange>,
): Promise<TransferZone | undefined> {
  const work = planPatch(zone, body, changes);
  if (work.places.size > PATCHED_MESSAGES_MAX) return undefined;
  const middle: (readonly Uint8Array[])[] = zone.middle.map((message) => [message]);
  if (middle.length === 0) middle.push([]);
  let done = 0;
  for (const [place, patch] of work.places) {
    if (done++ > 0) await nextTurn();
    middle[place] = patchedMessages(zone.middle[place], patch);
  }
  return { body, serial, middle: middle.flat(), aliases: work.aliases, hasNs: work.hasNs };
}

/** Which RRsets one message no longer has, and which RRs it gets. */
type Patch = { readonly gone: Map<string, ReadonlySet<number>>; readonly come: TransferRecord[] };

type PlannedPatch = {
  readonly places: ReadonlyMap<number, Patch>;
  readonly aliases: readonly TransferAlias[];
  readonly hasNs: boolean;
};

function planPatch(zone: TransferZone, body: TransferZone["body"], changes: Iterable<RecordChange>): PlannedPatch {
  const firsts = zone.middle.map(firstOwner);
  const places = new Map<number, Patch>();
  const patchAt = (place: number): Patch => {
    const known = places.get(place) ?? { gone: new Map(), come: [] };
    places.set(place, known);
    return known;
  };
  const aliases = new Map(zone.aliases.map((alias) => [ownerKey(alias.owner), alias]));
  let { hasNs } = zone;
  for (const record of changes) {
    const owner = wireOf(absoluteName(record.name, body.name));
    const key = ownerKey(owner);
    const ttl = record.ttl === 0 ? body.default_ttl : record.ttl;
    if (record.type === "ALIAS") {
      const alias = aliasOf(record, owner, ttl);
      if (alias === undefined) aliases.delete(key);
      else aliases.set(key, alias);
      continue;
    }
    const rdatas = rdatasOf(record);
    if (record.type === "NS" && record.name === APEX) hasNs = rdatas.length > 0;
    const type = typeNumber(record.type);
    const [from, to] = placesOf(firsts, owner);
    for (let place = from; place <= to; place++) {
      const { gone } = patchAt(place);
      gone.set(key, new Set([...(gone.get(key) ?? []), type]));
    }
    const { come } = patchAt(to);
    for (const rdata of rdatas) come.push({ owner, type, ttl, rdata });
  }
  return { places, aliases: [...aliases.values()], hasNs };
}

/** The messages that may have RRs of an owner, the first and the last; new ones go into the last. */
function placesOf(firsts: readonly Uint8Array[], owner: Uint8Array): readonly [from: number, to: number] {
  let low = 0;
  let high = firsts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareNames(firsts[middle] ?? owner, owner) < 0) low = middle + 1;
    else high = middle;
  }
  // Those before `low` begin before the owner; from there on they begin with it, or behind it.
  const from = Math.max(0, low - 1);
  let to = from;
  while (to + 1 < firsts.length && compareNames(firsts[to + 1] ?? owner, owner) === 0) to += 1;
  return [from, to];
}

/** One message, none, or the two halves of one that has become too long. */
function patchedMessages(message: Uint8Array | undefined, { gone, come }: Patch): readonly Uint8Array[] {
  const stay = (message === undefined ? [] : recordsOf(message)).flatMap(({ name, type, ttl, rdata }) =>
    gone.size > 0 && gone.get(ownerKey(name))?.has(type) === true ? [] : [{ owner: name, type, ttl, rdata }],
  );
  const records = merged(
    stay,
    come.sort((left, right) => compareNames(left.owner, right.owner)),
  );
  const messages = encodeMiddle(records);
  if (messages.length < 2) return messages;
  const half = records.length >>> 1;
  return [...encodeMiddle(records.slice(0, half)), ...encodeMiddle(records.slice(half))];
}

/** Both in canonical order. */
function merged(stay: readonly TransferRecord[], come: readonly TransferRecord[]): readonly TransferRecord[] {
  const records: TransferRecord[] = [];
  const left = come.values();
  let next = left.next().value;
  for (const record of stay) {
    for (; next !== undefined && compareNames(next.owner, record.owner) < 0; next = left.next().value)
      records.push(next);
    records.push(record);
  }
  for (; next !== undefined; next = left.next().value) records.push(next);
  return records;
}

function encodeMiddle(records: readonly TransferRecord[]): readonly Uint8Array[] {
  const encoder = createMiddleEncoder();
  for (const { owner, type, ttl, rdata } of records) encoder.add(owner, owner.length, type, ttl, rdata);
  return shared(encoder.finish());
}

/** In shared memory, so that another thread is given them without a copy. */
export function shared(messages: readonly Uint8Array[]): readonly Uint8Array[] {
  return messages.map((message) => {
    const bytes = new Uint8Array(new SharedArrayBuffer(message.length));
    bytes.set(message);
    return bytes;
  });
}

function recordsOf(message: Uint8Array): readonly ResourceRecord[] {
  const decoded = decodeMessage(message);
  if (decoded.kind === "error") throw new Error(`an encoded message cannot be read: ${decoded.reason}`);
  return decoded.message.answers;
}

/** Nothing stands before it that it could point to. */
function firstOwner(message: Uint8Array): Uint8Array {
  let end = HEADER_BYTES;
  while (message[end] !== 0) end += (message[end] ?? 0) + 1;
  return message.subarray(HEADER_BYTES, end + 1);
}

function ownerKey(owner: Uint8Array): string {
  return Buffer.from(owner).toString("latin1").toLowerCase();
}

export function wireOf(text: string): Uint8Array {
  const result = nameFromText(text);
  if (result.kind === "error") throw new Error(`${JSON.stringify(text)} is stored and no name: ${result.reason}`);
  return result.name;
}
