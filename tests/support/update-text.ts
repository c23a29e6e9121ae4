/** Dynamic updates and zones as text, for tests: `prereq` lines, `add` and `delete` as nsupdate has them, records as zone files have them. */
import assert from "node:assert/strict";
import { createRecord } from "../../src/commands/records.ts";
import { CLASS, OPCODE, RRTYPE } from "../../src/dns/codes.ts";
import { encodeMessage, type Message, type ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText } from "../../src/dns/name.ts";
import { rdataFromText, rdataToText } from "../../src/dns/rdata.ts";
import { typeFromText } from "../../src/dns/type-names.ts";
import { parseUpdate, type UpdateMessage } from "../../src/dns/update.ts";
import { RECORD_TYPES, type RecordBody, type RecordType } from "../../src/model/objects.ts";
import { fieldsFromRdata, valueRdata } from "../../src/model/record-values.ts";
import { LIST_PAGE_MAX, type Store } from "../../src/store/store.ts";
import { type CommandWorld, givenZone, testCaller } from "./commands.ts";

export const ZONE = "corp.";

/** Lines of it, without indentation, comments and blank lines. */
function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/^;.*/, "").trim())
    .filter((line) => line !== "");
}

function wireName(text: string): Uint8Array {
  const origin = nameFromText(ZONE);
  assert.ok(origin.kind === "name");
  const name = nameFromText(text, origin.name);
  assert.ok(name.kind === "name", `${text} is no name`);
  return name.name;
}

function typeNumber(text: string): number {
  const type = text === "ANY" ? RRTYPE.ANY : typeFromText(text);
  assert.ok(type !== undefined, `${text} is no type`);
  return type;
}

function wireRdata(type: number, text: string): Uint8Array {
  if (text.startsWith("hex ")) return Buffer.from(text.slice(4), "hex");
  const result = rdataFromText(type, text, wireName("@"));
  assert.ok(result.kind === "rdata", `${text} is no rdata`);
  return result.rdata;
}

const EMPTY: Uint8Array = new Uint8Array(0);

function record(name: string, recordClass: number, type: number, ttl: number, rdata = EMPTY): ResourceRecord {
  return { name: wireName(name), class: recordClass, type, ttl, rdata };
}

type Sections = { readonly prerequisites: ResourceRecord[]; readonly updates: ResourceRecord[] };

function addLine(sections: Sections, line: string): void {
  const [word = "", ...rest] = line.split(" ");
  const { prerequisites, updates } = sections;
  if (word === "prereq") {
    const [what, name = "", typeText = "", ...rdata] = rest;
    const recordClass = what === "yxdomain" || what === "yxrrset" ? CLASS.ANY : CLASS.NONE;
    const type = typeText === "" ? RRTYPE.ANY : typeNumber(typeText);
    const value = rdata.join(" ");
    prerequisites.push(
      value === "" ? record(name, recordClass, type, 0) : record(name, CLASS.IN, type, 0, wireRdata(type, value)),
    );
  } else if (word === "add") {
    const [name = "", ttl, typeText = "", ...rdata] = rest;
    const type = typeNumber(typeText);
    updates.push(record(name, CLASS.IN, type, Number(ttl), wireRdata(type, rdata.join(" "))));
  } else if (word === "delete") {
    const [name = "", typeText = "ANY", ...rdata] = rest;
    const type = typeNumber(typeText);
    const value = rdata.join(" ");
    updates.push(
      value === "" ? record(name, CLASS.ANY, type, 0) : record(name, CLASS.NONE, type, 0, wireRdata(type, value)),
    );
  } else {
    // Whatever no client writes: section, name, class, type, TTL and rdata in hexadecimal.
    const [name = "", recordClass, type, ttl, hex = ""] = rest;
    const made = record(name, Number(recordClass), Number(type), Number(ttl), Buffer.from(hex, "hex"));
    (word === "raw-prereq" ? prerequisites : updates).push(made);
  }
}

export type UpdateOptions = { readonly zone?: string; readonly zoneClass?: number; readonly zoneType?: number };

/** The bytes of an update that has these lines. */
export function updateBytes(text: string, options: UpdateOptions = {}): Uint8Array {
  const { zone = ZONE, zoneClass = CLASS.IN, zoneType = RRTYPE.SOA } = options;
  const sections: Sections = { prerequisites: [], updates: [] };
  for (const line of linesOf(text)) addLine(sections, line);
  const message: Message = {
    id: 4711,
    flags: 0,
    opcode: OPCODE.UPDATE,
    rcode: 0,
    questions: [{ name: wireName(zone), type: zoneType, class: zoneClass }],
    answers: sections.prerequisites,
    authorities: sections.updates,
    additionals: [],
    edns: undefined,
  };
  const { bytes, isTruncated } = encodeMessage(message);
  assert.ok(!isTruncated, "the update does not fit into a message");
  return bytes;
}

export function updateOf(text: string, options: UpdateOptions = {}): UpdateMessage {
  const parsed = parseUpdate(updateBytes(text, options));
  assert.ok(parsed.kind === "update", "it was refused while being read");
  return parsed;
}

/** A store with the zone `corp.` of these records, where 192.0.2.0/24 may update without a key. */
export async function givenUpdateZone(text: string): Promise<CommandWorld> {
  const world = await givenZone(ZONE);
  const groups = new Map<string, { name: string; type: RecordType; ttl: number; wires: Uint8Array[] }>();
  for (const line of linesOf(text)) {
    const [name = "", ttl, typeText = "", ...rdata] = line.split(" ");
    const type = RECORD_TYPES.find((each) => each === typeText);
    assert.ok(type !== undefined);
    const group = groups.get(`${name} ${type}`) ?? { name, type, ttl: Number(ttl), wires: [] };
    group.wires.push(wireRdata(RRTYPE[type], rdata.join(" ")));
    groups.set(`${name} ${type}`, group);
  }
  for (const { wires, ...rest } of groups.values()) {
    const read = fieldsFromRdata(rest.type, wires);
    assert.ok(read.kind === "fields");
    const given = { ...rest, ...read.fields, values: [...read.fields.values] } as Parameters<typeof createRecord>[3];
    await createRecord(world.context, testCaller(), world.zoneId, given);
  }
  await enableUpdates(world.store, ["192.0.2.0/24"]);
  return world;
}

export async function enableUpdates(store: Store, allow_unsigned_networks: readonly string[]): Promise<void> {
  await store.write((tx) =>
    tx.put("config", { name: "dynamic-dns", settings: { enabled: true, allow_unsigned_networks } }),
  );
}

/** The records of the zone as lines in an order of their own: one an RR, one without rdata for a record without values. */
export function zoneLines(store: Store): readonly string[] {
  return store
    .list("record", { prefix: [ZONE], limit: LIST_PAGE_MAX })
    .flatMap(({ body }) => recordLines(body))
    .sort();
}

function recordLines(body: RecordBody): readonly string[] {
  const head = `${body.name} ${body.ttl} ${body.type}`;
  if (body.values.length === 0) return [head];
  return body.values.map((value) => {
    const rdata = valueRdata(body, value);
    return `${head} ${rdataToText(rdata.type, rdata.wire)}`;
  });
}

export function sortedLines(text: string): readonly string[] {
  return [...linesOf(text)].sort();
}
